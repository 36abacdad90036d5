"""How a run deviates from the uninterrupted run, on either engine.

This includes the requested deviations and the choices made during the run. Trace events are numbered from 1.
Durable changes without an event of their own are numbered from 1 after each event. So a position in a run is
a pair: `(17, 0)` is after event 17, `(17, 2)` is after the second such change following event 17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from statek_sim.errors import BadScenario
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.delivery import deliver, manner
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.script import Reply, fault, timeout
from statek_sim.scenario.events import Deviation, Fault
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event

Place = tuple[int, int]
"""The number of events so far, and the number of durable changes without their own event since the last event."""


class Point(NamedTuple):
    """A position in a run where the worker may die: the last action, the action's job, and the virtual second."""

    place: Place
    what: str
    job: str
    at: float


class Choice(NamedTuple):
    """A choice between ready jobs, listed in their default order, after `after` trace events."""

    after: int
    jobs: tuple[str, ...]


Picks = Callable[[Choice, Sequence[Event]], int]
"""A function that makes the choices for which there is no deviation.

It takes the choice and the events so far, and returns the index of the job that steps next.
"""

FAULTS: Final[Mapping[Fault, Callable[[], Reply]]] = {
    "429": lambda: fault(429),
    "500": lambda: fault(500),
    "timeout": timeout,
    "401": lambda: fault(401),
}
"""The scripted reply for each kind of request failure."""


class DeviationPlan:
    """A run's pending deviations, and the choices made so far.

    `pick` makes the choices that no deviation makes; if None, the first job is chosen.
    """

    def __init__(self, wanted: Sequence[Deviation] = (), pick: Picks | None = None) -> None:
        self.kills = {_dies(one): one for one in wanted if one.action in ("kill", "lose")}
        self.faults = {(one.job, one.reply): one for one in wanted if one.action == "fault"}
        self._firsts = {one.choose: one for one in wanted if one.action == "choose"}
        self._pick = pick
        self._missed: list[str] = []
        self.choices: list[Choice] = []

    def fail(self, request: ChatRequest, reply: int) -> RawReply | None:
        """Return a failure if a deviation makes this request fail, otherwise None. Each deviation applies once."""
        wanted = self.faults.pop((request.job_id, reply), None)
        return None if wanted is None else _failed(request, wanted.fault)

    def choose(self, names: Sequence[str], trace: Sequence[Event]) -> int:
        """Make and record a choice among `names`; return the index of the job that continues first."""
        choice = Choice(len(trace), tuple(names))
        self.choices.append(choice)
        wanted = self._firsts.pop(len(self.choices), None)
        if wanted is not None:
            if wanted.first in choice.jobs:
                return choice.jobs.index(wanted.first)
            self._missed.append(str(wanted))
        return 0 if self._pick is None else self._pick(choice, trace)

    def absent(self) -> tuple[str, ...]:
        """Describe the deviations that did not happen."""
        left = [*self.kills.values(), *self.faults.values(), *self._firsts.values()]
        return (*self._missed, *map(str, left))

    def saved(self) -> dict[str, object]:
        """Return the plan's state for `resume`, as values that a store can keep."""
        return {
            "kills": [*self.kills],
            "faults": [*self.faults],
            "firsts": [*self._firsts],
            "missed": [*self._missed],
            "choices": [tuple(choice) for choice in self.choices],
        }

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Restore the state saved by another process."""
        self.kills = {place: self.kills[place] for place in saved["kills"]}
        self.faults = {place: self.faults[place] for place in saved["faults"]}
        self._firsts = {number: self._firsts[number] for number in saved["firsts"]}
        self._missed.extend(saved["missed"])
        self.choices.extend(Choice(*choice) for choice in saved["choices"])


def refuse(request: ChatRequest) -> RawReply:
    """Reject a request for which the script has no reply. The status is 401, which is never retried."""
    return _failed(request, "401")


def _failed(request: ChatRequest, kind: Fault) -> RawReply:
    return deliver(FAULTS[kind](), request, manner(None, None))


def _dies(deviation: Deviation) -> Place:
    """Return the position where the run is interrupted; for `lose`, the position of the last remaining commit."""
    return (deviation.to_event, 0) if deviation.action == "lose" else (deviation.kill, deviation.silent)


def with_deviations(scenario: Scenario, deviations: Sequence[Deviation]) -> Scenario:
    """Return the scenario with these deviations instead of its own."""
    return scenario.model_copy(update={"deviations": tuple(deviations)})


def with_moved_events(scenario: Scenario) -> Scenario:
    """Return the scenario with its external events at the times set by its `move` deviations."""
    moves = {deviation.move: deviation.to for deviation in scenario.deviations if deviation.action == "move"}
    if not moves:
        return scenario
    if max(moves) > len(scenario.events):
        raise BadScenario(
            f"{scenario.place}: deviations: cannot move event {max(moves)}; number of events: {len(scenario.events)}"
        )
    moved = tuple(
        event.model_copy(update={"at": moves[number], "after": None}) if number in moves else event
        for number, event in enumerate(scenario.events, 1)
    )
    return scenario.model_copy(update={"events": moved})


def with_other_limits(harness: LLM_Harness, deviations: Sequence[Deviation]) -> LLM_Harness:
    """Return the harness, changed to the limits set by `limit` deviations."""
    for deviation in deviations:
        if deviation.action == "limit":
            setattr(harness, str(deviation.limit), deviation.value)
    return harness
