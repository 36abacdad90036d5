"""Reports a failed scenario: the differences, the run up to them, and commands that reproduce the failure.

`difference_at` returns the event at which a run began to differ from the expectation. A scenario that failed under
several profiles gets one report: first what all failures share, then the differences.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Final

from statek_sim import trace as events
from statek_sim.scenario.edit import flow
from statek_sim.scenario.problem import dotted
from statek_sim.suite.expectations import yaml_value
from statek_sim.suite.result import ABSENT, Mismatch, Outcome, ScenarioResult
from statek_sim.suite.transcript import formatted, transcript
from statek_sim.trace import Event

LINES: Final = 40
"""Maximum number of transcript lines before the difference."""

_INDENT: Final = "  "


def failure_text(*failed: ScenarioResult) -> str:
    """Return the report on one scenario that failed under one or several profiles, without a trailing newline.

    The first line contains all mismatches, because failure lists show it next to the scenario's id. A mismatch under
    only some of the profiles names these profiles in brackets. The transcript is from the first profile.
    """
    lines = [*numbered(_problems(failed)), "", *about(failed[0])]
    for shown in transcripts(failed[0]).values():
        lines += ["", *indented(shown)]
    lines += ["", f"{_INDENT}run just this one:"]
    lines += [f"{_INDENT * 2}{command}" for command in (rerun_command(*failed), pytest_command(*failed))]
    return "\n".join(lines)


def problems(result: ScenarioResult) -> list[list[str]]:
    """Return each mismatch as one or more lines."""
    return [describe(result, mismatch) for mismatch in result.mismatches]


def numbered(found: Sequence[Sequence[str]], known: Sequence[Sequence[str]] = ()) -> list[str]:
    """Return a line with all problems, then each problem with its number and details, except those in `known`.

    A single problem has no number.
    """
    if len(found) == 1:
        return [*found[0][: 1 if found[0] in known else None]]
    numbers = [[f"{number}. {first}", *rest] for number, (first, *rest) in enumerate(found, start=1)]
    lines = ["; ".join(problem[0] for problem in numbers)]
    for problem, shown in zip(found, numbers, strict=True):
        if problem not in known:
            lines += ["", *indented(shown)]
    return lines


def about(result: ScenarioResult) -> list[str]:
    """Return the scenario's title and source, and its file and line."""
    scenario = result.scenario
    lines = [f"{_INDENT}{scenario.title}"]
    if scenario.source:
        lines.append(f"{_INDENT}source: {scenario.source}")
    return [*lines, f"{_INDENT}{_shown(scenario.path)}:{scenario.line}"]


def transcripts(result: ScenarioResult) -> dict[str | None, list[str]]:
    """Return the transcripts up to the mismatches, keyed by job; the transcript of the whole run is under None.

    The first line of each transcript is a heading.
    """
    return {job: _transcript(result, job, mismatches) for job, mismatches in _by_job(result).items()}


def rerun_command(result: ScenarioResult, *others: ScenarioResult) -> str:
    """Return the `statek-sim` command that runs only this scenario, under the profiles of all given results."""
    scenario = result.scenario
    command = ["statek-sim", "run", _shown(scenario.path), "--select", scenario.id]
    profiles = [word for run in (result, *others) for word in ("--profile", run.profile)]
    return shlex.join([*command, *profiles, *_overrides(result, "--")])


def pytest_command(result: ScenarioResult, *others: ScenarioResult) -> str:
    """Return the pytest command that runs only this scenario, under the profiles of all given results."""
    path = _shown(result.scenario.path)
    names = [f"{path}::{run.id}" for run in (result, *others)]
    return shlex.join(["pytest", *names, *_overrides(result, "--statek-")])


