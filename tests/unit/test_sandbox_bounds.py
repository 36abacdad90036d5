"""What the deterministic bounds count, and what they leave alone."""

from __future__ import annotations

import random
import time

import pytest

from statek_sim.runtime.execution.kept_data import check_kept, note_built, weight
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.ordered_set import OrderedSet
from tests.unit.sandbox_session import Session

LIMITED = 10_000


def passes_until_stopped(body: str) -> int:
    session = Session(budget=ExecutionBudget(loop_iterations=LIMITED))
    with pytest.raises(BudgetExceeded, match="loop iterations"):
        session.run(f"n = 0\nwhile True:\n  n += 1\n  {body}")
    return int(session.names["n"])


def test_a_pass_of_a_long_body_costs_more_than_one_of_a_short_body() -> None:
    short = passes_until_stopped("pass")
    twelve = passes_until_stopped("\n  ".join(["str(n)"] * 12))
    twenty = passes_until_stopped("\n  ".join(["str(n)"] * 20))
    assert short == LIMITED
    assert LIMITED // 10 < twelve < LIMITED // 5
    assert twenty < twelve


def test_a_long_branch_is_paid_for_only_when_it_is_taken() -> None:
    branch = "\n    ".join(["str(n)"] * 30)
    assert passes_until_stopped(f"if n < 0:\n    {branch}") == LIMITED
    assert passes_until_stopped(f"if n > 0:\n    {branch}") < LIMITED // 10


def test_an_exception_that_is_caught_counts_as_a_call_does() -> None:
    caught = passes_until_stopped("try: n.nothing\n  except Exception: pass")
    assert LIMITED // 6 < caught <= LIMITED // 5
    assert passes_until_stopped("try: n\n  except Exception: pass") == LIMITED


