from __future__ import annotations

import re
import warnings
from contextlib import suppress

import pytest

from statek_sim.sandbox import regex_cost
from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.regex_cost import pay_for_search
from statek_sim.sandbox.regex_steps import program_of, steps_to_search
from tests.unit.sandbox_session import Session


def steps(pattern: str, text: str, *, anchored: bool = False, every: bool = False) -> int:
    compiled = re.compile(pattern)
    return steps_to_search(
        program_of(compiled.pattern, compiled.flags), text, 10**6, anchored=anchored, every=every
    )


EXPLODING = [
    (r"(a+)+$", "a" * 40 + "b"),
    (r"(a|aa)+$", "a" * 60 + "b"),
    (r"(\w+\s?)*$", "word " * 20 + "!"),
    (r"(x+x+)+y", "x" * 40),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 60),
    (r"(?=(a+)+$)b", "a" * 50 + "c"),
    (r"(?:a?){30}a{30}", "a" * 30),
    (r"(?i)(A|b|ab)*c", "ab" * 50),
    (r"a*a*a*a*a*b", "a" * 3000),
]


@pytest.mark.parametrize(("pattern", "text"), EXPLODING)
def test_patterns_that_explode_are_stopped_before_they_run(pattern: str, text: str) -> None:
    with pytest.raises(BudgetExceeded, match="a regular expression needed more than"):
        pay_for_search(ExecutionBudget(), re.compile(pattern), text, anchored=False, every=False)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(\d+,)*\d+", "123,456," * 200 + "7"),
        (r"[\w.]+@(?:\w+\.)+\w+", "write to ada@mail.example.org " * 50),
        (r"^\s*(\w+)\s*=\s*(.*?)\s*$", "key = value with spaces"),
        (r"(?:\s*\w+\s*;)+", "one; two; three;" * 100),
        (r"\b\w+\b", "plain words " * 500),
    ],
)
def test_ordinary_patterns_pass(pattern: str, text: str) -> None:
    budget = ExecutionBudget()
    pay_for_search(budget, re.compile(pattern), text, anchored=False, every=True)
    assert budget.iterations < 100_000


def test_a_match_of_the_whole_text_is_ordinary_where_it_succeeds() -> None:
    for pattern, text in ((r"(\w+\s?)+", "the quick brown fox " * 20), (r"\d{4}-\d\d-\d\d", "2024-01-02")):
        budget = ExecutionBudget()
        pay_for_search(budget, re.compile(pattern), text, anchored=True, every=False, whole=True)
        assert budget.iterations < 100_000


def test_steps_grow_with_the_work() -> None:
    assert steps("a+b", "a" * 10) < steps("a+b", "a" * 20) < steps("a+b", "a" * 40)
    assert steps("a", "xxa") == steps("a", "xxa", every=False) < steps("a", "xxaxxa", every=True)
    assert steps("b", "aab", anchored=True) < steps("b", "aab")


def test_a_repeat_of_nothing_ends() -> None:
    assert steps("(a*)*b", "") < 100
    assert steps("(?:)*x", "yyy") < 100


def test_warnings_about_patterns_stay_inside() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Session().run("import re\nre.findall('[[a]+', 'a[')") == ['["a["]']


def test_functions_and_patterns_are_charged_alike() -> None:
    for code in (
        "re.match(p, t)",
        "re.compile(p).match(t)",
        "list(map(re.compile(p).match, [t]))",
        "re.sub(p, '', t)",
    ):
        with pytest.raises(BudgetExceeded):
            Session().run(f"import re\np, t = '(a+)+$', 'a' * 50 + 'b'\n{code}")


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 99 + "a" + ")+" * 99,
        "(" * 60 + "a" + "){2}" * 60,
        "(?:" * 40 + "a" + "){0,9}" * 40 + "b",
        "(" * 80 + "a" + ")+?" * 80 + "!",
        "(?:(?=" * 40 + "a" + "))+" * 40,
    ],
)
def test_repeats_in_one_another_do_not_double_the_program(pattern: str) -> None:
    program = program_of(pattern, re.compile(pattern).flags)
    assert program.written[0] < 50_000
    with suppress(BudgetExceeded):
        pay_for_search(ExecutionBudget(), re.compile(pattern), "a" * 500 + "?", anchored=False, every=False)


def test_no_more_steps_are_counted_than_can_be_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []

    def steps(_program: object, _text: str, limit: int, **_: bool) -> int:
        limits.append(limit)
        return limit + 1

    monkeypatch.setattr(regex_cost, "steps_to_search", steps)
    budget = ExecutionBudget(loop_iterations=1000)
    with pytest.raises(BudgetExceeded, match="ran more than 1,000 loop iterations"):
        pay_for_search(budget, re.compile("(a+)*b"), "a" * 10**5, anchored=True, every=False)
    assert len(limits) == 1
    assert limits[0] <= 2 * 1001