def describe(result: ScenarioResult, mismatch: Mismatch) -> list[str]:
    """Return one mismatch as one or more lines."""
    name = dotted(mismatch.keypath)
    expected, actual = mismatch.expected, mismatch.actual
    match mismatch.keypath:
        case ("error",) if expected is None:
            first, *rest = str(actual).splitlines()
            return [f"the run failed: {first}", *(_INDENT + line for line in rest)]
        case (*_, "contains", int()):
            return [f"{name}: nothing matches {_text(expected)}", *_held_against(actual)]
        case (*_, "excludes", int()):
            return [f"{name}: expected nothing to match {_text(expected)}", *_held_against(actual)]
        case (*path, "expect_calls" | "never_called" | "at_most" | "within" | "answer_quotes_results", int()):
            first, *rest = str(actual).splitlines()
            return [f"{dotted((*path, mismatch.keypath[-2]))}: {first}", *(_INDENT + line for line in rest)]
        case (*_, "absent_locals", int()):
            return [f"{name}: expected no local variable {expected!r}, but it is {_text(actual)}"]
        case ("claims_leaked",):
            leaked = ", ".join(result.record.leaked_claims) or "none"
            return [f"{name}: expected {_text(expected)}, got {_text(actual)} ({leaked})"]
        case ("jobs", _) if actual is ABSENT:
            return [f"{name}: no such job; jobs: {', '.join(result.record.jobs) or 'none'}"]
        case ("world", "items", _) if actual is ABSENT:
            return [f"{name}: no such item; items: {', '.join(result.record.items) or 'none'}"]
    if _is_long(expected) or _is_long(actual):
        return [f"{name}: differs", *_unified(expected, actual)]
    return [f"{name}: expected {_text(expected)}, got {_text(actual)}"]


def _by_job(result: ScenarioResult) -> dict[str | None, list[Mismatch]]:
    """Return the mismatches, keyed by the job whose transcript explains them; None means the whole run.

    A mismatch in the whole run belongs to the job if there is only one. With several jobs, the run's transcript shows
    all of them, so all mismatches belong to it.
    """
    jobs = tuple(result.record.jobs)
    run = jobs[0] if len(jobs) == 1 else None
    found: dict[str | None, list[Mismatch]] = {}
    for mismatch in result.mismatches:
        job = job_of(mismatch)
        found.setdefault(job if job in jobs else run, []).append(mismatch)
    return {None: list(result.mismatches)} if None in found else found


def _transcript(result: ScenarioResult, only: str | None, about: Sequence[Mismatch]) -> list[str]:
    """Return the transcript of the run, or of the job `only`, up to the first of the mismatches `about`."""
    trace = result.record.events
    places = [place for mismatch in about if (place := difference_at(trace, mismatch)) is not None]
    end = min(places) + 1 if places else len(trace)
    lines = formatted(list(transcript(trace[:end], job=only)), name_jobs=only is None)
    rest = len(formatted(list(transcript(trace, job=only)), name_jobs=False)) - len(lines)
    subject = f"job {only}" if only is not None else "the run"
    where = " up to the first difference" if places else ""
    shown = [f"what happened in {subject}{where}:"]
    if len(lines) > LINES:
        shown.append(f"  ... {len(lines) - LINES} lines before")
    shown += lines[-LINES:]
    if not lines:
        # The trace of a killed process is lost.
        shown.append(
            "  nothing" if result.record.digest else "  unknown, because the trace was lost with its process"
        )
    if rest:
        shown.append(f"  ... {rest} lines after")
    return shown


def _unified(expected: object, actual: object) -> list[str]:
    lines = difflib.unified_diff(_as_lines(expected), _as_lines(actual), "expected", "actual", lineterm="")
    return [_INDENT + line for line in lines]


def _as_lines(value: object) -> list[str]:
    """Return a string's lines, a list's entries or a mapping's items, one per line."""
    match value:
        case _ if value is ABSENT:
            return [str(ABSENT)]
        case str():
            return value.splitlines()
        case list() | tuple():
            return [_text(entry) for entry in value]
        case dict():
            return [f"{key}: {_text(inner)}" for key, inner in value.items()]
        case _:
            return [_text(value)]


def _is_long(value: object) -> bool:
    return "\n" in value if isinstance(value, str) else isinstance(value, list | tuple | dict) and bool(value)


def _held_against(actual: object) -> list[str]:
    if actual is ABSENT or actual == []:
        return [f"{_INDENT}got nothing"]
    if isinstance(actual, str):
        return [_INDENT + actual]
    return [f"{_INDENT}| {line}" for line in _as_lines(actual)]


def _text(value: object) -> str:
    """Return a value on one line, as in a scenario file."""
    return str(ABSENT) if value is ABSENT else flow(yaml_value(value))


def _overrides(result: ScenarioResult, prefix: str) -> Sequence[str]:
    """Return the options for the preset and seed, if they were overridden; option names start with `prefix`."""
    pairs: list[tuple[str, str]] = []
    if result.preset is not None:
        pairs.append(("preset", result.preset))
    if result.record.seed != result.scenario.seed:
        pairs.append(("seed", str(result.record.seed)))
    return [f"{prefix}{name}={value}" for name, value in pairs]


def indented(lines: Sequence[str]) -> list[str]:
    """Return the lines, indented by two columns."""
    return [(_INDENT + line).rstrip() for line in lines]


