"""Evaluates a run by the calls that reached the world, the world's state, and the values that the answer cites."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from statek_sim.backends.setup import attribute_at
from statek_sim.evals.outcome import FINAL, Called, FinishedRun, Record
from statek_sim.evals.scenario import Demands, Expected, Instance
from statek_sim.evals.world import Row, Tables
from statek_sim.observed_calls import Call, Trajectory
from statek_sim.scenario.calls import Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict on a run. `completed` is whether the run ended with an answer rather than a limit or an error.

    `score` is the fraction of demands met, from 0 to 1. `passed` is whether the run is completed and all demands are
    met. `problems` contains a line for each unmet demand and each forbidden event.
    """

    completed: bool
    score: float
    passed: bool
    problems: tuple[str, ...] = ()


def judge(instance: Instance, record: Record) -> Verdict:
    """Evaluate a run of an instance."""
    wanted = instance.demands
    tally = _Tally()
    _judge_calls(wanted, record.calls, tally)
    _judge_world(wanted, instance.world.tables, tally)
    _judge_answer(wanted, record, tally)
    _judge_python(instance, record, tally)
    completed = record.stop == FINAL and bool((record.answer or "").strip())
    if not completed:
        tally.problems.insert(0, f"no final answer: stopped by {record.stop!r}")
    return Verdict(
        completed=completed,
        score=tally.score,
        passed=completed and not tally.problems,
        problems=tuple(tally.problems),
    )


@dataclass(slots=True)
class _Tally:
    """Counts a point for each demand met, and subtracts one for each forbidden event."""

    met: int = 0
    of: int = 0
    broken: int = 0
    problems: list[str] = field(default_factory=list)

    def point(self, problem: str, *, met: bool) -> None:
        self.of += 1
        self.met += met
        if not met:
            self.problems.append(problem)

    def harm(self, problem: str) -> None:
        self.broken += 1
        self.problems.append(problem)

    @property
    def score(self) -> float:
        return max(0, self.met - self.broken) / self.of if self.of else 0.0


# -- calls ------------------------------------------------------------------------------------------------------


def _judge_calls(wanted: Demands, calls: Sequence[Called], tally: _Tally) -> None:
    done = [call for call in calls if call.error is None]
    at = 0
    for group in wanted.calls:
        at = _judge_group(group, done, at, tally)
    for pattern in wanted.never_called:
        _judge_word(_trajectory(done).never_called, tally, pattern)
    for pattern, most in wanted.at_most.items():
        _judge_word(_trajectory(calls).at_most, tally, pattern, most)


def _trajectory(calls: Sequence[Called]) -> Trajectory:
    return Trajectory(tuple([Call(call.name, call.arguments, call.result, call.error, 0) for call in calls]))


def _judge_word(expectation: Callable[..., None], tally: _Tally, *wanted: object) -> None:
    """Evaluate the run with one of `Trajectory`'s assertions; a failed assertion is a forbidden event."""
    try:
        expectation(*wanted)
    except AssertionError as error:
        tally.harm(str(error).partition("\n")[0].removesuffix(":"))


def _judge_group(group: Sequence[Expected], done: Sequence[Called], start: int, tally: _Tally) -> int:
    """Evaluate a group of calls, in any order but after `start`; return where the next group may start."""
    free = dict(enumerate(done[start:], start))
    reached, named = start, []
    for expected in group:
        at = next((at for at, call in free.items() if meets(call, expected)), None)
        if at is None:
            named.append(expected)
            continue
        del free[at]
        reached = max(reached, at + 1)
        tally.point("", met=True)
        tally.point("", met=True)
    for expected in named:
        at = next((at for at, call in free.items() if call.name == expected.tool), None)
        late = "" if start == 0 else " after the calls before it"
        if at is None:
            tally.point(f"{expected} did not succeed{late}", met=False)
            tally.of += 1
            continue
        del free[at]
        tally.point("", met=True)
        arguments = ", ".join(f"{key}={value!r}" for key, value in done[at].arguments.items())
        tally.point(f"{expected.tool} was called with {arguments}, expected {expected}{late}", met=False)
    return reached


def meets(call: Called, expected: Expected) -> bool:
    """Return whether a call has the expected tool, and the expected values of the arguments that matter."""
    given = call.arguments
    return call.name == expected.tool and all(
        key in given and _same(given[key], value) if value is not None else given.get(key) is None
        for key, value in expected.arguments.items()
    )


