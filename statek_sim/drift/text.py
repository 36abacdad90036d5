"""The report for a terminal: plain text of at most 100 columns, fit to be pasted into a ticket."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from statek_sim.drift.changes import Change
from statek_sim.drift.packages import PackageCheck
from statek_sim.drift.phrases import (
    answer_cell,
    packages_phrase,
    preset_phrase,
    resized_phrase,
    stop_phrase,
    stops_phrase,
    summary_phrase,
    witnesses_phrase,
)
from statek_sim.drift.report import DriftReport, Rule, Section
from statek_sim.drift.words import Told, told
from statek_sim.scenario.schema import Scenario

WIDTH: Final = 100
_ENDINGS: Final = 2
"""Endings of a change that are told in full; what else is different is named."""
_FAMILIES: Final = 8
"""Changes of one section that are told; the others are named."""


def text_lines(report: DriftReport) -> Iterator[str]:
    """Yield the report line by line."""
    title = f"STATEK {report.before.name} -> {report.after.name}: what changes"
    yield from (title, "=" * len(title), "")
    yield from _wrapped(summary_phrase(report))
    yield from _wrapped(preset_phrase(report))
    yield ""
    yield from _answers(report)
    yield ""
    yield from _contents(report)
    for section in report.sections:
        yield from _heading(section.subject)
        yield from _section(report, section)
    yield from _unseen(report)
    for check in report.packages:
        yield ""
        yield from _package(check)


def _answers(report: DriftReport) -> Iterator[str]:
    head = (f"Under preset {report.preset}", report.before.name, report.after.name, "")
    rows = [
        (
            answer.question,
            answer_cell(answer.before),
            answer_cell(answer.after),
            "" if answer.before == answer.after else "<-",
        )
        for answer in report.answers
    ]
    yield from _table([head, *rows])


def _contents(report: DriftReport) -> Iterator[str]:
    head = ("What changes", "scenarios", "", f"under preset {report.preset}")
    rows = [
        (section.subject, str(len(section.changes)), "", stops_phrase(section)) for section in report.sections
    ]
    yield from _table([head, *rows])


def _table(rows: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
    """Yield a table: the first and the last column are text, the others numbers."""
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for first, second, third, last in rows:
        numbers = (
            cell.rjust(width) for cell, width in zip((second, third), widths[1:3], strict=True) if width
        )
        yield "  ".join((first.ljust(widths[0]), *numbers, last)).rstrip()


def _heading(title: str) -> tuple[str, ...]:
    return ("", "", title, "-" * len(title))


def _section(report: DriftReport, section: Section) -> Iterator[str]:
    for rule in section.rules:
        yield ""
        yield from _rule(rule)
    families = list(_families(section))
    for family in families[:_FAMILIES]:
        yield from _family(report, family, section)
    yield from _more([change.scenario for family in families[_FAMILIES:] for change in family])
    shown = {change.scenario.id for change in section.changes}
    others = [stop for stop in section.stops if stop.scenario.id not in shown]
    if others:
        yield from ("", f"  Under preset {report.preset} only:")
    for stop in others[:_FAMILIES]:
        yield from _wrapped(f"{stop.scenario.id}: {stop_phrase(stop)}", indent=4, hanging=6)
    yield from _more([stop.scenario for stop in others[_FAMILIES:]])
    for causes in dict.fromkeys(found.causes for found in section.resized):
        yield ""
        yield from _wrapped(
            resized_phrase([found for found in section.resized if found.causes == causes]),
            indent=2,
            hanging=4,
        )
        yield from _wrapped(f"because of {' and '.join(causes)}", indent=4)


def _rule(rule: Rule) -> Iterator[str]:
    yield f"{rule.name}: {rule.before} -> {rule.after}"
    yield from _wrapped(rule.doc, indent=4)


def _scenario(scenario: Scenario) -> Iterator[str]:
    yield ""
    yield from _wrapped(f"{scenario.suite}/{scenario.id}: {scenario.title}", indent=2, hanging=4)


def _families(section: Section) -> Iterator[list[Change]]:
    """Yield changes that are told in the same words for the same reason, those that stop or release a job first."""
    decisive = {stop.scenario.id for stop in section.stops}
    ordered = sorted(section.changes, key=lambda change: change.scenario.id not in decisive)
    families: dict[object, list[Change]] = {}
    for change in ordered:
        shown = _shown(change)
        families.setdefault((change.causes, shown[0].before, shown[0].after), []).append(change)
    yield from families.values()


def _shown(change: Change) -> list[Told]:
    """Return what is told in full: how run and jobs end, else the first thing that differs."""
    aspects = told(change)
    return [aspect for aspect in aspects if aspect.ending][:_ENDINGS] or list(aspects[:1])


def _family(report: DriftReport, family: Sequence[Change], section: Section) -> Iterator[str]:
    change = family[0]
    yield from _scenario(change.scenario)
    shown = _shown(change)
    for aspect in shown:
        yield from _aspect(report, aspect)
    also = list(dict.fromkeys(aspect.about for aspect in told(change) if aspect not in shown))
    if also:
        yield from _wrapped(f"also: {'; '.join(also)}", indent=6, hanging=8)
    yield from _wrapped(f"because of {' and '.join(change.causes)}", indent=6, hanging=8)
    for stop in section.stops:
        if stop.scenario is change.scenario:
            yield from _wrapped(f"under preset {report.preset} {stop_phrase(stop)}", indent=6, hanging=8)
    witnesses = witnesses_phrase(report, change.scenario.id)
    if witnesses:
        yield from _wrapped(f"real packages: {witnesses}", indent=6, hanging=8)
    if family[1:]:
        names = ", ".join(other.scenario.id for other in family[1:])
        yield from _wrapped(f"the same in {len(family) - 1} more: {names}", indent=6, hanging=8)


def _more(scenarios: Sequence[Scenario]) -> Iterator[str]:
    if scenarios:
        names = ", ".join(scenario.id for scenario in scenarios)
        yield ""
        yield from _wrapped(
            f"{len(scenarios)} more, told by --markdown and --json: {names}", indent=2, hanging=4
        )


def _aspect(report: DriftReport, aspect: Told) -> Iterator[str]:
    width = max(len(report.before.name), len(report.after.name))
    for side, words in ((report.before, aspect.before), (report.after, aspect.after)):
        sentence = f"{side.name:<{width}}  {aspect.sentence(words)}"
        yield from _wrapped(sentence, indent=6, hanging=6 + width + 2)


def _unseen(report: DriftReport) -> Iterator[str]:
    if not report.unseen:
        return
    yield from _heading("Rules that differ and that none of these scenarios shows")
    for rule in report.unseen:
        yield ""
        yield from _rule(rule)


def _package(check: PackageCheck) -> Iterator[str]:
    yield from _wrapped(packages_phrase(check))
    for row in check.disagreeing:
        fields = ", ".join(difference.field for difference in row.differences)
        yield from _wrapped(f"{row.scenario}: package and profile differ in {fields}", indent=2, hanging=4)


def _wrapped(text: str, *, indent: int = 0, hanging: int | None = None) -> list[str]:
    later = indent if hanging is None else hanging
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * later,
        break_long_words=False,
        break_on_hyphens=False,
    )
