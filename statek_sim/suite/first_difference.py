"""Where in a run its result began to differ from what was expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice, zip_longest

from statek_sim import trace as events
from statek_sim.suite.result import Mismatch
from statek_sim.trace import Event


def job_of(mismatch: Mismatch) -> str | None:
    """Return the job that a mismatch is about, None when it is about the whole run."""
    keypath = mismatch.keypath
    return str(keypath[1]) if len(keypath) > 1 and keypath[0] == "jobs" else None


def difference_at(trace: Sequence[Event], mismatch: Mismatch) -> int | None:
    """Return the position in `trace` of the event that made the difference.

    None when the difference shows only at the end of the run, or is something that did not happen.
    """
    job = job_of(mismatch)
    aspect = mismatch.keypath[2:] if job is not None else mismatch.keypath
    wanted = _event_sought(aspect, mismatch)
    if wanted is None:
        return None
    is_wanted, number = wanted
    if number >= len(trace):
        return None
    found = (
        position
        for position, event in enumerate(trace)
        if (job is None or event.job == job) and is_wanted(event)
    )
    return next(islice(found, number, None), None)


Sought = tuple[Callable[[Event], bool], int]
"""Which events count, and how many of them come before the one sought."""


def _event_sought(aspect: tuple[str | int, ...], mismatch: Mismatch) -> Sought | None:
    match aspect:
        case ("console",):
            line = _first_difference(mismatch)
            return lambda event: isinstance(event, events.ConsoleLine) and event.index == line, 0
        case ("console", "excludes", int()):
            text = str(mismatch.expected)
            return lambda event: isinstance(event, events.ConsoleLine) and text in event.text, 0
        case ("console", "lines"):
            return lambda event: isinstance(event, events.ConsoleLine), _number(mismatch.expected)
        case ("llm_calls",):
            return lambda event: isinstance(event, events.LLMRequested), _number(mismatch.expected)
        case ("turns",):
            return lambda event: isinstance(event, events.LLMReplied), _number(mismatch.expected)
        case ("handlers",):
            return lambda event: isinstance(event, events.HandlerRan), _first_difference(mismatch)
        case ("delivered",):
            return lambda event: isinstance(event, events.Delivered), _first_difference(mismatch)
        case ("tool_calls",):
            return lambda event: isinstance(event, events.ToolCalled), _first_difference(mismatch)
        case _:
            return None


def _first_difference(mismatch: Mismatch) -> int:
    """Return the position at which two lists begin to differ."""
    expected, actual = mismatch.expected, mismatch.actual
    if not isinstance(expected, list) or not isinstance(actual, list):
        return 0
    pairs = enumerate(zip_longest(expected, actual))
    return next((position for position, (before, now) in pairs if before != now), 0)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
