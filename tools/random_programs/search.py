"""Draws examples with Hypothesis and shrinks those that fail. Only this module uses Hypothesis.

It also lists what the examples leave out, and why: the generators avoid it, and nothing is filtered afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from tools.random_programs.draw import BATCH, Draw
from tools.random_programs.replies import Written
from tools.random_programs.scenarios import scenario

T = TypeVar("T")

MOST_OPTIONS: Final = 99
"""With longer option lists, Hypothesis would pick by numbers that occur in nearby source code."""

MOST_TRIES: Final = 600
"""How often Hypothesis may try to shrink an example; the smallest one found is shown."""

MOST_BATCHES: Final = 1_000_000


class _Decisions:
    """Choices drawn by Hypothesis."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def of(self, options: Sequence[T]) -> T:
        assert 0 < len(options) <= MOST_OPTIONS
        return options[self._draw(_index(len(options)))]

    def part(self, make: Callable[[Draw], T]) -> T:
        made: T = self._draw(_part(make))
        return made

    def some(self, make: Callable[[Draw], T], *, least: int = 0, most: int) -> list[T]:
        return self._draw(st.lists(_part(make), min_size=least, max_size=most))


@cache
def _index(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


@st.composite
def _part(draw: st.DrawFn, make: Callable[[Draw], Any]) -> Any:
    # One for all parts: making a composite strategy takes longer than drawing from it.
    return make(_Decisions(draw))


def example_batch(number: int, batch: int) -> list[Written]:
    """Return a batch of `BATCH` examples, the same wherever this Hypothesis version runs."""
    found: list[Written] = []
    _each(found.append, number, batch, (Phase.generate,))
    # The first is the simplest of all, in every batch.
    return found[1:]


class Found(Exception):
    """A wanted example."""


class Enough(BaseException):
    """Shrinking was tried often enough. Not an example's error, so Hypothesis lets it through."""


def smallest(number: int, batch: int, wanted: Callable[[Written], bool]) -> Written | None:
    """Return the smallest `wanted` example found from a batch, or None if none is wanted."""
    last: list[Written] = []
    tried: dict[str, bool] = {}
    tries = 0

    def attempt(draw: Draw) -> Written:
        # Counted here because most attempts end before there is an example to check.
        nonlocal tries
        tries += 1
        if tries > MOST_TRIES:
            raise Enough
        return scenario(draw)

    def check(example: Written) -> None:
        key = json.dumps(example)
        if key not in tried:
            tried[key] = wanted(example)
        if tried[key]:
            last[:] = [example]
            raise Found

    try:
        _each(check, number, batch, (Phase.generate, Phase.shrink), attempt)
    except (Found, Enough):
        pass
    except Flaky:
        # Broken off in the middle of an attempt, Hypothesis misses the rest of it.
        if tries <= MOST_TRIES:
            raise
    return last[0] if last else None


def _each(
    check: Callable[[Written], None],
    number: int,
    batch: int,
    phases: tuple[Phase, ...],
    make: Callable[[Draw], Written] = scenario,
) -> None:
    @seed(number * MOST_BATCHES + batch)
    @settings(
        max_examples=BATCH + 1,
        phases=phases,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(_part(make))
    def look(example: Any) -> None:
        check(example)

    look()


EXCLUDED: Final[dict[str, str]] = {
    "operations that sometimes end STATEK's process": (
        "Plain value + stored list, and n * stored list. Operations that always end it are included: the process must "
        "die where the reference runtime stops the job."
    ),
    "exit statuses with integers beyond 64 bits": (
        "Python 3.11 detects dbzero's error only in an interpreter that has called `exit` about ten times; each "
        "example has a new one."
    ),
    "printed futures, jobs and work items": (
        "Stored futures, work items and jobs show their private fields. Futures are awaited, never put into a "
        "container. Python's errors include a stored class's module, which differs between the sides for the built-in "
        "world and affects budgets. A status is a string here and an enum member there."
    ),
    "writes to work items": (
        "On the real side, a built-in world item is a stored object separate from the queue: a status written by code "
        "hides the queue's status only from that code, but here it is the queue's status."
    ),
    "token budgets of jobs that crash": (
        "A crash's traceback becomes part of the next prompt, with the machine's paths, whose length differs, so "
        "examples with a fault that kills the job have no tight token budget."
    ),
    "code that starts jobs without end": (
        "Warmup that waits does not start jobs, nor does the warmup of agents whose jobs are started by code, and "
        "compound statements do not wait for jobs they start: all of these would start jobs forever, also on STATEK."
    ),
    "endless loops": "Endless loops hang STATEK's worker, and each takes a second of CPU time to detect.",
    "notifications before 1.4.0": "They do not exist, so examples for profile 1.2 have no such events.",
    "token counts of a tokenizer": (
        "The store's ids in some prompts have the same number of bytes in every run, but not the same number of "
        "tokens."
    ),
    "the time between two checks of a wait in warmup, before 1.3.2": (
        "There, the loop never sleeps, and each entry takes real time on the real package, so both sides of an example "
        "enter every 0.3 s. Scenarios use the profile's own pause."
    ),
}
"""Exclusions by name, with their reasons."""
