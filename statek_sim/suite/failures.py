"""A scenario that failed under several profiles, told once: what is the same, then what is not."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from statek_sim.suite.diff import (
    LINES,
    about,
    failure_text,
    indented,
    problems,
    pytest_command,
    rerun_command,
    transcripts,
)
from statek_sim.suite.result import Outcome, ScenarioResult


def failed_together(results: Iterable[ScenarioResult]) -> Iterator[tuple[ScenarioResult, ...]]:
    """Yield the results that failed, those of one scenario at a time, in the order of the first of each."""
    found: dict[tuple[str, str], list[ScenarioResult]] = {}
    for result in results:
        if result.outcome is Outcome.FAILED:
            found.setdefault((result.scenario.suite, result.scenario.id), []).append(result)
    yield from map(tuple, found.values())


def name_of(failed: Sequence[ScenarioResult]) -> str:
    """Return the scenario's `suite/id[profile, profile]`."""
    scenario = failed[0].scenario
    return f"{scenario.suite}/{scenario.id}[{_profiles(failed)}]"


def told_together(failed: Sequence[ScenarioResult]) -> str:
    """Return what `failure_text` says of each of them, once; the first line is the first mismatch.

    What does not hold under all of the profiles has theirs in brackets. The transcript is the first profile's, with
    the lines that are others under another one.
    """
    first, *others = failed
    if not others:
        return failure_text(first)
    head, *further = _problems(failed)
    lines = [*head]
    for problem in further:
        lines += ["", *indented(problem)]
    lines += ["", *about(first)]
    for shown in transcripts(first).values():
        lines += ["", *indented(shown)]
    for other in others:
        lines += _unlike(first, other)
    commands = (rerun_command(*failed), pytest_command(*failed))
    return "\n".join([*lines, "", "  run just this one:", *(f"    {command}" for command in commands)])


def told_after(result: ScenarioResult, first: ScenarioResult) -> str:
    """Return what is to be said of a failure after `first`, the same scenario's under another profile, was told."""
    known = problems(first)
    head, *own = problems(result)
    lines = head[:1] if head in known else [*head]
    for problem in own:
        if problem not in known:
            lines += ["", *indented(problem)]
    for problem in known:
        if problem not in (head, *own):
            lines += ["", f"  only under {first.profile}: {problem[0]}"]
    lines += _unlike(first, result)
    same = "all else" if len(lines) > 1 else "all"
    lines += ["", f"  {same} as under {first.profile}, told before", f"  {pytest_command(result)}"]
    return "\n".join(lines)


def _problems(failed: Sequence[ScenarioResult]) -> list[list[str]]:
    """Return every problem once, with the profiles that have it unless all do, those of all first."""
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


def _unlike(first: ScenarioResult, other: ScenarioResult) -> list[str]:
    """Return the lines of the transcripts that are others, after an empty line; none when all are the same."""
    ours, theirs = transcripts(first), transcripts(other)
    lines: list[str] = []
    for job in dict.fromkeys((*ours, *theirs)):
        subject = "the run" if job is None else f"job {job}"
        changed = [
            line
            for line in difflib.unified_diff(ours.get(job, [])[1:], theirs.get(job, [])[1:], n=0, lineterm="")
            if not line.startswith(("---", "+++", "@@"))
        ]
        if changed:
            lines += ["", f"  unlike under {first.profile}, in {subject} under {other.profile}:"]
            lines += [f"    {line}".rstrip() for line in changed[:LINES]]
            if len(changed) > LINES:
                lines.append(f"    ... {len(changed) - LINES} more lines")
    return lines


def _profiles(results: Sequence[ScenarioResult]) -> str:
    return ", ".join(result.profile for result in results)
