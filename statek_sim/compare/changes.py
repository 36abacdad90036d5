"""Runs scenarios on both sides of an upgrade and finds changes in behaviour, request sizes and stopped jobs.

Rules are changed one at a time to find those that cause a change, so the result is exact and repeatable.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest
from typing import Final

from statek_sim.backends.installed.peer import Peer, profile_of_peer
from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.compare.facts import Difference, differences, facts_of
from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput
from statek_sim.harness.limits import LIMITS
from statek_sim.scenario.schema import STATEK_PROFILES, Limits, Profile, Scenario
from statek_sim.semantics import RELEASES, profile_named, profile_of
from statek_sim.semantics import Profile as Rules
from statek_sim.values import JSON

DOCUMENTATION: Final = "documentation"
"""An alias for the `docs` profile."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: the name given by the user, and its profile."""

    name: str
    profile: Profile

    @property
    def rules(self) -> Rules:
        """The rules of the profile."""
        return profile_named(self.profile)

    @property
    def version(self) -> str | None:
        """The release version, or None if the user gave a profile."""
        return self.name if self.name not in STATEK_PROFILES else None


def side_named(name: str) -> Side:
    """Return the side for a profile name or a release version; raises `BadInput` for an unknown name.

    A profile takes precedence: `1.2.5` is both a profile name and a release version.
    """
    called = "docs" if name == DOCUMENTATION else name
    own = next((profile for profile in STATEK_PROFILES if profile == called), None)
    profile = own if own is not None else profile_of(called)
    if profile is None:
        known = (
            *STATEK_PROFILES,
            *(release.version for release in RELEASES if release.version not in STATEK_PROFILES),
        )
        problem = f"{name!r} is not a known release or profile; expected one of: {', '.join(known)}"
        raise BadInput(with_suggestion(problem, name, known))
    return Side(called, profile)


def is_interpreter(word: str) -> bool:
    """Return whether an argument is a file path rather than a profile or release name."""
    return os.sep in word or os.path.isfile(word)


def side_of(python: str) -> Side:
    """Return the side for an interpreter: its STATEK release. Raises `BadInput` if STATEK is not installed for it."""
    with Peer(python) as peer:
        return Side(peer.version, profile_of_peer(peer))


def check_interpreter(python: str, before: Side, after: Side) -> None:
    """Raise `BadInput` if an interpreter's STATEK release is neither of the two sides."""
    own = side_of(python)
    if not any(side.version in (None, own.name) and side.profile == own.profile for side in (before, after)):
        raise BadInput(
            f"--python {python}: has statek {own.name}, which is neither {before.name} nor {after.name}"
        )


def differing_rules(before: Rules, after: Rules) -> Iterator[str]:
    """Yield the rules that differ between two profiles, in `Profile` field order."""
    for spec in fields(Rules):
        if spec.name != "name" and getattr(before, spec.name) != getattr(after, spec.name):
            yield spec.name


def comparable(scenario: Scenario, before: Side, after: Side) -> bool:
    """Return whether a scenario applies to either side."""
    return scenario.compared_under(before.profile) or scenario.compared_under(after.profile)


SIZES: Final = frozenset({"bytes_sent", "bytes_received", "approx_tokens", "reported_tokens"})
"""Fields for the size of a job's traffic; nearly every change to a tool description affects them."""


class Runs:
    """The scenarios' runs on both sides; each run is made only once.

    `preset` replaces the scenarios' presets and their own limits.
    """

    def __init__(self, before: Side, after: Side, preset: str | None = None) -> None:
        self._before, self._after = before.rules, after.rules
        self._differing = tuple(differing_rules(before.rules, after.rules))
        self._preset = preset
        self._made: dict[tuple[str, Rules], RunRecord] = {}

    def both(self, scenario: Scenario) -> tuple[RunRecord, RunRecord]:
        """Return a scenario's records on both sides."""
        return self._run(scenario, self._before), self._run(scenario, self._after)

    def causes(self, scenario: Scenario, same: Callable[[RunRecord], bool]) -> tuple[str, ...]:
        """Return the rules that must change so that `same` accepts the run on the earlier side."""
        return causes(
            self._before, self._after, self._differing, lambda mixed: self._run(scenario, mixed), same
        )

    def _run(self, scenario: Scenario, rules: Rules) -> RunRecord:
        key = (scenario.id, rules)
        if key not in self._made:
            if self._preset is None:
                self._made[key] = run_scenario(scenario, rules)
            else:
                bare = scenario.model_copy(update={"limits": Limits()})
                self._made[key] = run_scenario(bare, rules, preset=self._preset)
        return self._made[key]


