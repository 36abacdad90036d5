"""Invariants that every run on the statek engine must satisfy under any crash, fault or order; tool certificates.

An invariant is a function that takes a variation and returns None, or a string that describes the problem. Most
built-in invariants compare the run with the base run, because a problem that also occurs in the base run is not caused
by a deviation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from statek_sim import trace as events
from statek_sim.backends.deviation_plan import Place
from statek_sim.explore.player import ANY_ORDER, Invariant, Player, Run, Violation
from statek_sim.explore.result import ToolCertificate
from statek_sim.explore.variation import Ending, Variation
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import Scenario
from statek_sim.trace import Event
from statek_sim.usage.token_usage import approx_tokens

SAFE: Final = "safe"
AT_LEAST_ONCE: Final = "at least once"
LEAKS: Final = "leaks"
_ORDER: Final = (SAFE, AT_LEAST_ONCE, LEAKS)
"""The verdicts, from best to worst. If several kills hit the same phase, the worst verdict counts."""

BEFORE: Final = "before"
DURING: Final = "during"
AFTER: Final = "after"
TWICE: Final = "twice"
OWNERS: Final = "owners"


class Certificates:
    """Collects, across all kills, which tools repeated their work and which left claims behind."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._calls = player.base.tool_calls
        self._phases = _phases_of_kills(player)
        self._seen: dict[str, dict[str, str]] = {name: {} for name in self._calls}

    def note(self, kill: Deviation, run: Run, wrong: Collection[Violation]) -> None:
        """Record a run with exactly one kill."""
        for tool, phase in self._phases.get((kill.kill, kill.silent), ()):
            self._see(tool, phase, run, wrong)
        for tool, times in self._calls.items():
            if run.tool_calls[tool] > times:
                self._see(tool, TWICE, run, wrong)

    def note_two_owners(self, run: Run, wrong: Collection[Violation]) -> None:
        """Record a run in which two owners do the same work, and the violations in `wrong`."""
        for tool in self._calls:
            self._see(tool, OWNERS, run, wrong)

    def _see(self, tool: str, phase: str, run: Run, wrong: Collection[Violation]) -> None:
        verdict = self._player.verdict(run, tool, phase, wrong)
        self._seen[tool][phase] = max(self._seen[tool].get(phase, SAFE), verdict, key=_ORDER.index)

    def of_tools(self) -> tuple[ToolCertificate, ...]:
        """Return a certificate for every tool that was called."""
        own = own_tools(self._player.scenario)
        return tuple(
            ToolCertificate(
                tool=name,
                own=name in own,
                before=phases.get(BEFORE),
                during=phases.get(DURING),
                after=phases.get(AFTER),
                twice=phases.get(TWICE),
                owners=phases.get(OWNERS),
            )
            for name, phases in sorted(self._seen.items())
        )


def _phases_of_kills(player: Player) -> Mapping[Place, set[tuple[str, str]]]:
    """Return the tool calls for each kill that is played. A kill represents all points with the same state."""
    base = player.base
    first: dict[object, Place] = {}
    found: dict[Place, set[tuple[str, str]]] = {}
    for number, (point, state) in enumerate(zip(base.points, base.states, strict=True)):
        place = first.setdefault(state, point.place)
        found.setdefault(place, set()).update(player.phases.get(number, ()))
    return found


def own_tools(scenario: Scenario) -> frozenset[str]:
    """Return the names of the user's own tools (functions)."""
    names = (name for text in scenario.agents.values() for name in text.tools)
    return frozenset(name.rpartition(":")[2] for name in names if ":" in name)


_OWN_ENDS: Final = frozenset({"exit", "final"})
_ITEM_STATUSES: Final = frozenset({"READY", "CLAIMED", "DONE", "ERROR"})
_LATEST: Final = "critical_error_handler"


# -- claims --------------------------------------------------------------------------------------------------------


def no_claim_leaked(variation: Variation) -> str | None:
    """No work item is still claimed after every job has ended."""
    if not _all_done(variation):
        return None
    before = set() if variation.base is None else _claimed(variation.base.ending.items)
    leaked = sorted(_claimed(variation.ending.items) - before)
    return f"{', '.join(leaked)} still claimed after every job has ended" if leaked else None


def _claimed(items: Iterable[tuple[str, str, str | None]]) -> set[str]:
    return {name for name, status, _ in items if status == "CLAIMED"}


def no_claim_released_twice(variation: Variation) -> str | None:
    """No work item without an owner is released or marked as failed."""
    return _odd_changes(variation, frozenset({"READY", "ERROR"}), expected="CLAIMED")


def no_claim_taken_twice(variation: Variation) -> str | None:
    """No work item is claimed while it is held, finished or marked as failed."""
    return _odd_changes(variation, frozenset({"CLAIMED"}), expected="READY")


