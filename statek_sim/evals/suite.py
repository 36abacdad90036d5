"""Loading eval files: everything that is wrong with them at once, each with its line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from statek_sim.errors import BadInput, BadScenario
from statek_sim.evals.checks import findings
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.schema import EvalText, evals_schema
from statek_sim.scenario.files import find_files, is_eval_file, parsed
from statek_sim.scenario.jsonschema import Schema, options_of
from statek_sim.scenario.locate import findings_of, shown
from statek_sim.scenario.problem import MAX_PROBLEMS, Finding, Keypath, Problem
from statek_sim.scenario.tree import Node, find, node_value

EVALS: Final = "evals"


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """What was loaded; `evals` leaves out those with problems."""

    evals: tuple[EvalScenario, ...]
    problems: tuple[Problem, ...]


def load_paths(paths: Iterable[Path | str]) -> LoadedSuite:
    """Return the evals in the files at or under `paths`, in the order of the files, and all problems.

    Other files of a folder are left alone; one that is named has to be an eval file.
    """
    given = [Path(path) for path in paths]
    files, wrong = find_files(given)
    problems = list(wrong)
    evals: dict[str, EvalScenario] = {}
    for path in [path for path in files if path in given or is_eval_file(path)]:
        found_wrong = 0
        for loaded in _load_file(path):
            if isinstance(loaded, Problem):
                problems.append(loaded)
                found_wrong += 1
                if found_wrong == MAX_PROBLEMS:
                    break
                continue
            first = evals.setdefault(loaded.id, loaded)
            if first is not loaded:
                message = f"duplicate id {loaded.id!r}, first at {first.path}:{first.line}"
                problems.append(Problem(path, loaded.line, 1, message))
    if not evals and not problems:
        problems.append(
            Problem(given[0] if given else Path(), 0, 0, "no evals here, expected files with the key 'evals'")
        )
    return LoadedSuite(tuple(evals.values()), tuple(problems))


def load_suite(paths: Iterable[Path | str]) -> tuple[EvalScenario, ...]:
    """Return the evals at or under `paths`; raises BadScenario, one `path:line: message` per problem."""
    loaded = load_paths(paths)
    if loaded.problems:
        raise BadScenario("\n".join(map(str, loaded.problems)))
    return loaded.evals


def _load_file(path: Path) -> Iterator[EvalScenario | Problem]:
    found = parsed(path)
    if isinstance(found, Problem):
        yield found
        return
    root = found.root
    value = None if root is None else node_value(root)
    entries = value.get(EVALS) if isinstance(value, dict) else None
    if root is None or not isinstance(value, dict) or not isinstance(entries, list) or not entries:
        yield Problem(path, 1, 1, f"expected a mapping with a list under 'evals', got {shown(value)}")
        return
    for key in value:
        if key != EVALS:
            yield _problem(path, root, Finding((key,), f"unknown key {key!r}, expected 'evals' alone"))
    for position, entry in enumerate(entries):
        yield from _load_eval(path, root, (EVALS, position), entry)


def _load_eval(path: Path, root: Node, at: Keypath, entry: object) -> Iterator[EvalScenario | Problem]:
    label = str(entry["id"]) if isinstance(entry, dict) and "id" in entry else f"number {int(at[-1]) + 1}"
    try:
        text = EvalText.model_validate(entry)
        wrong = list(findings(text))
    except ValidationError as error:
        wrong = findings_of(error, entry, prefix=at, options=_options)  # type: ignore[arg-type]  # it was read as JSON
    if not wrong:
        node, _ = find(root, at)
        scenario = EvalScenario(text=text, path=path, line=node.line)
        broken = _begins(scenario)
        if broken is None:
            yield scenario
            return
        wrong = [Finding((), broken)]
    yield from sorted(
        _problem(path, root, Finding((*at, *finding.keypath), f"eval {label!r}: {finding.message}"))
        for finding in wrong
    )


@cache
def _schema() -> Schema:
    return evals_schema()


def _options(keypath: Keypath) -> tuple[str, ...]:
    return options_of(_schema(), keypath)


def _begins(scenario: EvalScenario) -> str | None:
    """Return why no instance can be made of an eval, None when one can."""
    try:
        scenario.instance(0)
    except (BadInput, LookupError) as error:
        return f"its world cannot begin: {error}"
    return None


def _problem(path: Path, root: Node, finding: Finding) -> Problem:
    node, _ = find(root, finding.keypath)
    return Problem(path, node.line, node.column, finding.message)
