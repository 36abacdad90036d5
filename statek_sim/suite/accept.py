"""Taking what happened as what is expected: from mismatches to changes of scenario files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statek_sim.scenario.accept import Change, rewrite_expectations
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.problem import Keypath
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.expectations import same, yaml_value
from statek_sim.suite.result import ABSENT, Mismatch, ScenarioResult
from statek_sim.suite.run import profile_known
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What was rewritten: the changes, their unified diff over all files, and what is left to a person."""

    changes: tuple[Change, ...]
    diff: str
    left: tuple[tuple[ScenarioResult, Mismatch], ...]


def accept(results: Iterable[ScenarioResult]) -> Acceptance:
    """Rewrite the expectations of failed scenarios in their files, and begin those of scenarios that have none.

    A run that failed, a condition (`contains`, `excludes`, `absent_locals`) and something that is not there
    have no value to take over: these are left. Raises BadInput when a file changed since it was loaded or is
    not writable; the files before it are rewritten then.
    """
    by_scenario: dict[str, list[ScenarioResult]] = {}
    for result in results:
        by_scenario.setdefault(result.scenario.id, []).append(result)
    by_file: dict[tuple[Path, str], list[Change]] = {}
    left: list[tuple[ScenarioResult, Mismatch]] = []
    for group in by_scenario.values():
        scenario = group[0].scenario
        by_file.setdefault((scenario.path, scenario.file_digest), []).extend(changes(group))
        for result in group:
            left += [(result, mismatch) for mismatch in result.mismatches if not _acceptable(mismatch)]
    diff = ""
    for (path, digest), found in by_file.items():
        if found:
            diff += rewrite_expectations(path, found, file_digest=digest)
    made = tuple(change for found in by_file.values() for change in found)
    return Acceptance(changes=made, diff=diff, left=tuple(left))


def changes(results: Sequence[ScenarioResult]) -> Iterator[Change]:
    """Yield the changes that make all `results`, of one scenario, pass.

    A value that a profile has to itself in `expect_in` is changed there. Of the profiles that share a value
    in `expect`, those that differ get their own in `expect_in`, unless all agree on the new value.
    """
    scenario = results[0].scenario
    actual: dict[Keypath, dict[Profile, JSON]] = {}
    if not any(expect.model_fields_set for expect in (scenario.expect, *scenario.expect_in.values())):
        yield from _first_changes(results)
    for result in results:
        for mismatch in result.mismatches:
            if _acceptable(mismatch):
                by_profile = actual.setdefault(mismatch.keypath, {})
                by_profile[profile_known(result.profile)] = yaml_value(mismatch.actual)
    for keypath, by_profile in actual.items():
        yield from _changes_at(scenario, keypath, by_profile)


def _first_changes(results: Sequence[ScenarioResult]) -> Iterator[Change]:
    """Yield the beginning of each part of the expectations, as one value: that is laid out for reading."""
    actual: dict[Keypath, dict[Profile, JSON]] = {}
    for result in results:
        for mismatch in _beginnings(result):
            actual.setdefault(mismatch.keypath, {})[profile_known(result.profile)] = yaml_value(
                mismatch.actual
            )
    parts: dict[Keypath, JSON] = {}
    scenario = results[0].scenario
    for keypath, by_profile in actual.items():
        for change in _changes_at(scenario, keypath, by_profile):
            depth = 1 if change.keypath[0] == "expect" else 2
            top, *rest = change.keypath[:depth], *change.keypath[depth:]
            inner: Any = parts.setdefault(top, {})
            for key in rest[:-1]:
                inner = inner.setdefault(key, {})
            inner[rest[-1]] = change.value
    for top, value in parts.items():
        yield Change(scenario.id, top, value)


def _beginnings(result: ScenarioResult) -> Iterator[Mismatch]:
    """Yield what is worth expecting first of a run: how its jobs ended, what it asked, who holds what.

    A run that failed is nothing to expect.
    """
    record = result.record
    if record.error is not None:
        return
    facts: list[tuple[Keypath, object]] = [(("llm_calls",), record.llm_calls)]
    for name, job in record.jobs.items():
        happened = {
            "status": job.status,
            "stop": job.stop,
            "exit": job.exit,
            "exceptions": job.exceptions or None,
        }
        facts += [(("jobs", name, key), value) for key, value in happened.items() if value is not None]
    if result.scenario.world.queue is not None:
        facts += [(("world", "items", name, "status"), item["status"]) for name, item in record.items.items()]
        facts.append((("claims_leaked",), len(record.leaked_claims)))
    for keypath, value in facts:
        found = Mismatch(keypath, ABSENT, value)
        if _acceptable(found):
            yield found


def _changes_at(scenario: Scenario, keypath: Keypath, actual: dict[Profile, JSON]) -> Iterator[Change]:
    def own(profile: Profile) -> Change:
        return Change(scenario.id, ("expect_in", profile, *keypath), actual[profile])

    apart = [profile for profile in actual if _states(scenario.expect_in.get(profile), keypath)]
    yield from map(own, apart)
    sharing = [
        profile
        for profile in scenario.profiles
        if profile not in apart and not _states(scenario.expect_in.get(profile), keypath)
    ]
    differing = [profile for profile in sharing if profile in actual]
    if not differing:
        return
    if len(differing) == len(sharing):
        shared = actual[differing[0]]
        yield Change(scenario.id, ("expect", *keypath), shared)
        differing = [profile for profile in differing if not same(actual[profile], shared)]
    yield from map(own, differing)


def _acceptable(mismatch: Mismatch) -> bool:
    """Return whether the actual value can stand where the expected one stood."""
    if mismatch.keypath == ("error",) or isinstance(mismatch.keypath[-1], int) or mismatch.actual is ABSENT:
        return False
    written: JSON = yaml_value(mismatch.actual)
    for key in reversed(mismatch.keypath):
        written = {str(key): written}
    try:
        # The format must know the value, and a file must be able to hold it.
        Expect.model_validate(written)
        json.dumps(written, ensure_ascii=False).encode("utf-8")
    except ValueError:
        return False
    return True


def _states(expect: Expect | None, keypath: Keypath) -> bool:
    """Return whether `expect` itself says something at `keypath`."""
    here: JSON = yaml_value(expect) if expect is not None else None
    for key in keypath:
        if not isinstance(here, dict) or str(key) not in here:
            return False
        here = here[str(key)]
    return expect is not None