def behaviour(before: RunRecord, after: RunRecord) -> tuple[Difference, ...]:
    """Return the differences between two runs, except in traffic size."""
    return tuple(
        difference
        for difference in differences(facts_of(before), facts_of(after))
        if difference.field.rpartition(".")[2] not in SIZES
    )


def bytes_sent(record: RunRecord) -> int:
    """Return the total bytes of a run's requests."""
    return sum(job.usage.bytes_sent for job in record.jobs.values())


Stops = Mapping[str, tuple[str, int]]
"""Jobs that ended badly: the kind (`limit`, `failure` or `hang`) with its reason, and the number of LLM calls."""


def stops(record: RunRecord) -> Stops:
    """Return a run's jobs that were stopped by a limit, failed or hang."""
    found = {name: (_bad_end(job, record), job.llm_calls) for name, job in record.jobs.items()}
    return {name: (end, calls) for name, (end, calls) in found.items() if end}


def _bad_end(job: JobRecord, record: RunRecord) -> str:
    if record.error is not None and record.error.type in ("Livelock", "RunawayJob"):
        # The error names the only job that it concerns.
        return f"hang: {record.error.type}" if repr(job.name) in record.error.message else ""
    if job.stop in LIMITS:
        return f"limit: {job.stop}"
    return f"failure: {job.stop}" if job.stop in ("crash", "warmup", "contained") else ""


def causes(
    before: Rules,
    after: Rules,
    rules: Sequence[str],
    run: Callable[[Rules], RunRecord],
    same: Callable[[RunRecord], bool],
) -> tuple[str, ...]:
    """Return the rules whose change in `before` is enough for an outcome that `same` accepts.

    The set is minimal: starting from all differing rules, each rule that does not affect the outcome is removed, in
    order. If either of two rules is enough on its own, the later one is returned.
    """
    needed = list(rules)
    for rule in rules:
        fewer = [name for name in needed if name != rule]
        if same(run(changed(before, after, fewer))):
            needed = fewer
    return tuple(needed)


def changed(before: Rules, after: Rules, rules: Sequence[str]) -> Rules:
    """Return `before` with these rules from `after`, and with the name of `after`, which some errors contain."""
    return replace(before, name=after.name, **{rule: getattr(after, rule) for rule in rules})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A scenario that behaves differently on the two sides; `causes` are the rules that cause the change."""

    scenario: Scenario
    before: RunRecord
    after: RunRecord
    differences: tuple[Difference, ...]
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized:
    """A scenario that behaves the same but sends a different number of bytes."""

    scenario: Scenario
    before: int
    after: int
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A job that ends badly on one side under the preset, but not (or not as early) on the other.

    `before` and `after` are the bad ending with its reason, like `limit: max_turns`; `absent` for a job that does not
    exist on that side; or empty. `calls_before` and `calls_after` are the numbers of LLM calls up to that point.
    """

    scenario: Scenario
    job: str
    before: str
    after: str
    calls_before: int
    calls_after: int
    causes: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The upgrade's effect on the job: stops, releases, stops earlier, stops later or ends otherwise."""
        if not self.before:
            return "stops"
        if not self.after:
            return "releases"
        if self.calls_before == self.calls_after:
            return "ends otherwise"
        return "stops earlier" if self.calls_after < self.calls_before else "stops later"


