"""Code that the reference runtime stops, and what becomes of it on the real package, which stops nothing.

A rule per bound says which end there is the same thing. Until that moment both runs have to be the same, event by
event; what the reference runtime does afterwards has no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim import trace as events
from statek_sim.backends.record import RunRecord
from statek_sim.trace import Event

CORRESPONDING: Final = (
    ("loop iterations", "NeverEnds"),
    ("a regular expression needed more than", "NeverEnds"),
    ("bytes of data", "OutOfMemory"),
    ("would run the same reply again", "Repeats"),
    ("ends STATEK's worker process", "Ends"),
    ("which never ends", "NeverEnds"),
    ("from the left", "Misreads"),
    ("dbzero ends STATEK's process here", "Dies"),
)
"""What the reference runtime says when it stops code, and how the same code ends on the real package."""

ENDINGS: Final = ("NeverEnds", "OutOfMemory", "Ends")


@dataclass(frozen=True, slots=True)
class Ending:
    """Where the reference runtime stops code: the number of events before, and what is to happen there instead.

    `there` is the number of events before it on the real package, which makes no remarks.
    """

    position: int
    there: int
    expected: str


def ending(reference: RunRecord) -> Ending | None:
    """Return where the reference runtime first stopped code, None when it did not."""
    trace = reference.events
    for position, event in enumerate(trace):
        if isinstance(event, events.JobStopped) and event.reason == "contained":
            begin = _begin(trace, position)
            remarks = sum(isinstance(before, events.StoreRemark) for before in trace[:begin])
            return Ending(begin, begin - remarks, _expected(event.detail or ""))
    return None


def _begin(trace: Sequence[Event], stopped: int) -> int:
    """Return how many events come before those that tell of the stop: code, console, status."""
    job = trace[stopped].job
    begin = stopped
    while begin and trace[begin - 1].job == job and _tells_of_the_stop(trace[begin - 1]):
        begin -= 1
    return begin


def _tells_of_the_stop(event: Event) -> bool:
    match event:
        case events.CodeExecuted():
            return event.outcome == "contained"
        case events.ConsoleLine():
            return event.text.startswith(f"Job {event.job} was stopped: ")
        case events.StatusChanged():
            return event.new == "DONE"
        case _:
            return False


def _expected(detail: str) -> str:
    for reason, end in CORRESPONDING:
        if reason in detail:
            return end
    return f"contained: {detail}"


def real_ending(installed: RunRecord, stop: Ending) -> str:
    """Return how a run ended on the real package, or what it did instead from where the reference runtime stopped it.

    `Misreads`: dbzero took something of Python's for a list of its own, which ends the process or is answered with an
    error without sense, as memory happens to be.
    `Repeats`: an exception that STATEK's worker lets through ended the step, and the next step of the job began to
    execute the same code, without a request in between. Whether that goes on for ever depends on the code.
    """
    if installed.error is not None and installed.error.type in ENDINGS:
        return installed.error.type
    after = installed.events[stop.there :]
    if stop.expected == "Misreads" and (died(installed) or _errs(after)):
        return stop.expected
    if died(installed):
        return "Dies"
    if _repeats(after):
        return "Repeats"
    if after and isinstance(after[0], events.ConsoleLine):
        return f"goes on: {after[0].text}"
    return "goes on" if installed.error is None else f"{installed.error.type}: {installed.error.message}"


def died(installed: RunRecord) -> bool:
    """Return whether the process of a run ended by itself: what it had seen last and not told yet is lost with it."""
    error = installed.error
    if error is None:
        return False
    return error.type == "Ends" or (
        error.type == "Lost" and error.message.startswith("its process died with SIG")
    )


def _errs(after: Sequence[Event]) -> bool:
    return bool(after) and isinstance(after[0], events.ConsoleLine) and after[0].error is not None


def _repeats(after: Sequence[Event]) -> bool:
    if not after or not isinstance(after[0], events.CodeExecuted) or after[0].outcome != "contained":
        return False
    of_the_job = (event for event in after[1:] if event.job == after[0].job)
    return isinstance(next(of_the_job, None), events.StepStarted)
