"""Idempotency certificates: what becomes of a tool's effect when its worker dies, it runs twice, or two owners act."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from statek_sim import trace as events
from statek_sim.backends.deviations import Place
from statek_sim.explore.invariants import Violation
from statek_sim.explore.result import ToolCertificate
from statek_sim.explore.variation import Undisturbed, Variation
from statek_sim.scenario.events import Deviation
from statek_sim.scenario.schema import JobText
from statek_sim.trace import Event
from statek_sim.values import JSON

SAFE: Final = "safe"
AT_LEAST_ONCE: Final = "at least once"
LEAKS: Final = "leaks"
_CLAIMS: Final = frozenset({"no-claim-leaked", "no-claim-released-twice", "no-claim-taken-twice"})
_ORDER: Final = (SAFE, AT_LEAST_ONCE, LEAKS)
"""From best to worst: of several kills in one phase the worst counts."""

PHASES: Final = ("before", "during", "after")
TWICE: Final = "twice"
OWNERS: Final = "owners"

OTHER: Final = "the-other-owner"
"""The id of the second owner, and what its jobs are called after the first one's."""


class Effects:
    """Collects, kill by kill, what tools did twice and what they left behind."""

    def __init__(self, base: Undisturbed) -> None:
        self._base = base
        self._before = effects_of(base.events)
        self._calls = Counter(
            str(event.name) for event in base.events if isinstance(event, events.ToolCalled)
        )
        self._done = done_by(base.events)
        self._items = frozenset(item for item, _, _ in base.ending.items)
        self._phases = _phases_of_kills(base)
        self._own = {
            name.rpartition(":")[2]
            for text in base.scenario.agents.values()
            for name in text.tools
            if ":" in name
        }
        self.seen: dict[str, dict[str, str]] = {name: {} for name in self._calls}

    @property
    def own(self) -> set[str]:
        """The names of the user's own tools."""
        return self._own

    def note(self, deviations: Sequence[Deviation], variation: Variation, wrong: Iterable[Violation]) -> bool:
        """Take in one run; return whether something outside was done again."""
        again = bool(effects_of(variation.events) - self._before)
        if len(deviations) != 1 or deviations[0].action != "kill":
            return again
        leaked = any(one.invariant == "no-claim-leaked" for one in wrong)
        calls = Counter(str(event.name) for event in variation.events if isinstance(event, events.ToolCalled))
        for tool, when in self._phases.get((deviations[0].kill, deviations[0].silent), ()):
            # What a tool of the user's does outside is not seen here, so that a second call counts.
            twice = again or (tool in self._own and when != "before" and calls[tool] > self._calls[tool])
            self._see(tool, when, LEAKS if leaked else AT_LEAST_ONCE if twice else SAFE)
        done = done_by(variation.events)
        for tool in self._calls:
            if calls[tool] > self._calls[tool]:
                self._see(tool, TWICE, LEAKS if leaked else self._verdict(tool, done))
        return again

    def note_two_owners(self, variation: Variation, wrong: Iterable[Violation]) -> None:
        """Take in a run in which two owners do the same work."""
        leaked = any(one.invariant in _CLAIMS for one in wrong)
        done = done_by(variation.events)
        for tool in self._calls:
            claims = any(subject in self._items for subject, _ in self._done.get(tool, ()))
            self._see(tool, OWNERS, LEAKS if leaked and claims else self._verdict(tool, done))

    def _verdict(self, tool: str, done: Mapping[str, Counter[tuple[str, str]]]) -> str:
        """Return whether a tool did again what it does undisturbed; of the user's own, unseen ones count as done."""
        before, now = self._done.get(tool, Counter()), done.get(tool, Counter())
        unseen = tool in self._own and not now
        return AT_LEAST_ONCE if unseen or any(now[one] > times for one, times in before.items()) else SAFE

    def _see(self, tool: str, when: str, verdict: str) -> None:
        self.seen[tool][when] = max(self.seen[tool].get(when, SAFE), verdict, key=_ORDER.index)


