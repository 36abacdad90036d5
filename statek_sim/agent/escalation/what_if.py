"""What every other ladder would have cost and solved, from recorded outcomes; what nobody recorded stays unknown.

A level that a task never reached was not tried on it. Its result is not guessed: such a task is unknown to a ladder
that needs it, and the share of solved tasks has bounds: as if all of the unknown were unsolved, and as if all were
solved. The known tasks of a ladder that begins higher are the hard ones: only those got there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.agent.escalation.causes import REACTIONS, Cause
from statek_sim.errors import BadInput
from statek_sim.intervals import Z, wilson
from statek_sim.trace import Event
from statek_sim.values import JSON

SCHEMA: Final = "statek-sim/escalation@1"
MOST_LEVELS: Final = 8
"""Levels whose every sub-ladder is looked at: 255."""
MOST_TOKENS: Final = 2**53
"""Tokens of one attempt that are believed; every whole number up to it is a float, too."""
_MOST_DIGITS: Final = 30
"""Digits of a cost before or after its point that are believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a level did with a task in all of its attempts; `cost` is US dollars, None without prices.

    `ends`: it failed by what no other level could help with, which ends any ladder.
    """

    solved: bool
    tokens: int
    cost: Decimal | None
    ends: bool = False


@dataclass(slots=True)
class Outcomes:
    """Results by task and level, and the levels in the order in which they were first met."""

    levels: dict[str, None] = field(default_factory=dict)
    tasks: dict[str, dict[str, Result]] = field(default_factory=dict)

    def add(
        self, task: str, level: str, *, solved: bool, tokens: int, cost: Decimal | None, ends: bool = False
    ) -> None:
        """Note an attempt; those of one level add up."""
        self.levels.setdefault(level)
        results = self.tasks.setdefault(task, {})
        before = results.get(level)
        if before is None:
            results[level] = Result(solved=solved, tokens=tokens, cost=cost, ends=ends)
            return
        both = None if before.cost is None or cost is None else before.cost + cost
        results[level] = Result(
            solved=before.solved or solved, tokens=before.tokens + tokens, cost=both, ends=ends
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """One ladder: of `tasks`, so many are `known` to end by what was recorded, and so many of these are solved.

    `tokens` and `cost` are means of the known tasks, with 95 % intervals. `least` and `most` bound the share of all
    tasks that it solves. `recorded`: it is the ladder that was climbed.
    """

    levels: tuple[str, ...]
    recorded: bool
    tasks: int
    known: int
    solved: int
    share: float | None
    interval: tuple[float, float] | None
    least: float
    most: float
    tokens: float | None
    tokens_interval: tuple[float, float] | None
    cost: float | None
    cost_interval: tuple[float, float] | None


def what_if(outcomes: Outcomes) -> list[WhatIf]:
    """Return every ladder of the recorded levels, in their order; those that surely solve most come first.

    `BadInput` when there are no outcomes, or too many levels.
    """
    levels = tuple(outcomes.levels)
    if not levels:
        raise BadInput(
            "no outcomes; expected attempts of a ladder in traces, or lines with task, level and solved"
        )
    if len(levels) > MOST_LEVELS:
        raise BadInput(
            f"{len(levels)} levels are too many to look at every ladder; expected {MOST_LEVELS} at most"
        )
    found = [
        _played(chosen, outcomes, recorded=chosen == levels)
        for count in range(1, len(levels) + 1)
        for chosen in combinations(levels, count)
    ]
    return sorted(found, key=lambda one: (-one.least, _dearness(one), len(one.levels), one.levels))


def _dearness(one: WhatIf) -> float:
    spent = one.tokens if one.cost is None else one.cost
    return math.inf if spent is None else spent


def _played(levels: tuple[str, ...], outcomes: Outcomes, *, recorded: bool) -> WhatIf:
    ends = [end for task in outcomes.tasks.values() if (end := _end(levels, task)) is not None]
    solved = sum(end.solved for end in ends)
    tasks, known = len(outcomes.tasks), len(ends)
    costs = [float(end.cost) for end in ends if end.cost is not None]
    priced = bool(costs) and len(costs) == known
    tokens = [float(end.tokens) for end in ends]
    return WhatIf(
        levels=levels,
        recorded=recorded,
        tasks=tasks,
        known=known,
        solved=solved,
        share=solved / known if known else None,
        interval=wilson(solved, known),
        least=solved / tasks,
        most=(solved + tasks - known) / tasks,
        tokens=_mean(tokens),
        tokens_interval=_mean_interval(tokens),
        cost=_mean(costs) if priced else None,
        cost_interval=_mean_interval(costs) if priced else None,
    )


def _end(levels: Sequence[str], task: Mapping[str, Result]) -> Result | None:
    """Return how a task ends on a ladder; None when a level is asked that was not recorded."""
    tokens, cost = 0, Decimal(0)
    priced = True
    for level in levels:
        result = task.get(level)
        if result is None:
            return None
        tokens += result.tokens
        if result.cost is None:
            priced = False
        else:
            cost += result.cost
        if result.solved or result.ends:
            return Result(solved=result.solved, tokens=tokens, cost=cost if priced else None)
    return Result(solved=False, tokens=tokens, cost=cost if priced else None)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of a mean, by the normal distribution; None of fewer than two values."""
    if len(values) < 2:
        return None
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = Z * math.sqrt(variance / len(values))
    return max(0.0, mean - half), mean + half