def find_changes(
    scenarios: Iterable[Scenario], before: Side, after: Side
) -> tuple[tuple[Change, ...], tuple[Resized, ...]]:
    """Return the scenarios that behave differently, and those that differ only in request size."""
    runs = Runs(before, after)
    found = [change for scenario in scenarios for change in _changes(scenario, runs)]
    changes = tuple(change for change in found if isinstance(change, Change))
    return changes, tuple(change for change in found if isinstance(change, Resized))


def _changes(scenario: Scenario, runs: Runs) -> Iterator[Change | Resized]:
    old, new = runs.both(scenario)
    if found := behaviour(old, new):
        reasons = runs.causes(scenario, lambda record: not behaviour(record, new))
        yield Change(scenario=scenario, before=old, after=new, differences=found, causes=reasons)
    elif bytes_sent(old) != bytes_sent(new):
        reasons = runs.causes(scenario, lambda record: bytes_sent(record) == bytes_sent(new))
        yield Resized(scenario=scenario, before=bytes_sent(old), after=bytes_sent(new), causes=reasons)


def find_stops(scenarios: Iterable[Scenario], before: Side, after: Side, preset: str) -> tuple[Stop, ...]:
    """Return the jobs that end differently on the two sides under the preset's limits alone."""
    runs = Runs(before, after, preset)
    return tuple(stop for scenario in scenarios for stop in _stops(scenario, runs))


def _stops(scenario: Scenario, runs: Runs) -> Iterator[Stop]:
    old, new = runs.both(scenario)
    stopped, then = stops(old), stops(new)
    if stopped == then:
        return
    reasons = runs.causes(scenario, lambda record: stops(record) == then)
    for job in dict.fromkeys((*stopped, *then)):
        if stopped.get(job) == then.get(job):
            continue
        yield Stop(
            scenario=scenario,
            job=job,
            before=_end(old, job, stopped),
            after=_end(new, job, then),
            calls_before=old.jobs[job].llm_calls if job in old.jobs else 0,
            calls_after=new.jobs[job].llm_calls if job in new.jobs else 0,
            causes=reasons,
        )


def _end(record: RunRecord, job: str, found: Stops) -> str:
    if job not in record.jobs:
        return "absent"
    return found[job][0] if job in found else ""


_LONGEST: Final = 160
"""The maximum length of a value."""

_TURN: Final = re.compile(r", turn (\d+), attempt")