def _odd_changes(variation: Variation, targets: frozenset[str], *, expected: str) -> str | None:
    found = {one for one in _changes(variation.events) if one[1] in targets and one[2] != expected}
    if variation.base is not None:
        found -= set(_changes(variation.base.events))
    return (
        "; ".join(f"{name} {change} when it was {before}" for name, change, before in sorted(found)) or None
    )


def _changes(trace: Iterable[Event]) -> Iterator[tuple[str, str, str]]:
    """Yield the id, new status and old status for every change to a work item."""
    status: dict[str, str] = {}
    for event in trace:
        # A line of the ledger is a value written by the model, not necessarily a string.
        if isinstance(event, events.WorldChanged) and event.subject != "ledger":
            now = event.change.partition(" ")[0]
            if now in _ITEM_STATUSES:
                yield event.subject, now, status.get(event.subject, "READY")
                status[event.subject] = now


# -- handlers ------------------------------------------------------------------------------------------------------


def handlers_run_at_most_once(variation: Variation) -> str | None:
    """No error handler runs more often than it was registered on its job or the job's parents."""
    parents: dict[str, str | None] = {}
    registered: Counter[tuple[str, str]] = Counter()
    ran: Counter[tuple[str, str]] = Counter()
    for event in variation.events:
        match event:
            case events.JobCreated():
                parents[event.job] = event.parent
            case events.HandlerRegistered():
                registered[event.job, event.name] += 1
            case events.HandlerRan():
                ran[event.job, event.name] += 1
    for (job, name), times in sorted(ran.items()):
        allowed = sum(registered[one, name] for one in _line(job, parents))
        if times > allowed:
            return f"{name} ran {times} times for {job}, registered {allowed} times"
    return None


def _line(job: str, parents: Mapping[str, str | None]) -> Iterator[str]:
    at: str | None = job
    while at is not None:
        yield at
        at = parents.get(at)


def handlers_run_when_a_job_is_stopped(variation: Variation) -> str | None:
    """If a limit or a crash ended a job, all of its error handlers have run by the end of the run.

    Source: "Error Handling".
    """
    if not variation.ending.worker:
        return None
    lost = _lost_handlers(variation.events, variation.ending)
    if variation.base is not None:
        lost -= _lost_handlers(variation.base.events, variation.base.ending)
    return "; ".join(f"{name} of {job} never ran" for job, name in sorted(lost)) or None


def _lost_handlers(trace: Iterable[Event], ending: Ending) -> Counter[tuple[str, str]]:
    """Count the handlers that did not run for jobs ended by a limit or a crash."""
    held: dict[str, Counter[str]] = {}
    for event in trace:
        match event:
            case events.JobCreated():
                held[event.job] = Counter(held.get(event.parent or "", ()))
            case events.HandlerRegistered() if event.name != _LATEST:
                held.setdefault(event.job, Counter())[event.name] += 1
            case events.HandlerRan():
                held.setdefault(event.job, Counter())[event.name] -= 1
    stopped = [name for name, job in ending.jobs if job.status == "DONE" and job.stop not in _OWN_ENDS]
    return Counter(
        {(job, name): left for job in stopped for name, left in held.get(job, Counter()).items() if left > 0}
    )


# -- counters and limits -------------------------------------------------------------------------------------------


def counters_are_not_mixed(variation: Variation) -> str | None:
    """Every job is charged exactly once for each of its answers, and never for another job's answers."""
    answers: Counter[str] = Counter()
    received: Counter[str] = Counter()
    crashes: Counter[str] = Counter()
    for event in variation.events:
        if isinstance(event, events.LLMReplied):
            answers[event.job] += 1
            received[event.job] += event.bytes_received
        elif isinstance(event, events.JobStopped) and event.reason == "crash":
            crashes[event.job] += 1
    for job in variation.runtime.jobs:
        turns = job.usage.turns
        # An answer with invalid usage is charged, but its job ends before the answer becomes an event.
        crashed = crashes[job.id] or job.stop_reason == "crash"
        spare = crashed and 1 + crashes[job.id] + len(variation.steering.deaths)
        if not 0 <= len(turns) - answers[job.id] <= spare:
            return f"{job.id} is charged for {len(turns)} answers but received {answers[job.id]}"
        if len(turns) == answers[job.id] and sum(turn.bytes_received for turn in turns) != received[job.id]:
            return f"{job.id} is charged for a different number of bytes from what it received"
    return None


def limits_hold(variation: Variation) -> str | None:
    """No job that is over a limit sends a request.

    One extra reply is documented: turns are checked before a step, so one reply beyond the limit is stored; tokens are
    checked after a step, so one reply may exceed the limit.
    """
    mine = _overruns(variation.events, variation.requests, variation.runtime.limits)
    if variation.base is not None and not any(one.action == "limit" for one in variation.deviations):
        base = variation.base
        mine -= _overruns(base.events, base.requests, base.limits)
    return "; ".join(f"{job} sends a request over {limit}" for job, limit in sorted(mine)) or None