# -- where outcomes come from -----------------------------------------------------------------------------------


def add_trace(outcomes: Outcomes, trace: Iterable[Event], run: str) -> None:
    """Note the attempts of a run; a job's units of work are tasks of their own.

    `BadInput` for an attempt with a cause that is none, or a cost that is no amount.
    """
    units: dict[str, int] = {}
    for event in trace:
        if isinstance(event, events.JobStopped):
            units[event.job] = units.get(event.job, 0) + 1
        elif isinstance(event, events.AttemptEnded):
            try:
                cause, cost = Cause(event.cause), _amount(event.cost)
            except (ValueError, InvalidOperation) as error:
                raise BadInput(f"{run}: AttemptEnded: {type(error).__name__}: {error}") from None
            outcomes.add(
                f"{run}/{event.job}#{units.get(event.job, 0) + 1}",
                event.level,
                solved=cause == "solved",
                tokens=event.tokens,
                ends=REACTIONS.get(cause) == "stop",
                # A person has no price; what their time costs is not ours to say.
                cost=Decimal(0) if event.model is None else cost,
            )


def add_lines(outcomes: Outcomes, path: Path) -> None:
    """Note lines `{"task", "level", "solved", "tokens", "cost"}`; the last two may be missing."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.strip():
            _add_line(outcomes, line, f"{path}:{number}")


def _add_line(outcomes: Outcomes, line: str, place: str) -> None:
    try:
        told: dict[str, Any] = json.loads(line)
        task, level, solved = told["task"], told["level"], told["solved"]
        tokens, cost = told.get("tokens", 0), told.get("cost")
        if not isinstance(task, str) or not isinstance(level, str):
            raise TypeError("task and level are texts")
        if not isinstance(solved, bool) or isinstance(tokens, bool) or not isinstance(tokens, int):
            raise TypeError("solved is true or false, tokens a whole number")
        if not 0 <= tokens <= MOST_TOKENS:
            raise ValueError(f"tokens are a whole number from 0 to {MOST_TOKENS}")
        amount = _amount(cost)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation, RecursionError) as error:
        raise BadInput(
            f'{place}: expected {{"task", "level", "solved", "tokens", "cost"}}: {type(error).__name__}: {error}'
        ) from None
    outcomes.add(task, level, solved=solved, tokens=tokens, cost=amount)


def _amount(cost: object) -> Decimal | None:
    """Return US dollars; raises ValueError or InvalidOperation for what is no amount that can be added up."""
    if cost is None:
        return None
    amount = Decimal(str(cost))
    if not amount.is_finite() or amount < 0 or (amount and abs(amount.adjusted()) > _MOST_DIGITS):
        raise ValueError("cost is US dollars: a finite number from 0 up, of ordinary size")
    return amount


# -- told -------------------------------------------------------------------------------------------------------


def what_if_json(found: Sequence[WhatIf]) -> dict[str, JSON]:
    """Return the ladders for machines."""
    return {"schema": SCHEMA, "ladders": [_ladder_json(one) for one in found]}


def _ladder_json(one: WhatIf) -> JSON:
    return {
        "levels": list(one.levels),
        "recorded": one.recorded,
        "tasks": one.tasks,
        "known": one.known,
        "solved": one.solved,
        "share": one.share,
        "interval": None if one.interval is None else list(one.interval),
        "least": one.least,
        "most": one.most,
        "tokens": one.tokens,
        "tokens_interval": None if one.tokens_interval is None else list(one.tokens_interval),
        "cost": one.cost,
        "cost_interval": None if one.cost_interval is None else list(one.cost_interval),
    }


def what_if_rows(found: Sequence[WhatIf]) -> Iterator[tuple[str, ...]]:
    """Yield a row of texts for each ladder, the heads first."""
    yield "ladder", "known", "solved, %", "of all, %", "tokens/task", "cost/task"
    for one in found:
        yield (
            " > ".join(one.levels) + (" (recorded)" if one.recorded else ""),
            f"{one.known} of {one.tasks}",
            "-"
            if one.share is None or one.interval is None
            else _around(100 * one.share, one.interval, 100, ".0f"),
            f"{100 * one.least:.0f}-{100 * one.most:.0f}",
            "-" if one.tokens is None else _around(one.tokens, one.tokens_interval, 1, ",.0f"),
            "-" if one.cost is None else "$" + _around(one.cost, one.cost_interval, 1, ".5f"),
        )


def _around(value: float, interval: tuple[float, float] | None, times: int, form: str) -> str:
    told = format(value, form)
    if interval is None:
        return told
    return f"{told} ({format(times * interval[0], form)}-{format(times * interval[1], form)})"
