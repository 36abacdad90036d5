from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from tests.soon import soon
from tests.tables import table_test
from tests.unit.sandbox_session import Session

ITERATIONS = "the code ran more than 1,000,000 loop iterations in one step; the likely cause is"
DATA = "the code built more than 64,000,000 bytes of data in one step; the likely cause is"
PRINTED = "the code printed a value with more than 50,000 items; the likely cause is"

DOUBLED = "x = [1]\nfor i in range(60): x = [x, x]\n"

RUNAWAY = [
    ("while True: pass", ITERATIONS),
    ("while True:\n  try:\n    while True: pass\n  except BaseException: pass", ITERATIONS),
    ("import itertools\n[0 for _ in itertools.count()]", ITERATIONS),
    ("import itertools\nsum(itertools.count())", ITERATIONS),
    ("import itertools\nmax(itertools.repeat(1))", ITERATIONS),
    ("import itertools\nlist(itertools.chain.from_iterable(itertools.repeat([0])))", ITERATIONS),
    ("import itertools\nfor k, g in itertools.groupby(range(10**12), bool): pass", ITERATIONS),
    ("list(iter(int, 1))", ITERATIONS),
    ("list(range(10**10))", ITERATIONS),
    ("sum(range(10**12))", ITERATIONS),
    ("a, *b = range(10**10)", ITERATIONS),
    ("[*range(10**10)]", ITERATIONS),
    ("list(filter(None, range(10**12)))", ITERATIONS),
    ("any(False for x in range(10**12))", ITERATIONS),
    ("[[0 for _ in range(10**4)] for _ in range(10**4)]", ITERATIONS),
    ("a = [[]]\nfor r in a: a.append(r)", ITERATIONS),
    ("def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf(40)", ITERATIONS),
    ("from collections import Counter\nlist(Counter(a=10**12).elements())", ITERATIONS),
    ("def f():\n  try: return f()\n  finally: return f()\nf()", ITERATIONS),
    ("x = []\nwhile True: x.append('a' * 10**6)", DATA),
    ("s = 'ab'\nwhile True: s += s", DATA),
    ("s = 'ab'\nwhile True: s = f'{s}{s}'", DATA),
    ("s = 'ab'\nwhile True: s = '{0}{0}'.format(s)", DATA),
    ("s = 'ab'\nwhile True: s = '%s%s' % (s, s)", DATA),
    ("'a' * 10**10", DATA),
    (DOUBLED + "print(x)", PRINTED),
]


@table_test(("code", "reason"), RUNAWAY, ids=[code.replace("\n", "; ") for code, _ in RUNAWAY])
def test_runaway_code_is_stopped_with_the_reason(code: str, reason: str) -> None:
    with soon(), pytest.raises(BudgetExceeded) as stopped:
        Session().run(code)
    assert str(stopped.value).startswith(reason)


@table_test(
    "code",
    [
        "x = []\nx.append(x)\nprint(x)",
        "x = []\nfor i in range(10**5): x = [x]\nrepr(x)",
        "x = []\nfor i in range(10**5): x = [x]\nprint(x)",
        "x = []\nfor i in range(10**5): x = [x]\nx == [x]",
        "import json\njson.loads('[' * 10**5)",
        "def f(n): return f(n + 1)\nf(0)",
        "f = lambda n: f(n + 1)\nf(0)",
        "def a(): return b()\ndef b(): return a()\na()",
        "f = lambda x: list(map(f, [x]))\nf(1)",
        "def g(): yield from g()\nlist(g())",
        "def g():\n  for x in g(): yield x\nlist(g())",
        "g = lambda: (y for x in [1] for y in [*g()])\nlist(g())",
    ],
)
def test_values_and_calls_nested_too_deep_are_a_recursion_error(code: str) -> None:
    with pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        Session().run(code)


def test_a_list_that_holds_itself_has_a_repr() -> None:
    assert Session().run("x = [1]\nx.append(x)\nprint(repr(x))") == ["None", "[1, [...]]"]


@table_test(
    "swallowing",
    [
        "try:\n  while True: pass\nexcept BaseException:\n  pass",
        "try:\n  while True: pass\nexcept:\n  pass",
        "def f():\n  try:\n    while True: pass\n  finally:\n    return 1\nf()",
        "for i in [1]:\n  try:\n    while True: pass\n  finally:\n    break",
    ],
)
def test_being_stopped_cannot_be_swallowed(swallowing: str) -> None:
    with pytest.raises(BudgetExceeded):
        Session().run(swallowing)


def test_a_new_step_starts_with_nothing_spent() -> None:
    session = Session(budget=ExecutionBudget(loop_iterations=20))
    with pytest.raises(BudgetExceeded):
        session.run("for i in range(21): pass")
    # A printed line counts as eight, and a loop as a pass for each item.
    assert session.run("for i in range(10): pass\nprint(i)") == ["9"]
    assert session.budget.iterations == 18


def test_a_stopped_budget_stays_stopped_until_the_next_step() -> None:
    budget = ExecutionBudget(allocation=10)
    with pytest.raises(BudgetExceeded, match="more than 10 bytes"):
        budget.allocate(11)
    for again in (budget.tick, budget.enter, budget.check):
        with pytest.raises(BudgetExceeded, match="more than 10 bytes"):
            again()
    budget.reset()
    assert budget.tick()
    assert budget.allocated == 0


def deeper(levels: int, function: Callable[[], int]) -> int:
    return function() if levels == 0 else deeper(levels - 1, function)


@pytest.mark.parametrize("code", ["def f(n): return f(n + 1)\nf(0)", "def g(): yield from g()\nlist(g())"])
def test_recursion_is_stopped_at_the_same_call_whatever_the_stack(code: str) -> None:
    session = Session()

    def spent() -> int:
        with pytest.raises(RecursionError, match=r"^maximum recursion depth exceeded$"):
            session.run(code)
        return session.budget.iterations

    assert spent() == deeper(300, spent)


def test_recursion_within_the_limit_works_and_leaves_pythons_limit_alone() -> None:
    before = sys.getrecursionlimit()
    assert Session().run("f = lambda n: 0 if n == 0 else 1 + f(n - 1)\nf(240)") == ["240"]
    with pytest.raises(RecursionError):
        Session().run("f = lambda n: f(n)\nf(0)")
    assert sys.getrecursionlimit() == before


def test_many_suspended_generators_are_no_deep_recursion() -> None:
    code = "def g():\n  yield 1\n  yield 2\ngs = [g() for _ in range(600)]\nsum(next(x) for x in gs)"
    assert Session().run(code) == ["600"]


def test_failing_calls_do_not_wear_the_depth_out() -> None:
    code = "f = lambda: 1 / 0\nn = 0\nfor i in range(600):\n  try: f()\n  except Exception: n += 1\nn"
    assert Session().run(code) == ["600"]


def test_ordinary_work_stays_far_below_the_limits() -> None:
    session = Session()
    session.run(
        "rows = [{'id': i, 'name': 'item %d' % i, 'tags': ['a', 'b']} for i in range(2000)]\n"
        "text = ''\n"
        "for row in rows: text += f\"{row['id']}: {row['name']}\\n\"\n"
        "lines = [line.split(': ') for line in text.splitlines()]\n"
        "print(len(lines), sum(int(n) for n, _ in lines), sorted(rows, key=lambda r: -r['id'])[0]['name'])"
    )
    assert session.budget.iterations < 50_000
    assert session.budget.allocated < 32_000_000