def _overruns(
    trace: Iterable[Event], requests: Iterable[tuple[str, int]], limits: HarnessLimits
) -> Counter[tuple[str, str]]:
    """Count requests by jobs over a limit, except jobs that were reactivated or raised their difficulty."""
    trace = list(trace)
    excused = {
        event.job for event in trace if isinstance(event, events.Reactivated | events.DifficultyRaised)
    }
    found: Counter[tuple[str, str]] = Counter()
    if limits.max_turns is not None:
        over = (job for job, stored in requests if stored > limits.max_turns and job not in excused)
        found.update((job, LimitName.MAX_TURNS.value) for job in over)
    if limits.max_token_usage is not None:
        over = (job for job, used in _used_at_requests(trace) if used > limits.max_token_usage)
        found.update((job, LimitName.MAX_TOKEN_USAGE.value) for job in over if job not in excused)
    return found


def _used_at_requests(trace: Iterable[Event]) -> Iterator[tuple[str, int]]:
    """Yield each request's job, and STATEK's estimate of the job's tokens before the request."""
    sent: dict[str, int] = {}
    used: dict[str, tuple[int, int]] = {}
    for event in trace:
        if isinstance(event, events.LLMRequested):
            sent[event.job] = event.bytes_sent
            if event.attempt == 1:
                yield event.job, approx_tokens(*used.get(event.job, (0, 0)))
        elif isinstance(event, events.LLMReplied):
            before = used.get(event.job, (0, 0))
            used[event.job] = (before[0] + sent[event.job], before[1] + event.bytes_received)


# -- liveness ------------------------------------------------------------------------------------------------------


def every_job_ends_or_waits(variation: Variation) -> str | None:
    """While a worker is alive, every job that can continue does so."""
    ending = variation.ending
    if not ending.worker:
        return None
    if ending.error is not None:
        base = None if variation.base is None else variation.base.ending.error
        message = "" if variation.error is None else variation.error.message
        return None if base == ending.error else f"the run failed: {ending.error}: {message}"
    if not ending.settled:
        return None
    for name, job in ending.jobs:
        if job.could_go_on:
            return f"{name} waits for a future that is ready"
        if job.status != "DONE" and not job.waits:
            return f"{name} is {job.status}, waits for nothing, and is not stepped"
    return None


def the_system_converges(variation: Variation) -> str | None:
    """After temporary faults, every job that ends in the base run also ends."""
    if variation.base is None or not _over(variation) or not variation.ending.settled:
        return None
    for name, before in variation.base.ending.jobs:
        now = variation.ending.job(name)
        if before.status == "DONE" and now is not None and now.role == before.role and now.status != "DONE":
            return f"{name} is {now.status} at the end, but DONE in the base run"
    return None


def _over(variation: Variation) -> bool:
    """Return whether a worker is alive at the end and all of the run's faults were temporary."""
    lasting = (
        (one.action in ("kill", "lose") and one.restart is None)
        or (one.action == "fault" and one.fault == "401")
        for one in variation.deviations
    )
    return variation.ending.worker and not any(lasting)


def the_order_does_not_matter(variation: Variation) -> str | None:
    """If a scenario is tagged `any-order`, jobs, work items and the ledger end the same in every order."""
    if variation.base is None or ANY_ORDER not in variation.scenario.tags or not variation.known:
        return None
    if any(one.action != "choose" for one in variation.deviations):
        return None
    now, before = variation.ending, variation.base.ending
    for what, mine, theirs in (
        ("jobs", now.jobs, before.jobs),
        ("work items", now.items, before.items),
        ("ledger", sorted(map(repr, now.ledger)), sorted(map(repr, before.ledger))),
    ):
        if mine != theirs:
            return f"{what} differ from those in the base order"
    return None


def _all_done(variation: Variation) -> bool:
    ending = variation.ending
    return ending.worker and ending.settled and all(job.status == "DONE" for _, job in ending.jobs)


BUILT_IN: Final[Mapping[str, Invariant]] = {
    "no-claim-leaked": no_claim_leaked,
    "no-claim-released-twice": no_claim_released_twice,
    "no-claim-taken-twice": no_claim_taken_twice,
    "handlers-at-most-once": handlers_run_at_most_once,
    "handlers-at-least-once": handlers_run_when_a_job_is_stopped,
    "counters-not-mixed": counters_are_not_mixed,
    "limits-hold": limits_hold,
    "every-job-ends-or-waits": every_job_ends_or_waits,
    "the-system-converges": the_system_converges,
    "any-order": the_order_does_not_matter,
}
"""The built-in invariants, keyed by their names in reports."""
