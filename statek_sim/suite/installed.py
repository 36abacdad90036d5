"""Runs scenarios on the real package and compares them with their expectations.

The reference runtime stops some code that the real package runs. For each such case, a table gives the corresponding
ending on the real package. Up to that point, both runs must have equal events; later events in the reference runtime
have no counterpart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.backends.installed.peer import Peer, installed_record
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.providers.http_provider import Exchanges
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.load import expectations_for
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.expectations import compare
from statek_sim.suite.result import Mismatch, ScenarioResult
from statek_sim.trace import Event
from statek_sim.usage.tokenizers import TokenizerRegistry

_OF_A_RUN: Final = ("digest",)
_OF_USAGE: Final = ("measured_tokens", "measured_prompt", "measured_completion", "tokenizer")


def run_one_installed(
    peer: Peer,
    scenario: Scenario,
    profile: Profile,
    *,
    preset: str | None = None,
    seed: int | None = None,
    tokenizers: TokenizerRegistry | None = None,
    exchanges: Exchanges | None = None,
) -> ScenarioResult:
    """Run one scenario on `peer`'s STATEK and compare it with its expectations.

    `exchanges` replaces the scenario's script. If the reference runtime stops a scenario's code, only the ending is
    compared. Expectations for tokenizer counts and the digest are ignored.
    """
    started = time.perf_counter()
    outcome = peer.run(
        scenario, profile, preset=preset, seed=seed, tokenizers=tokenizers, exchanges=exchanges
    )
    record = installed_record(scenario, profile, outcome, seed=scenario.seed if seed is None else seed)
    return ScenarioResult(
        scenario=scenario,
        profile=profile,
        record=record,
        mismatches=_mismatches(scenario, profile, record, preset=preset, seed=seed, exchanges=exchanges),
        seconds=time.perf_counter() - started,
        preset=preset,
    )


def _mismatches(
    scenario: Scenario,
    profile: Profile,
    record: RunRecord,
    *,
    preset: str | None,
    seed: int | None,
    exchanges: Exchanges | None,
) -> tuple[Mismatch, ...]:
    # The user's own tools may use STATEK, which the reference runtime cannot run.
    own = any(":" in tool for agent in scenario.agents.values() for tool in agent.tools)
    stop = (
        None
        if own or exchanges is not None
        else ending(run_scenario(scenario, profile, preset=preset, seed=seed))
    )
    if stop is None:
        return compare(record, answerable(expectations_for(scenario, profile)))
    theirs = real_ending(record, stop)
    return () if theirs == stop.expected else (Mismatch(("ending",), stop.expected, theirs),)


def answerable(expect: Expect) -> Expect:
    """Return the expectations without those for the digest and tokenizer counts, which the real package lacks."""
    fields: dict[str, Any] = expect.model_dump(exclude_unset=True)
    _drop(fields, _OF_A_RUN)
    _drop(fields.get("usage"), _OF_USAGE)
    for job in fields.get("jobs", {}).values():
        _drop(job.get("usage"), _OF_USAGE)
    return Expect.model_validate(fields)


def _drop(fields: dict[str, Any] | None, keys: tuple[str, ...]) -> None:
    for key in keys:
        if fields is not None:
            fields.pop(key, None)


CORRESPONDING: Final = (
    ("loop iterations", "NeverEnds"),
    ("a regular expression needed more than", "NeverEnds"),
    ("bytes of data", "OutOfMemory"),
    ("would run the same reply again", "Repeats"),
    ("ends STATEK's worker process", "Ends"),
    ("which never ends", "NeverEnds"),
    ("the left operand of", "Misreads"),
    ("dbzero ends STATEK's process here", "Dies"),
    ("the reference runtime does not reproduce", "NotReproduced"),
)
"""Parts of the reference runtime's messages when it stops code, and how that code ends on the real package."""

ENDINGS: Final = ("NeverEnds", "OutOfMemory", "Ends")


@dataclass(frozen=True, slots=True)
class Ending:
    """Where the reference runtime stops code: the number of events before, and the expected ending on the real package.

    `there` is the number of events before it on the real package, whose trace has no remarks about the store.
    """

    position: int
    there: int
    expected: str


def ending(reference: RunRecord) -> Ending | None:
    """Return where the reference runtime first stopped code, or None if it did not stop any."""
    trace = reference.events
    for position, event in enumerate(trace):
        if isinstance(event, events.JobStopped) and event.reason == "contained":
            begin = _begin(trace, position)
            remarks = sum(isinstance(before, events.StoreRemark) for before in trace[:begin])
            return Ending(begin, begin - remarks, _expected(event.detail or ""))
    return None


def _begin(trace: Sequence[Event], stopped: int) -> int:
    """Return the number of events before those that report the stop: code, console and status events."""
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
    """Return how a run ended on the real package, or how it continued where the reference runtime stopped.

    `Misreads` means that dbzero mistook a Python object for one of its own lists, which ends the process or gives a
    meaningless error, depending on the state of memory. `NotReproduced` means that any ending is accepted, because the
    reference runtime does not guess what dbzero does. `Repeats` means that an exception that STATEK's worker does not
    catch ended the step, and that the job's next step executed the same code again, without a request in between.
    Whether the step repeats forever depends on the code.
    """
    if stop.expected == "NotReproduced":
        return stop.expected
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
    """Return whether a run's process ended by itself; if so, the last events are missing from the trace."""
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