@pytest.mark.parametrize(
    ("before", "body", "most"),
    [
        # Given up 400 levels down, which took as long as going there.
        ("x = []\nfor i in range(1000): x = [x]", "x == x", LIMITED // 800),
        ("x = []\nfor i in range(1000): x = [x, *([[]] * 50)]", "x == x", LIMITED // 3_000),
        ("x = ()\nfor i in range(1000): x = (x,)", "hash(x)", LIMITED // 800),
        # A function of C's, or one that pays for something else, is called for each item.
        ("x = [1] * 500", "functools.reduce(operator.add, x)", LIMITED // 500),
        ("x = collections.deque([1] * 500)", "functools.reduce(operator.add, x)", LIMITED // 500),
        ("x = [1] * 500", "max(x, key=abs)", LIMITED // 500),
        ("x = [1] * 500", "x.sort(key=abs)", LIMITED // 500),
        ("x = 'a' * 500", "re.sub('a', str, x)", LIMITED // 500),
        # Nothing comes out of what goes through many.
        ("x = collections.deque([0] * 500)", "list(filter(None, x))", LIMITED // 500),
        ("x = dict.fromkeys(range(500), 0).values()", "list(filter(None, x))", LIMITED // 500),
        # The middle of a deque is far from both of its ends.
        ("x = collections.deque([1]) * 1_000_000", "x[500_000]", LIMITED // 15),
        ("x = collections.deque([1]) * 1_000_000", "x[n + 500_000]", LIMITED // 15),
        ("x = collections.deque([1]) * 1_000_000", "x[500_000] = 1", LIMITED // 15),
        # The places of what was deleted are passed over to find the first entry.
        ("x = y", "next(iter(x))", LIMITED // 20),
        ("x = y", "next(iter(x.items()))", LIMITED // 20),
        # A call that fails is made twice.
        ("x = []", "x.extend(7)", LIMITED // 12),
        # They can be made around each other.
        ("x = iter([])", "x = itertools.chain(x, [1])", LIMITED // 3),
        ("x = iter([])", "x = (v for v in x)", LIMITED // 3),
    ],
)
def test_what_takes_long_inside_one_call_counts(before: str, body: str, most: int) -> None:
    session = Session(budget=ExecutionBudget(loop_iterations=LIMITED))
    session.names["y"] = dict.fromkeys(range(100_000))
    for key in range(90_000):
        del session.names["y"][key]
    session.run(f"import collections, functools, itertools, operator, re\n{before}")
    with pytest.raises(BudgetExceeded, match="loop iterations"):
        session.run(f"n = 0\nwhile True:\n  n += 1\n  try: {body}\n  except Exception: pass")
    assert int(session.names["n"]) <= most + 1


def test_letters_that_become_longer_are_paid_for_as_wide_as_they_may_be() -> None:
    session = Session(budget=ExecutionBudget(allocation=1_000_000))
    session.run("x = 'i' * 100_000\ny = x.casefold()")
    with pytest.raises(BudgetExceeded, match="bytes of data"):
        session.run("x = '\\u0130' * 100_000\ny = x.casefold()")
    with pytest.raises(BudgetExceeded, match="bytes of data"):
        session.run("x = '\\u0130' * 300_000")


def test_the_message_of_an_assertion_is_paid_for_before_it_is_shown() -> None:
    folded = "x = {}\nfor i in range(60): x = {'a': x, 'b': x}\n"
    with pytest.raises(BudgetExceeded):
        Session(budget=ExecutionBudget(loop_iterations=LIMITED)).run(folded + "assert False, x")


@pytest.mark.parametrize(
    "code",
    [
        "f = lambda: ({0})\nwhile True: f()",
        "def f():\n  {0}\nwhile True: f()",
        "def g():\n  {0}\n  yield 1\nwhile True: list(g())",
        "while True: [({0}) for x in [1]]",
        "while True:\n  try: 1 / 0\n  except Exception:\n    {0}",
    ],
)
def test_bodies_of_functions_handlers_and_comprehensions_count_their_steps(code: str) -> None:
    def spent(steps: str) -> int:
        session = Session(budget=ExecutionBudget(loop_iterations=1_000))
        session.names["n"] = [0]
        with pytest.raises(BudgetExceeded):
            session.run("hits = []\n" + code.format(f"hits.append(1), {steps}"))
        return len(session.names["hits"])

    assert spent(", ".join(["str(1)"] * 40)) * 5 < spent("1") * 2


def test_ten_thousand_strings_are_popped_from_a_set_in_order_and_soon() -> None:
    session = Session()
    began = time.process_time()
    session.run("s = {str(i) for i in range(4_000)}\nout = []\nwhile s: out.append(s.pop())")
    assert time.process_time() - began < 3
    assert session.names["out"] == sorted(session.names["out"], key=repr)


def test_a_set_that_changes_while_it_is_popped_still_gives_its_first_item() -> None:
    chosen = random.Random(7)
    tested, left = OrderedSet(map(str, range(40))), set(map(str, range(40)))
    for _ in range(300):
        item = str(chosen.randrange(60))
        change = chosen.choice(["add", "discard", "pop"])
        if change != "pop":
            getattr(tested, change)(item)
            getattr(left, change)(item)
        elif left:
            first = min(left, key=repr)
            assert tested.pop() == first
            left.remove(first)
    assert tested == left


@pytest.mark.parametrize(
    "code",
    [
        "'call 5551234567 {}'.format(1)",
        "'call 5551234567 %s' % 'me'",
        "stack = list(range(100_000))\nwhile stack: stack.pop()",
        "a, b = 0, 1\nfor i in range(20_000): a, b = b, a + b",
        "words = ['word %d' % (i * 7919 % 1000) for i in range(20_000)]\nsorted(words)\nsorted(set(words))",
        "sorted([{'id': i} for i in range(20_000)], key=lambda row: -row['id'])",
        "text = ''\nfor i in range(10_000): text += f'line {i}\\n'",
        "import json\nfor i in range(2_000): json.loads(json.dumps({'id': i, 'tags': ['a', 'b']}))",
        "from datetime import datetime, timedelta\n"
        "days = [datetime(2026, 1, 1) + timedelta(i) for i in range(3_000)]\n"
        "[datetime.strptime(day.strftime('%Y-%m-%d'), '%Y-%m-%d') for day in days]",
        "import statistics\nfor i in range(300): statistics.stdev([1, 2, 3, 4.5, i])",
        "from decimal import Decimal\nsum([Decimal('19.99') * i for i in range(10_000)], Decimal(0))",
        "from fractions import Fraction\nsum(Fraction(1, i) for i in range(1, 300))",
        "todo, seen = {'a'}, set()\nwhile todo:\n  x = todo.pop()\n  seen.add(x)\n"
        "  if len(seen) < 2_000: todo.add(f'{x[:2]}{len(seen)}')",
    ],
)
def test_ordinary_work_is_not_stopped(code: str) -> None:
    Session().run(code)


@pytest.mark.parametrize(
    "code",
    [
        "from fractions import Fraction\nf = Fraction(3 ** 8_000, 7 ** 7_000)\nwhile True: f % 7",
        "n = 3 ** 80_000\nkept = []\nwhile True: kept.append(n + 1)",
        "n = 3 ** 80_000\nkept = []\nwhile True: kept.append(-n)",
        "n = 3 ** 80_000\nkept = []\nwhile True: kept.append(n >> 1)",
        "'%(key)1000000000d' % {'key': 1}",
        "'%(a(b)c)1000000000d' % {'a(b)c': 1}",
        "'%.1000000000f' % 1.5",
        "'{x:{y[0]}}'.format_map({'x': 1, 'y': [10**9]})",
        "import itertools\nlist(itertools.accumulate(['a' * 999] * 9_999))",
        "import re\nre.match('(.*)', 'a' * 10**5).expand('\\\\1' * 10**5)",
        "import re\nre.match('(a+)+$', 'a' * 3).re.match('a' * 40 + 'b')",
        "g = [[0] * 50_000, [0] * 50_000]\nsorted(range(10**5), key=lambda i: g[i % 2])",
        "g = [[0] * 50_000, [0] * 50_000]\n[g[i % 2] for i in range(10**5)].count(g[0][:])",
        "x = [0] * 10**6\nwhile True: del x[0]; x.append(0)",
        "from collections import Counter\nlist(Counter('a').elements().from_iterable([[0] * 10**6] * 10**5))",
        "d = dict.fromkeys(range(10_000))\nwhile True: d.keys() & d.keys()",
        "from datetime import datetime\ndatetime.strptime('x' * 10**5, 'x' * 10**5)",
        "import json\nx = []\nfor i in range(300): x = [x]\njson.dumps(x, indent=10**6)",
        "[10**10].sort(key=bytes)",
        "max([10**10], key='x'.ljust)",
        "hash('a' * 10**6)\ns = 'a' * 10**6\nwhile True: hash(s)",
    ],
)
def test_what_was_free_once_is_stopped(code: str) -> None:
    began = time.process_time()
    with pytest.raises(BudgetExceeded):
        Session().run(code)
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "code", ["range(2 ** 2_000)", "range(9)[::3 ** 80_000]", "[*map(range, [2 ** 2_000])]"]
)
def test_a_range_of_integers_with_hundreds_of_digits_is_refused(code: str) -> None:
    with pytest.raises(
        BudgetExceeded,
        match=r"^the code made a range of integers of more than 2,000 bits; the likely cause is a power",
    ):
        Session().run(code)
    Session().run("assert 2 ** 1_998 in range(2 ** 1_999)[::2]")


def keep_a_text_each_turn(env: PyEnv, budget: ExecutionBudget, *, names: int) -> None:
    for turn in range(40):
        budget.reset()
        check_kept(env, budget)
        budget.allocate(900_000)
        env.local_state[f"text_{turn % names}"] = "a" * 900_000 + str(turn)
        note_built(env, budget)


def test_what_a_job_keeps_from_block_to_block_is_bounded() -> None:
    env = PyEnv()
    with pytest.raises(
        BudgetExceeded, match=r"^the job keeps more than 4,000,000 bytes of data from turn to turn"
    ):
        keep_a_text_each_turn(env, ExecutionBudget(allocation=1_000_000), names=40)
    assert len(env.local_state) == 5


def test_what_is_built_and_forgotten_is_not_kept() -> None:
    env = PyEnv()
    keep_a_text_each_turn(env, ExecutionBudget(allocation=1_000_000), names=2)
    assert len(env.local_state) == 2


def test_a_value_kept_under_two_names_or_inside_itself_weighs_once() -> None:
    text = "a" * 10_000
    ring: list[object] = [text]
    ring.append(ring)
    assert weight({"a": text, "b": text, "c": ring}, 10**9) < 11_000
    assert weight({"wide": "\u20ac" * 10_000}, 10**9) > 40_000
