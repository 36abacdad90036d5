"""Accepts results as expectations: turns mismatches into changes to scenario files.

Only the characters of a changed value are replaced; all other comments, quotes, order and layout are preserved. The new
text is parsed and compared before it is written.
"""

from __future__ import annotations

import difflib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statek_sim.atomic_files import replace_file
from statek_sim.errors import BadInput
from statek_sim.scenario.edit import CannotEdit, edited
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.files import SourceText, read
from statek_sim.scenario.problem import Keypath, Problem, dotted
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.scenario.tree import Malformed, parse
from statek_sim.suite.expectations import same, yaml_value
from statek_sim.suite.result import ABSENT, Mismatch, ScenarioResult
from statek_sim.suite.run import profile_known
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The result of `accept`: the changes, and their unified diff over all files.

    `left` contains the mismatches that were not accepted and must be resolved by hand.
    """

    changes: tuple[Change, ...]
    diff: str
    left: tuple[tuple[ScenarioResult, Mismatch], ...]


def accept(results: Iterable[ScenarioResult]) -> Acceptance:
    """Rewrite the expectations of failed scenarios in their files, and add expectations to scenarios without any.

    A failed run, a condition (`contains`, `excludes`, `absent_locals`) and a missing value cannot be accepted; they are
    in the result's `left`. Raises `BadInput` if a file changed since it was loaded or is not writable; files before
    that one have already been rewritten.
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
    """Yield the changes that make all `results` of one scenario pass.

    A value given for a profile in `expect_in` is changed in `expect_in`. A value in `expect` is changed for all
    profiles that share it if all of them failed; a profile with a different result gets its own value in `expect_in`.
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
    """Yield a scenario's first expectations, as one change for `expect` and one for each profile."""
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
    """Yield the most useful first expectations for a run: how the jobs ended, the LLM calls and the claims.

    A failed run yields none.
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
    """Return whether the actual value can replace the expected value in a file."""
    if mismatch.keypath == ("error",) or isinstance(mismatch.keypath[-1], int) or mismatch.actual is ABSENT:
        return False
    written: JSON = yaml_value(mismatch.actual)
    for key in reversed(mismatch.keypath):
        written = {str(key): written}
    try:
        # The format must allow the value, and a file must be able to contain it.
        Expect.model_validate(written)
        json.dumps(written, ensure_ascii=False).encode("utf-8")
    except ValueError:
        return False
    return True


def _states(expect: Expect | None, keypath: Keypath) -> bool:
    """Return whether `expect` gives a value at `keypath`."""
    here: JSON = yaml_value(expect) if expect is not None else None
    for key in keypath:
        if not isinstance(here, dict) or str(key) not in here:
            return False
        here = here[str(key)]
    return expect is not None


_EXPECTATIONS = ("expect", "expect_in")


@dataclass(frozen=True, slots=True)
class Change:
    """One expectation to rewrite; `keypath` starts with `expect` or `expect_in`."""

    scenario_id: str
    keypath: Keypath
    value: JSON


def rewrite_expectations(path: Path, changes: Sequence[Change], *, file_digest: str | None = None) -> str:
    """Rewrite expectations in the scenario file `path`; return the unified diff, empty if nothing changed.

    With `file_digest` (see `Scenario`), the file must be unchanged since it was loaded. Missing key paths are added.
    Raises `BadInput`, and leaves the file unchanged, if the file changed, is not writable or lacks the scenario.
    """
    target = path.resolve()
    source = _read(target)
    if file_digest is not None and source.digest != file_digest:
        raise BadInput(f"{path}: changed since it was loaded; run again")
    _refuse_read_only(path, target)
    rewritten = _rewritten(path, source.text, changes)
    if rewritten == source.text:
        return ""
    _replace(path, target, rewritten, expected=source.digest)
    return _diff(path, source.text, rewritten)


def _rewritten(path: Path, text: str, changes: Sequence[Change]) -> str:
    """Return a scenario file's text with all changes."""
    try:
        root = parse(text)
    except Malformed as error:
        raise BadInput(f"{path}:{error.line}: {error.message}") from error
    scenarios = root.child("scenarios") if root else None
    nodes = scenarios.items if scenarios else []
    positions = {own.value: n for n, node in enumerate(nodes) if (own := node.child("id")) is not None}
    for change in changes:
        if change.scenario_id not in positions:
            raise BadInput(f"{path}: no scenario {change.scenario_id!r} in this file")
        if not change.keypath or change.keypath[0] not in _EXPECTATIONS:
            keys = " or ".join(_EXPECTATIONS)
            raise BadInput(
                f"{path}: {dotted(change.keypath)!r} is not an expectation; only parts of {keys} can be rewritten"
            )
    try:
        return edited(
            text,
            [
                (("scenarios", positions[change.scenario_id], *change.keypath), change.value)
                for change in changes
            ],
        )
    except CannotEdit as error:
        raise BadInput(f"{path}: cannot be rewritten: {error}") from error


def _read(path: Path) -> SourceText:
    source = read(path)
    if isinstance(source, Problem):
        raise BadInput(str(source))
    return source


def _refuse_read_only(path: Path, target: Path) -> None:
    # The mode is checked too: for root every file counts as accessible.
    if not os.access(target, os.W_OK) or not target.stat().st_mode & (
        stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
    ):
        raise BadInput(f"{path}: not writable")


def _replace(path: Path, target: Path, text: str, *, expected: str) -> None:
    """Replace a file's contents atomically; raises `BadInput` if the file has changed since it was read."""

    def unchanged() -> None:
        if _read(target).digest != expected:
            raise BadInput(f"{path}: changed while it was rewritten; run again")

    try:
        replace_file(target, text.encode("utf-8"), check=unchanged)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror}") from error


def _diff(path: Path, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"{path} (before)",
        f"{path} (after)",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