def _same(other: Any, expected: Any) -> bool:
    """Return whether values are equal, ignoring case and surrounding space in strings, and the order of lists."""
    if isinstance(expected, Condition):
        return expected(other)
    if isinstance(expected, list) and isinstance(other, list):
        left = list(expected)
        return len(expected) == len(other) and all(_taken(item, left) for item in other)
    if isinstance(expected, str) and isinstance(other, str):
        return expected.strip().casefold() == other.strip().casefold()
    return isinstance(expected, bool) == isinstance(other, bool) and bool(expected == other)


def _taken(item: Any, left: list[Any]) -> bool:
    at = next((at for at, expected in enumerate(left) if _same(item, expected)), None)
    if at is None:
        return False
    del left[at]
    return True


# -- the world --------------------------------------------------------------------------------------------------


def _judge_world(wanted: Demands, tables: Tables, tally: _Tally) -> None:
    wrong = [
        f"table {name!r}: {difference}"
        for name, rows in wanted.after.items()
        if name not in wanted.ignore and (difference := _difference(rows, tables.get(name, [])))
    ]
    if wanted.changes:
        tally.point("; ".join(wrong), met=not wrong)
    elif wrong:
        tally.harm("; ".join(wrong))


def _difference(expected: Sequence[Row], there: Sequence[Row]) -> str:
    """Return how the rows differ from the expected ones, ignoring order; empty if they do not differ."""
    if expected == there:
        return ""
    left = list(there)
    lost = []
    for row in expected:
        if row in left:
            left.remove(row)
        else:
            lost.append(row)
    if not lost and not left:
        return ""
    parts = [f"there is no {row}" for row in lost[:2]] + [f"there is {row}, not expected" for row in left[:2]]
    return ", ".join(parts)


# -- the answer -------------------------------------------------------------------------------------------------


def _judge_answer(wanted: Demands, record: Record, tally: _Tally) -> None:
    answer = plain(record.answer or "")
    for texts, cited in wanted.cites:
        for text in texts:
            if not says(answer, text):
                tally.point(f"the answer does not cite {text!r}", met=False)
            elif cited.computed or _was_shown(text, cited.found_by, record.calls):
                tally.point("", met=True)
            else:
                where = f"result of {cited.found_by}" if cited.found_by else "result"
                tally.point(f"the answer says {text!r}, which is in no {where}", met=False)
    for text in wanted.avoids:
        if says(answer, text):
            tally.harm(f"the answer says {text!r}, which it should not")


def _was_shown(text: str, tool: str | None, calls: Iterable[Called]) -> bool:
    """Return whether a result contained the text. An error counts only for a named tool, since errors repeat input."""
    shown = [
        call.result if call.error is None or tool is None else call.error
        for call in calls
        if tool is None or call.name == tool
    ]
    return any(says(plain(value), text) for value in shown if value is not None)


# -- the user's own check ---------------------------------------------------------------------------------------


def _judge_python(instance: Instance, record: Record, tally: _Tally) -> None:
    """Evaluate the run with the check's Python function, for one point; a problem or an exception loses the point."""
    name = instance.scenario.check.python
    if name is None:
        return
    scenario = instance.scenario
    judging = attribute_at(f"{scenario.path}:{scenario.line}: eval {scenario.id!r}: check.python", name)
    run = FinishedRun(
        answer=record.answer,
        calls=record.calls,
        before=instance.world.before,
        after=instance.world.tables,
        facts=instance.facts,
    )
    try:
        found = judging(run)
        problems = [found] if isinstance(found, str) else [str(problem) for problem in found or ()]
    except Exception as error:  # noqa: BLE001  # the user's code
        problems = [f"{name} raised {type(error).__name__}: {error}"]
    tally.point("; ".join(problems), met=not problems)


_THOUSANDS = re.compile(r"(?<=\d)[,\u202f\u00a0'](?=\d{3}(?!\d))")
_SPACES = re.compile(r"\s+")


@lru_cache(maxsize=512)
def plain(text: str) -> str:
    """Return text in lower case, with single spaces, and without thousands separators in numbers."""
    return _SPACES.sub(" ", _THOUSANDS.sub("", text)).casefold()


def says(answer: str, text: str) -> bool:
    """Return whether a string returned by `plain` contains `text` as whole words or as a whole number."""
    return _pattern(text).search(answer) is not None


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    words = plain(text.strip())
    number = re.fullmatch(r"-?\d+(\.\d+)?", words)
    if not number:
        return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")
    more = "0*" if number[1] else r"(?:\.0+)?"
    minus = "" if words.startswith("-") else r"(?<!\d-)"
    return re.compile(rf"(?<![\d.]){minus}{re.escape(words)}{more}(?!\.?\d)")
