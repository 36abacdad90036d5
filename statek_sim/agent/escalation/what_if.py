"""What every other ladder would have cost and solved, from recorded outcomes; what nobody recorded stays unknown.

A level that a task never reached was not tried on it. Its result is not guessed: such a task is unknown to a ladder
that needs it, and the share of solved tasks has bounds: as if all of the unknown were unsolved, and as if all were
solved. The known tasks of a ladder that begins higher are the hard ones: only those got there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.agent.escalation.causes import REACTIONS, Cause
from statek_sim.errors import BadInput
from statek_sim.intervals import of_mean, wilson
from statek_sim.trace import Event
from statek_sim.unreadable import text_of, why_another
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

    `ends`: it failed by what no other level could help with, which ends any ladder. `spent`: that was a budget or a
    limit of the whole run, so that it says nothing of a ladder on which other levels had used of it before.
    """

    solved: bool
    tokens: int
    cost: Decimal | None
    ends: bool = False
    spent: bool = False


@dataclass(slots=True)
class Outcomes:
    """Results by task and level, those of a task in the order in which it was tried on them."""

    tasks: dict[str, dict[str, Result]] = field(default_factory=dict)

    def add(self, task: str, level: str, attempt: Result) -> None:
        """Note an attempt; those of one level add up, and one that others follow has not ended the ladder."""
        results = self.tasks.setdefault(task, {})
        for name, earlier in results.items():
            results[name] = replace(earlier, ends=False)
        before = results.get(level)
        if before is not None:
            cost = None if before.cost is None or attempt.cost is None else before.cost + attempt.cost
            attempt = replace(
                attempt,
                solved=before.solved or attempt.solved,
                tokens=before.tokens + attempt.tokens,
                cost=cost,
            )
        results[level] = attempt

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels in the order of the ladder: after those that any task was tried on before.

        What no task decides, or tasks decide differently, is in the order in which the levels were first met.
        """
        met = dict.fromkeys(level for results in self.tasks.values() for level in results)
        before: dict[str, set[str]] = {level: set() for level in met}
        for results in self.tasks.values():
            for at, level in enumerate(results):
                before[level].update(list(results)[:at])
        order: list[str] = []
        while len(order) < len(met):
            left = [level for level in met if level not in order]
            order.append(next((level for level in left if before[level] <= set(order)), left[0]))
        return tuple(order)


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
    levels = outcomes.levels
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
    return sorted(
        found, key=lambda ladder: (-ladder.least, _dearness(ladder), len(ladder.levels), ladder.levels)
    )


def _dearness(ladder: WhatIf) -> float:
    spent = ladder.tokens if ladder.cost is None else ladder.cost
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
    """Return how a task ends on a ladder; None when a level is asked that was not recorded as this ladder asks it."""
    tokens, cost = 0, Decimal(0)
    priced = True
    tried = list(task)
    for at, level in enumerate(levels):
        result = task.get(level)
        if result is None or (result.spent and tried[: tried.index(level)] != list(levels[:at])):
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
    """Return the 95 % interval of a mean of amounts, which are not below 0."""
    found = of_mean(values)
    return None if found is None else (max(0.0, found[0]), found[1])


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
            attempt = Result(
                solved=cause == "solved",
                tokens=event.tokens,
                # A person has no price; what their time costs is not ours to say.
                cost=Decimal(0) if event.model is None else cost,
                ends=REACTIONS.get(cause) == "stop",
                spent=cause in (Cause.BUDGET, Cause.LIMIT),
            )
            outcomes.add(f"{run}/{event.job}#{units.get(event.job, 0) + 1}", event.level, attempt)


def add_lines(outcomes: Outcomes, path: Path) -> None:
    """Note lines `{"task", "level", "solved", "tokens", "cost"}`; the last two may be missing."""
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if line.strip():
            _add_line(outcomes, line, f"{path}:{number}")


def _add_line(outcomes: Outcomes, line: str, place: str) -> None:
    try:
        record: dict[str, Any] = json.loads(line)
        task, level, solved = record["task"], record["level"], record["solved"]
        tokens, cost = record.get("tokens", 0), record.get("cost")
        if not isinstance(task, str) or not isinstance(level, str):
            raise TypeError("task and level are texts")
        if not isinstance(solved, bool) or isinstance(tokens, bool) or not isinstance(tokens, int):
            raise TypeError("solved is true or false, tokens a whole number")
        if not 0 <= tokens <= MOST_TOKENS:
            raise ValueError(f"tokens are a whole number from 0 to {MOST_TOKENS}")
        amount = _amount(cost)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation, RecursionError) as error:
        raise BadInput(
            f'{place}: expected {{"task", "level", "solved", "tokens", "cost"}}: {why_another(error)}'
        ) from None
    outcomes.add(task, level, Result(solved=solved, tokens=tokens, cost=amount))


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
    return {"schema": SCHEMA, "ladders": [_ladder_json(ladder) for ladder in found]}


def _ladder_json(ladder: WhatIf) -> JSON:
    return {
        "levels": list(ladder.levels),
        "recorded": ladder.recorded,
        "tasks": ladder.tasks,
        "known": ladder.known,
        "solved": ladder.solved,
        "share": ladder.share,
        "interval": None if ladder.interval is None else list(ladder.interval),
        "least": ladder.least,
        "most": ladder.most,
        "tokens": ladder.tokens,
        "tokens_interval": None if ladder.tokens_interval is None else list(ladder.tokens_interval),
        "cost": ladder.cost,
        "cost_interval": None if ladder.cost_interval is None else list(ladder.cost_interval),
    }


def what_if_rows(found: Sequence[WhatIf]) -> Iterator[tuple[str, ...]]:
    """Yield a row of texts for each ladder, the heads first."""
    yield "ladder", "known", "solved, %", "of all, %", "tokens/task", "cost/task"
    for ladder in found:
        yield (
            " > ".join(ladder.levels) + (" (recorded)" if ladder.recorded else ""),
            f"{ladder.known} of {ladder.tasks}",
            "-"
            if ladder.share is None or ladder.interval is None
            else _around(100 * ladder.share, ladder.interval, 100, ".0f"),
            f"{100 * ladder.least:.0f}-{100 * ladder.most:.0f}",
            "-" if ladder.tokens is None else _around(ladder.tokens, ladder.tokens_interval, 1, ",.0f"),
            "-" if ladder.cost is None else "$" + _around(ladder.cost, ladder.cost_interval, 1, ".5f"),
        )


def _around(value: float, interval: tuple[float, float] | None, times: int, form: str) -> str:
    number = format(value, form)
    if interval is None:
        return number
    return f"{number} ({format(times * interval[0], form)}-{format(times * interval[1], form)})"
