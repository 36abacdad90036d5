"""Which scenarios cannot run on the real package yet, and why. They are listed, never counted as agreeing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from statek_sim.backends.record import RunRecord
from statek_sim.scenario.references import WorldReference, references_in
from statek_sim.scenario.schema import Scenario

_READS_CLOCK: Final = re.compile(r"\b(?:now|today|utcnow|read_clock)\(")


def unsupported(scenario: Scenario) -> str | None:
    """Return why the installed backend cannot run a scenario, None when it can."""
    return next(_reasons(scenario), None)


def contained(record: RunRecord) -> str | None:
    """Return why a scenario that ran like this on the reference runtime cannot run there, None when it can."""
    if any(job.stop == "contained" for job in record.jobs.values()):
        return "model-written code that the reference runtime contains, while STATEK never ends or dies"
    return None


def _reasons(scenario: Scenario) -> Iterator[str]:
    actions = {event.action for event in scenario.events}
    if actions & {"crash", "restart"}:
        yield "crashes or restarts the worker process"
    if any(event.after is not None for event in scenario.events):
        yield "an event follows a tool call"
    if scenario.loops:
        yield "runs an agentic loop"
    if any(":" in name for text in scenario.agents.values() for name in text.tools):
        yield "brings its own tools"
    if any(_READS_CLOCK.search(code) for code in _code(scenario)):
        yield "reads the wall clock"
    if _hands_over_the_queue(scenario):
        yield "a job's local is the queue itself, which STATEK's store cannot keep"


def _code(scenario: Scenario) -> Iterator[str]:
    for replies in scenario.script.values():
        for reply in replies:
            yield reply.model_dump_json(exclude_unset=True)
    yield from (agent.warmup or "" for agent in scenario.agents.values())
    yield from (job.warmup or "" for job in scenario.jobs.values())


def _hands_over_the_queue(scenario: Scenario) -> bool:
    return any(
        isinstance(reference, WorldReference) and reference.kind == "queue"
        for job in scenario.jobs.values()
        for _, reference in references_in(job.locals)
    )