def two_owners(base: Undisturbed) -> Undisturbed | None:
    """Return what is played: every job of an owner a second time, of another owner, who is told the same.

    None where no job has an owner.
    """
    scenario, jobs = base.scenario, dict[str, JobText]()
    for name, text in scenario.jobs.items():
        local = {key: _other(value) for key, value in text.locals.items()}
        if local != dict(text.locals):
            jobs[name] = text.model_copy(update={"locals": local})
    if not jobs:
        return None
    second = {_seconds(name): text for name, text in jobs.items()}
    answers = {
        (_seconds(job), number): each for (job, number), each in base.first_run.answers.items() if job in jobs
    }
    roles = {_seconds(job): role for job, role in base.first_run.roles.items() if job in jobs}
    return replace(
        base,
        scenario=scenario.model_copy(update={"jobs": {**scenario.jobs, **second}, "deviations": ()}),
        first_run=replace(
            base.first_run,
            answers={**base.first_run.answers, **answers},
            roles={**base.first_run.roles, **roles},
        ),
    )


def _seconds(job: str) -> str:
    """Return the name of the second owner's job that does what this one does."""
    return f"{job}-{OTHER}"


def _other(value: JSON) -> JSON:
    """Return a local with the other owner in the place of the first."""
    return {"$world": f"owner:{OTHER}"} if value == {"$world": "owner"} else value


def worst(verdicts: Iterable[str | None]) -> str | None:
    """Return the worst of several verdicts; None where none was seen."""
    return max((one for one in verdicts if one is not None), key=_ORDER.index, default=None)


def effects_of(trace: Iterable[Event]) -> Counter[tuple[str, str]]:
    """Count what was done to the world: lines of the ledger, and claims, completions and marks of work items."""
    return Counter(
        (event.subject, event.change)
        for event in trace
        if isinstance(event, events.WorldChanged) and event.subject != "worker"
    )


def done_by(trace: Iterable[Event]) -> dict[str, Counter[tuple[str, str]]]:
    """Count what each tool did to the world, whoever it did it for."""
    running: dict[str, list[str]] = {}
    found: dict[str, Counter[tuple[str, str]]] = {}
    for event in trace:
        open_calls = running.setdefault(event.job, [])
        match event:
            case events.ToolCalled():
                open_calls.append(str(event.name))
            case events.ToolReturned() if open_calls:
                open_calls.pop()
            case events.WorldChanged(subject=subject) if subject == "worker":
                running.clear()
            case events.WorldChanged() if open_calls:
                # A line of the ledger is whatever the model noted, which may be no text.
                done = (event.subject, str(event.change).partition(" by ")[0])
                found.setdefault(open_calls[-1], Counter())[done] += 1
    return found


def _phases_of_kills(base: Undisturbed) -> dict[Place, set[tuple[str, str]]]:
    """Return, for every kill that is played, the calls it stands for: those of all points with the same state."""
    by_event = _phases(base.events)
    first: dict[str, Place] = {}
    found: dict[Place, set[tuple[str, str]]] = {}
    for point, state in zip(base.points, base.states, strict=True):
        place = first.setdefault(state, point.place)
        phase = by_event.get(point.place[0]) if point.place[1] == 0 else None
        if phase is not None:
            found.setdefault(place, set()).add(phase)
    return found


def _phases(trace: Sequence[Event]) -> dict[int, tuple[str, str]]:
    """Return, for events by number, which tool's call they are in, and how far it is."""
    found: dict[int, tuple[str, str]] = {}
    running: dict[str, list[str]] = {}
    for number, event in enumerate(trace, 1):
        open_calls = running.setdefault(event.job, [])
        match event:
            case events.ToolCalled():
                open_calls.append(str(event.name))
                found[number] = (str(event.name), "before")
            case events.ToolReturned():
                if open_calls:
                    open_calls.pop()
                found[number] = (str(event.name), "after")
            case _ if open_calls:
                found[number] = (open_calls[-1], "during")
    return found


def certificates(effects: Effects) -> tuple[ToolCertificate, ...]:
    """Return a certificate for every tool that was called."""
    return tuple(
        ToolCertificate(
            tool=name,
            own=name in effects.own,
            before=phases.get("before"),
            during=phases.get("during"),
            after=phases.get("after"),
            twice=phases.get(TWICE),
            owners=phases.get(OWNERS),
        )
        for name, phases in sorted(effects.seen.items())
    )