def _shown(path: Path) -> str:
    """Return a path relative to the current folder if possible."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def job_of(mismatch: Mismatch) -> str | None:
    """Return a mismatch's job, or None for a mismatch in the whole run."""
    keypath = mismatch.keypath
    return str(keypath[1]) if len(keypath) > 1 and keypath[0] == "jobs" else None


def difference_at(trace: Sequence[Event], mismatch: Mismatch) -> int | None:
    """Return the position in `trace` of the event that caused a mismatch.

    Returns None if the difference is visible only at the end of the run, or if an expected event did not happen.
    """
    job = job_of(mismatch)
    aspect = mismatch.keypath[2:] if job is not None else mismatch.keypath
    wanted = _event_sought(aspect, mismatch)
    if wanted is None:
        return None
    is_wanted, number = wanted
    if number >= len(trace):
        return None
    found = (
        position
        for position, event in enumerate(trace)
        if (job is None or event.job == job) and is_wanted(event)
    )
    return next(islice(found, number, None), None)


Sought = tuple[Callable[[Event], bool], int]
"""A condition on events, and how many matching events precede the one sought."""


def _event_sought(aspect: tuple[str | int, ...], mismatch: Mismatch) -> Sought | None:
    match aspect:
        case ("console",):
            line = _first_difference(mismatch)
            return lambda event: isinstance(event, events.ConsoleLine) and event.index == line, 0
        case ("console", "excludes", int()):
            text = str(mismatch.expected)
            return lambda event: isinstance(event, events.ConsoleLine) and text in event.text, 0
        case ("console", "lines"):
            return lambda event: isinstance(event, events.ConsoleLine), _number(mismatch.expected)
        case ("llm_calls",):
            return lambda event: isinstance(event, events.LLMRequested), _number(mismatch.expected)
        case ("turns",):
            return lambda event: isinstance(event, events.LLMReplied), _number(mismatch.expected)
        case ("handlers",):
            return lambda event: isinstance(event, events.HandlerRan), _first_difference(mismatch)
        case ("delivered",):
            return lambda event: isinstance(event, events.Delivered), _first_difference(mismatch)
        case ("tool_calls",):
            return lambda event: isinstance(event, events.ToolCalled), _first_difference(mismatch)
        case _:
            return None


def _first_difference(mismatch: Mismatch) -> int:
    """Return the first position at which the expected list differs from the actual list."""
    expected, actual = mismatch.expected, mismatch.actual
    if not isinstance(expected, list) or not isinstance(actual, list):
        return 0
    pairs = enumerate(zip_longest(expected, actual))
    return next((position for position, (before, now) in pairs if before != now), 0)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def failed_together(results: Iterable[ScenarioResult]) -> Iterator[tuple[ScenarioResult, ...]]:
    """Yield each scenario's failed results together, in the order of their first failures."""
    found: dict[tuple[str, str], list[ScenarioResult]] = {}
    for result in results:
        if result.outcome is Outcome.FAILED:
            found.setdefault((result.scenario.suite, result.scenario.id), []).append(result)
    yield from map(tuple, found.values())


def name_of(failed: Sequence[ScenarioResult]) -> str:
    """Return `suite/id[profile, profile]` for one scenario's failed results."""
    scenario = failed[0].scenario
    return f"{scenario.suite}/{scenario.id}[{_profiles(failed)}]"


def told_after(result: ScenarioResult, first: ScenarioResult) -> str:
    """Return how a failure differs from `first`, the same scenario's failure under another profile."""
    known = problems(first)
    found = problems(result)
    lines = numbered(found, known)
    for problem in known:
        if problem not in found:
            lines += ["", f"  only under {first.profile}: {problem[0]}"]
    same = "everything else is" if len(lines) > 1 else "the failure is"
    lines += ["", f"  {same} as under {first.profile}, shown above", f"  {pytest_command(result)}"]
    return "\n".join(lines)


def _problems(failed: Sequence[ScenarioResult]) -> list[list[str]]:
    """Return every problem once; those that all profiles have come first, and the others name their profiles."""
    owners: dict[tuple[str, ...], list[ScenarioResult]] = {}
    for result in failed:
        for problem in problems(result):
            owners.setdefault(tuple(problem), []).append(result)
    shared = [list(problem) for problem, having in owners.items() if len(having) == len(failed)]
    apart = [
        [f"[{_profiles(having)}] {problem[0]}", *problem[1:]]
        for problem, having in owners.items()
        if len(having) < len(failed)
    ]
    return [*shared, *apart]


def _profiles(results: Sequence[ScenarioResult]) -> str:
    return ", ".join(result.profile for result in results)
