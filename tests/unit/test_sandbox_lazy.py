from __future__ import annotations

import pytest

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from tests.tables import table_test
from tests.unit.sandbox_session import Session


@table_test(
    "code",
    [
        "list(map(str, range(5)))",
        "list(zip(range(5), range(5)))",
        "list(enumerate('abcde'))",
        "list(filter(None, range(5)))",
        "list(reversed(range(5)))",
        "list(iter([1, 2, 3, 4, 5]))",
        "import itertools\nlist(itertools.islice(itertools.count(), 5))",
        "import itertools\nlist(itertools.accumulate(range(5)))",
        "sum(x for x in range(5))",
        "def g():\n  for i in range(5): yield i\nmax(g())",
    ],
)
def test_items_are_paid_for_wherever_they_are_consumed(code: str) -> None:
    session = Session()
    session.run(code)
    assert 5 <= session.budget.iterations <= 50


def test_lazy_types_are_types() -> None:
    assert Session().run("isinstance(map(str, []), map), isinstance([], zip), map, repr(filter)") == [
        "(True,False,<Object>,\"<class 'filter'>\")"
    ]


def test_iterators_print_like_their_originals_without_addresses() -> None:
    code = "import itertools\nprint(repr(map(str, [])), repr(itertools.count(3)), repr(iter([])))"
    assert Session().run(code) == ["<map object at 0x...> count(3) <list_iterator object at 0x...>"]


def test_an_iterator_is_its_own_iterator() -> None:
    assert Session().run("i = iter([1, 2])\nprint(iter(i) == i, next(i), list(i), next(i, 'end'))") == [
        "True 1 [2] end"
    ]


def test_generators_send_throw_and_close() -> None:
    code = """
def g():
  try:
    while True:
      try:
        got = yield 'ready'
        print('got', got)
      except ValueError as e:
        print('thrown', e)
  finally:
    print('closed')
i = g()
x = next(i)
x = i.send(1)
x = i.throw(ValueError('v'))
i.close()
"""
    assert Session().run(code) == ["got 1", "thrown v", "closed", "None"]


def test_a_generator_left_behind_closes_without_a_word() -> None:
    session = Session(budget=ExecutionBudget(loop_iterations=50))
    with pytest.raises(BudgetExceeded):
        session.run("def g():\n  try: yield 1\n  finally: print('late')\ni = g()\nnext(i)\nwhile True: pass")
    session.names.clear()
