"""Every scenario under both sides: what changes, what only changes in size, which jobs a preset treats otherwise.

Which rules make the difference is found by changing them one at a time, so it is exact and can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from statek_sim.backends.record import RunRecord
from statek_sim.conformance.compare import Difference
from statek_sim.drift.runs import Runs, Stops, behaviour, bytes_sent, stops
from statek_sim.drift.side import Side, differing_rules
from statek_sim.scenario.schema import Scenario
from statek_sim.semantics import Profile as Rules

Seen = TypeVar("Seen")


def causes(
    before: Rules,
    after: Rules,
    rules: Sequence[str],
    run: Callable[[Rules], RunRecord],
    same: Callable[[RunRecord], bool],
) -> tuple[str, ...]:
    """Return the rules that, changed in `before`, are enough for what `same` recognises as the outcome of `after`.

    None of them can be left out. Begins with all that differ and takes away, in their order, every rule without
    which the outcome stays the same. Where two rules are each enough alone, the later one is told.
    """
    needed = list(rules)
    for rule in rules:
        fewer = [name for name in needed if name != rule]
        if same(run(changed(before, after, fewer))):
            needed = fewer
    return tuple(needed)


def changed(before: Rules, after: Rules, rules: Sequence[str]) -> Rules:
    """Return `before` with these rules of `after`, and its name, which some error texts carry."""
    return replace(before, name=after.name, **{rule: getattr(after, rule) for rule in rules})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A scenario that behaves differently. `causes` are the rules that make the difference."""

    scenario: Scenario
    before: RunRecord
    after: RunRecord
    differences: tuple[Difference, ...]
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized:
    """A scenario that does the same and sends another number of bytes."""

    scenario: Scenario
    before: int
    after: int
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A job that one side stops, fails or hangs and the other does not, or not as early, under the preset.

    `before` and `after`: the bad end with its reason, like `limit: max_turns`, `absent` for a job that does not exist
    on that side, or empty; and the LLM calls by then.
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
        """Return what the upgrade does to the job: stops, releases, stops earlier, stops later or ends otherwise."""
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
    """Return what behaves differently as the scenarios are written, and what only differs in size."""
    runs, rules = Runs(), tuple(differing_rules(before.rules, after.rules))
    found = [change for scenario in scenarios for change in _changes(scenario, before, after, rules, runs)]
    changes = tuple(change for change in found if isinstance(change, Change))
    return changes, tuple(change for change in found if isinstance(change, Resized))


def _changes(
    scenario: Scenario, before: Side, after: Side, rules: Sequence[str], runs: Runs
) -> Iterator[Change | Resized]:
    old, new = runs.of(scenario, before.rules), runs.of(scenario, after.rules)
    found = behaviour(old, new)

    if found:
        reasons = causes(
            before.rules,
            after.rules,
            rules,
            lambda mixed: runs.of(scenario, mixed),
            lambda record: not behaviour(record, new),
        )
        yield Change(scenario=scenario, before=old, after=new, differences=found, causes=reasons)
    elif bytes_sent(old) != bytes_sent(new):
        reasons = causes(
            before.rules,
            after.rules,
            rules,
            lambda mixed: runs.of(scenario, mixed),
            lambda record: bytes_sent(record) == bytes_sent(new),
        )
        yield Resized(scenario=scenario, before=bytes_sent(old), after=bytes_sent(new), causes=reasons)


def find_stops(scenarios: Iterable[Scenario], before: Side, after: Side, preset: str) -> tuple[Stop, ...]:
    """Return the jobs that the two sides treat differently when only the preset limits them."""
    runs, rules = Runs(preset), tuple(differing_rules(before.rules, after.rules))
    return tuple(stop for scenario in scenarios for stop in _stops(scenario, before, after, rules, runs))


def _stops(scenario: Scenario, before: Side, after: Side, rules: Sequence[str], runs: Runs) -> Iterator[Stop]:
    old, new = runs.of(scenario, before.rules), runs.of(scenario, after.rules)
    stopped, then = stops(old), stops(new)
    if stopped == then:
        return
    reasons = causes(
        before.rules,
        after.rules,
        rules,
        lambda mixed: runs.of(scenario, mixed),
        lambda record: stops(record) == then,
    )
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
