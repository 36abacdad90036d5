"""The report as Markdown, for a ticket or a wiki page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statek_sim.drift.changes import Change, Stop
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


def markdown_lines(report: DriftReport) -> Iterator[str]:
    """Yield the report line by line; what the terminal only names is told in full."""
    before, after = report.before.name, report.after.name
    yield from (f"# STATEK {before} to {after}: what changes", "")
    yield from (summary_phrase(report), "", preset_phrase(report), "")
    rows = [
        (answer.question, answer_cell(answer.before), answer_cell(answer.after)) for answer in report.answers
    ]
    yield from _table((f"Under preset {report.preset}", before, after), rows)
    counted = [
        (section.subject, str(len(section.changes)), stops_phrase(section)) for section in report.sections
    ]
    yield from _table(("What changes", "scenarios", f"under preset {report.preset}"), counted)
    for section in report.sections:
        yield from (f"## {section.subject}", "")
        yield from _section(report, section)
    if report.unseen:
        yield from ("## Rules that differ and that none of these scenarios shows", "")
        for rule in report.unseen:
            yield from _rule(rule)
    if report.packages:
        yield from ("## The real packages", "")
        for check in report.packages:
            yield from _package(check)


def _section(report: DriftReport, section: Section) -> Iterator[str]:
    for rule in section.rules:
        yield from _rule(rule)
    for change in section.changes:
        yield from _change(
            report,
            change,
            [difference for difference in section.stops if difference.scenario is change.scenario],
        )
    shown = {change.scenario.id for change in section.changes}
    for stop in section.stops:
        if stop.scenario.id not in shown:
            yield from (
                *_scenario(stop.scenario),
                f"Under preset {report.preset} {_escaped(stop_phrase(stop))}.",
                "",
            )
    for causes in dict.fromkeys(found.causes for found in section.resized):
        resized = [found for found in section.resized if found.causes == causes]
        yield from (f"{_escaped(resized_phrase(resized))}. Because of {_named(causes)}.", "")


def _rule(rule: Rule) -> Iterator[str]:
    yield from (f"**`{rule.name}`**: `{rule.before}` to `{rule.after}`. {rule.doc}", "")


def _scenario(scenario: Scenario) -> tuple[str, str]:
    return f"### {scenario.suite}/{scenario.id}: {_escaped(scenario.title)}", ""


def _change(report: DriftReport, change: Change, stops: Sequence[Stop]) -> Iterator[str]:
    yield from _scenario(change.scenario)
    yield from _table(
        ("", report.before.name, report.after.name), [_cells(aspect) for aspect in told(change)]
    )
    yield from (f"Because of {_named(change.causes)}.", "")
    witnesses = witnesses_phrase(report, change.scenario.id)
    if witnesses:
        yield from (f"Real packages: {witnesses}.", "")
    for stop in stops:
        yield from (f"Under preset {report.preset} {_escaped(stop_phrase(stop))}.", "")


def _cells(aspect: Told) -> tuple[str, str, str]:
    return aspect.about, aspect.before, aspect.after


def _package(check: PackageCheck) -> Iterator[str]:
    yield from (packages_phrase(check), "")
    for row in check.disagreeing:
        fields = ", ".join(f"`{difference.field}`" for difference in row.differences)
        yield from (f"- {row.scenario}: package and profile differ in {fields}", "")


def _named(causes: Sequence[str]) -> str:
    return " and ".join(f"`{cause}`" for cause in causes)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(map(_escaped, row))} |"
    yield ""


def _escaped(text: str) -> str:
    """Return text that a table's cell and a heading can hold."""
    return text.replace("|", "\\|").replace("<", "&lt;")
