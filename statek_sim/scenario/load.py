"""Loads scenario files and reports all their problems together, each with its line.

A file's defaults are merged with each scenario first: mappings are merged, other values replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from statek_sim.errors import BadScenario
from statek_sim.scenario.check import check, jobs_of
from statek_sim.scenario.expect import Expect
from statek_sim.scenario.files import find_files, is_eval_file, located, mapping_in, read
from statek_sim.scenario.locate import findings_of
from statek_sim.scenario.problem import MAX_PROBLEMS, Finding, Keypath, Problem
from statek_sim.scenario.schema import FileHead, Profile, Scenario, ScenarioText
from statek_sim.scenario.tree import Node, find, node_value
from statek_sim.values import JSON

_DEFAULTS: Final = "defaults"
_SCENARIOS: Final = "scenarios"
_OUR_KEY: Final = re.compile(r"""^[{ ]*["']?(suite|defaults|scenarios?)["']?\s*:""", re.MULTILINE)
MOST_NAMED: Final = 5
"""Maximum number of files that an error names."""


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The scenarios without problems, and all problems."""

    scenarios: tuple[Scenario, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A parsed scenario file."""

    path: Path
    digest: str
    root: Node
    defaults: dict[str, JSON]
    suite: str


def load_paths(paths: Iterable[Path | str]) -> LoadResult:
    """Return the scenarios in the files at or under `paths`, in file order, and all problems."""
    given = [Path(path) for path in paths]
    files, found = find_files(given)
    problems = list(found)
    files, others = _without_evals(files, given)
    problems += others
    files, foreign = _without_foreign(files, given)
    problems += foreign
    scenarios: dict[str, Scenario] = {}
    for path in files:
        wrong = 0
        for loaded in _load_file(path):
            if isinstance(loaded, Problem):
                problems.append(loaded)
                wrong += 1
                if wrong == MAX_PROBLEMS:
                    problems.append(Problem(path, 0, 0, f"these were the first {wrong} problems"))
                    break
                continue
            first = scenarios.setdefault(loaded.id, loaded)
            if first is not loaded:
                message = f"duplicate id {loaded.id!r}, first at {first.path}:{first.line}"
                problems.append(Problem(loaded.path, loaded.line, 1, message))
    # A mistake in `defaults` appears in every scenario of the file.
    return LoadResult(tuple(scenarios.values()), tuple(dict.fromkeys(problems)))


def _without_evals(files: Sequence[Path], given: Sequence[Path]) -> tuple[tuple[Path, ...], list[Problem]]:
    """Return the files that are not eval files, and a problem for each given path that contains only eval files."""
    evals = [path for path in files if is_eval_file(path)]
    left = tuple(path for path in files if path not in evals)
    only = [
        path
        for path in given
        if any(file.is_relative_to(path) for file in evals)
        and not any(file.is_relative_to(path) for file in left)
    ]
    message = "contains evals, not scenarios; check them with `statek-sim evals check`"
    return left, [Problem(path, 0, 0, message) for path in only]


def _without_foreign(files: Sequence[Path], given: Sequence[Path]) -> tuple[tuple[Path, ...], list[Problem]]:
    """Return the files that belong to this program, and a problem for each given folder that contains other files."""
    foreign = [path for path in files if path not in given and not _may_hold_scenarios(path)]
    problems = []
    for folder in given:
        within = [path for path in foreign if path.is_relative_to(folder)]
        if within:
            names = ", ".join(str(path.relative_to(folder)) for path in within[:MOST_NAMED])
            more = f" and {len(within) - MOST_NAMED} more" if len(within) > MOST_NAMED else ""
            message = f"contains YAML files that are not scenarios: {names}{more}; pass only scenario files"
            problems.append(Problem(folder, 0, 0, message))
    return tuple(path for path in files if path not in foreign), problems


def _may_hold_scenarios(path: Path) -> bool:
    """Return whether a file has one of the format's own keys.

    Unreadable files count as scenario files, because the loader reports their problem.
    """
    source = read(path)
    return isinstance(source, Problem) or _OUR_KEY.search(source.text) is not None


def load_or_fail(paths: Iterable[Path | str]) -> tuple[Scenario, ...]:
    """Return the scenarios at or under `paths`; raises `BadScenario`, one line `path:line: message` per problem."""
    result = load_paths(paths)
    if result.problems:
        raise BadScenario("\n".join(map(str, result.problems)))
    return result.scenarios


def _load_file(path: Path) -> Iterator[Scenario | Problem]:
    found = mapping_in(path, "scenarios")
    if isinstance(found, Problem):
        yield found
    else:
        yield from _load_root(path, *found)


def _load_root(path: Path, root: Node, digest: str) -> Iterator[Scenario | Problem]:
    """Yield the scenarios and problems in a file whose YAML mapping is `root`."""
    value = node_value(root)
    assert isinstance(value, dict)
    try:
        FileHead.model_validate(value)
    except ValidationError as error:
        yield from (located(path, root, finding) for finding in findings_of(error, value, prefix=()))
    defaults = value.get(_DEFAULTS)
    source = _Source(
        path=path,
        digest=digest,
        root=root,
        defaults=defaults if isinstance(defaults, dict) else {},
        suite=str(value.get("suite") or path.resolve().parent.name),
    )
    scenarios = value.get(_SCENARIOS)
    for position, own in enumerate(scenarios if isinstance(scenarios, list) else []):
        if isinstance(own, dict):
            yield from _load_scenario(source, position, own)


def _load_scenario(source: _Source, position: int, own: dict[str, JSON]) -> Iterator[Scenario | Problem]:
    merged = merge(source.defaults, own)
    at: Keypath = (_SCENARIOS, position)
    try:
        text = ScenarioText.model_validate(merged)
    except ValidationError as error:
        # Problems in the defaults alone were reported with the file's head.
        findings = [
            finding
            for finding in findings_of(error, merged, prefix=at)
            if not _is_shared(source, at, finding)
        ]
    else:
        findings = list(check(text, source.path))
        if not findings:
            node, _ = find(source.root, at)
            yield Scenario.placed(
                text,
                jobs_of(text),
                suite=source.suite,
                path=source.path,
                line=node.line,
                file_digest=source.digest,
            )
    label = own.get("id")
    for finding in findings:
        yield _scenario_problem(
            source, at, finding, label if isinstance(label, str) else f"number {position + 1}"
        )


def _is_shared(source: _Source, at: Keypath, finding: Finding) -> bool:
    """Return whether a finding is in the file's defaults, not in the scenario at `at`."""
    _, own = find(source.root, (*at, *finding.keypath))
    _, shared = find(source.root, (_DEFAULTS, *finding.keypath))
    return shared - 1 > own - len(at)


def _scenario_problem(source: _Source, at: Keypath, finding: Finding, label: str) -> Problem:
    if _is_shared(source, at, finding):
        return located(
            source.path, source.root, Finding((_DEFAULTS, *finding.keypath), f"defaults: {finding.message}")
        )
    message = f"scenario {label!r}: {finding.message}"
    return located(source.path, source.root, Finding((*at, *finding.keypath), message))


def merge(base: JSON, over: JSON) -> JSON:
    """Return `over` merged over `base`: key by key if both are mappings, otherwise `over`, even if it is null."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    merged = dict(base)
    for key, value in over.items():
        merged[key] = merge(base[key], value) if key in base else value
    return merged


def expectations_for(scenario: Scenario, profile: Profile) -> Expect:
    """Return the expectations under `profile`: `expect`, with the profile's `expect_in` merged over it."""
    special = scenario.expect_in.get(profile)
    if special is None:
        return scenario.expect
    return Expect.model_validate(merge(_said(scenario.expect), _said(special)))


def _said(expect: Expect) -> JSON:
    fields: dict[str, JSON] = expect.model_dump(exclude_unset=True)
    return fields
