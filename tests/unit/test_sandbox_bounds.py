"""What the deterministic bounds count, and what they leave alone."""

from __future__ import annotations

import random

import pytest

from statek_sim.runtime.state.pyenv import PyEnv, check_kept, weight
from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.ordered_set import OrderedSet
from tests.soon import soon
from tests.tables import table_test
from tests.unit.sandbox_session import Session


def test_ten_thousand_strings_are_popped_from_a_set_in_order_and_soon() -> None:
    session = Session()
    with soon():
        session.run("s = {str(i) for i in range(4_000)}\nout = []\nwhile s: out.append(s.pop())")
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


@table_test(
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


def keep_a_text_each_turn(env: PyEnv, budget: ExecutionBudget, *, names: int) -> None:
    for turn in range(40):
        budget.reset()
        check_kept(env, budget)
        env.local_state[f"text_{turn % names}"] = "a" * 900_000 + str(turn)


def test_what_a_job_keeps_from_block_to_block_is_bounded() -> None:
    env = PyEnv()
    with pytest.raises(
        BudgetExceeded, match=r"^the job keeps more than 4,000,000 bytes of data across turns"
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