_ENDING: Final = ("stop", "status", "exit", "error", "definition_errors")
_COUNTS: Final = {
    "llm_calls": "LLM calls",
    "turns": "turns",
    "exceptions": "exceptions",
    "streak": "failing turns in a row",
    "completions": "completed units",
}
_ONE: Final = {"streak": "failing turn in a row"}
_LISTS: Final = {
    "delivered": "to the user",
    "console": "on the console",
    "history": "in the last prompt",
    "tool_log": "tool results",
    "subtasks": "subtasks",
    "locals": "variables",
    "steps": "steps",
}
_WORLD: Final = {
    "handlers": "error handlers",
    "items": "work items",
    "leaked_claims": "claims left behind",
    "ledger": "side effects",
    "worker": "worker",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One aspect of a change: its subject and a description for each side. An `ending` is how the run or a job ends."""

    about: str
    before: str
    after: str
    ending: bool = False

    def sentence(self, words: str) -> str:
        """Return one side's description as a sentence about the subject."""
        return f"{self.about} {words}" if self.ending else f"{self.about}: {words}"


def told(change: Change) -> tuple[Told, ...]:
    """Return the aspects of a change, most important first: endings, counts, what the model sees."""
    return tuple(_told(change))


def _told(change: Change) -> Iterator[Told]:
    fields = {difference.field: difference for difference in change.differences}
    before, after = change.before, change.after
    if "error" in fields:
        yield Told("the run", _run_error(before), _run_error(after), ending=True)
    for name in dict.fromkeys((*before.jobs, *after.jobs)):
        old, new = before.jobs.get(name), after.jobs.get(name)
        if old is None or new is None:
            yield Told(f"job {name}", _exists(old), _exists(new), ending=True)
        else:
            yield from _job(name, old, new, fields)
    for field, about in _WORLD.items():
        if field in fields:
            yield Told(about, *_first_difference(fields[field]))


def _exists(job: JobRecord | None) -> str:
    return "never exists" if job is None else _ending(job)


def _run_error(record: RunRecord) -> str:
    if record.error is None:
        return "finishes"
    kind, message = record.error.type, record.error.message.splitlines()[0]
    match kind:
        case "ScriptExhausted":
            turn = _TURN.search(message)
            number = f"reply {turn.group(1)}" if turn else "another reply"
            return f"continues: requests {number}, which the scenario does not have"
        case "UnusedEvents":
            return f"ends early: {message}"
        case "UnusedReplies":
            return f"ends early: {message}"
        case "Livelock":
            return f"hangs: {message}"
        case _:
            return f"fails with {kind}: {message}"


def _job(name: str, before: JobRecord, after: JobRecord, fields: dict[str, Difference]) -> Iterator[Told]:
    changed = [key.removeprefix(f"jobs.{name}.") for key in fields if key.startswith(f"jobs.{name}.")]
    counts = [key for key in _COUNTS if key in changed]
    if any(key in _ENDING for key in changed):
        old, new = (_with_counts(_ending(job), job, counts) for job in (before, after))
        yield Told(name, old, new, ending=True)
    elif counts:
        yield Told(name, _with_counts("", before, counts), _with_counts("", after, counts))
    for key, about in _LISTS.items():
        if key in changed:
            yield Told(f"{name}, {about}", *_first_difference(fields[f"jobs.{name}.{key}"]))


def _ending(job: JobRecord) -> str:
    if job.stop in LIMITS:
        return f"is stopped by the harness ({job.error})"
    match job.stop:
        case "exit":
            return f"ends with exit({_shown(job.exit)})"
        case "final":
            return "ends with its reply"
        case "warmup":
            return f"fails in warmup ({', '.join(job.definition_errors)})"
        case "crash":
            return f"fails ({job.error})"
        case "contained":
            return f"never ends by itself ({job.error})"
        case _:
            return f"is left {job.status}"


def _with_counts(ending: str, job: JobRecord, counts: Sequence[str]) -> str:
    counted = ", ".join(_counted(key, getattr(job, key)) for key in counts)
    if not ending:
        return counted
    return f"{ending} after {counted}" if counted else ending


def _counted(key: str, value: int | None) -> str:
    noun = _COUNTS[key]
    return f"{value or 0} {noun if value != 1 else _ONE.get(key) or noun.removesuffix('s')}"


def _first_difference(difference: Difference) -> tuple[str, str]:
    """Return where two values first differ: a list entry, a mapping key, or the whole value."""
    before, after = difference.reference, difference.installed
    if isinstance(before, list) and isinstance(after, list):
        pairs = enumerate(zip_longest(before, after, fillvalue=_NOTHING), start=1)
        number, (old, new) = next((n, pair) for n, pair in pairs if pair[0] != pair[1])
        return _counted_entry(before, number, old), _counted_entry(after, number, new)
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key)]
        return ", ".join(_keyed(before, keys)), ", ".join(_keyed(after, keys))
    return _shown(before), _shown(after)


_NOTHING: Final = object()


def _counted_entry(entries: Sequence[object], number: int, entry: object) -> str:
    if entry is _NOTHING:
        return f"{len(entries)} in total" if entries else "nothing"
    return f"number {number} of {len(entries)}: {_entry(entry)}"


def _entry(value: object) -> str:
    """Describe a list entry: a message's role and text, a delivery's text, or the value."""
    match value:
        case {"role": role, "content": str(content)}:
            return _shown(f"{role}: {content}")
        case {"role": role, "tool_calls": [{"function": {"name": name}}, *_]}:
            return _shown(f"{role} calls {name}")
        case {"body": str(body)}:
            return _shown(body)
        case _:
            return _shown(value)


def _keyed(mapping: dict[str, JSON], keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        yield f"{key}: {_shown(mapping[key])}" if key in mapping else f"no {key}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
