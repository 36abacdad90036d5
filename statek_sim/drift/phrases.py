"""Sentences that the terminal and the Markdown report share."""

from __future__ import annotations

from collections.abc import Sequence

from statek_sim.conformance.matrix import Verdict
from statek_sim.drift.changes import Resized, Stop
from statek_sim.drift.packages import PackageCheck
from statek_sim.drift.probe import MOST
from statek_sim.drift.report import DriftReport, Section
from statek_sim.harness.preset import load_preset
from statek_sim.harness.settings import StatekSettings

_DONE: dict[str, str] = {
    "stops": "stops {}",
    "releases": "lets {} go on",
    "stops earlier": "stops {} earlier",
    "stops later": "stops {} later",
    "ends otherwise": "stops {} for another reason",
}
_WITNESS: dict[str, str] = {
    Verdict.AGREE: "does so",
    Verdict.DECLARED: "does so, but for a declared difference",
    Verdict.VARIES: "does so, but did something else in one process",
    Verdict.DIFFERS: "does something else, see the end",
}


def summary_phrase(report: DriftReport) -> str:
    """Return how many scenarios ran and how many of them change."""
    return (
        f"{_many(report.scenarios, 'scenario')} ran on both sides: {report.changed} behave differently, "
        f"{report.resized} more do the same with requests of another size."
    )


def preset_phrase(report: DriftReport) -> str:
    """Return which limits the verdicts on stops are about."""
    settings = StatekSettings.from_env(load_preset(report.preset).values)
    limits = (
        f"{settings.max_turns} turns, {settings.max_exceptions} exceptions, "
        f"{settings.max_consecutive_exceptions} in a row, "
        f"{settings.max_token_usage:,} tokens, extension {settings.limit_extension_per_completion:g}"
    )
    return (
        f"Outcomes are those under the limits of each scenario. What is said about preset {report.preset} "
        f"({limits}) is how the same scenarios go under these limits alone."
    )


def answer_cell(answer: int | None) -> str:
    """Return one answer; none within the reach of the probe is `over 100`."""
    return f"over {MOST}" if answer is None else f"{answer:,}"


def stops_phrase(section: Section) -> str:
    """Return what the changes of a section do to jobs under the preset."""
    counts = section.stop_counts()
    counted = "; ".join(_DONE[kind].format(_many(count, "job")) for kind, count in counts.items())
    return counted or "stops no job and lets none go on"


def stop_phrase(stop: Stop) -> str:
    """Return what happens to one job under the preset."""
    before = _end(stop.before, stop.calls_before)
    after = _end(stop.after, stop.calls_after)
    if stop.before == stop.after:
        after = f"after {stop.calls_after:,}"
    return f"{stop.job} {before} -> {after}"


def _end(end: str, calls: int) -> str:
    kind, _, reason = end.partition(": ")
    called = f"after {_many(calls, 'LLM call')}"
    match kind:
        case "limit":
            return f"is stopped by {reason} {called}"
        case "failure":
            return f"fails ({reason}) {called}"
        case "absent":
            return "does not exist"
        case "hang":
            return f"hangs {called}"
        case _:
            return f"is not stopped ({_many(calls, 'LLM call')})"


def resized_phrase(resized: Sequence[Resized]) -> str:
    """Return by how much requests change in size, and in which scenarios."""
    most = max(resized, key=lambda change: abs(change.after - change.before))
    names = ", ".join(found.scenario.id for found in resized)
    return (
        f"Requests of another size, and nothing else, in {_many(len(resized), 'scenario')}; most in "
        f"{most.scenario.id}, where {most.before:,} bytes become {most.after:,}: {names}"
    )


def witnesses_phrase(report: DriftReport, scenario: str) -> str:
    """Return whether the real packages that were given do in a scenario what is told of them."""
    words = (
        f"{check.matrix.version} {_WITNESS.get(row.verdict, 'cannot run it')}"
        for check in report.packages
        for row in check.matrix.rows
        if row.scenario == scenario
    )
    return "; ".join(words)


def packages_phrase(check: PackageCheck) -> str:
    """Return how far a real package does what its profile says."""
    matrix = check.matrix
    words = f"{matrix.count(Verdict.AGREE)} of {_many(len(matrix.rows), 'scenario')} agree"
    declared = f"{len(check.declared)} differ for a declared reason"
    differ = f"{len(check.disagreeing)} differ otherwise"
    if varies := matrix.count(Verdict.VARIES):
        differ += f", {varies} agreed when asked again"
    return (
        f"The real statek {matrix.version} (Python {matrix.python}) beside profile {matrix.profile}: "
        f"{words}, {declared}, {differ}."
    )


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
