"""Renders comparisons: an upgrade as a document in plain text or Markdown, real packages as plain text.

Text is at most 100 columns wide, so it fits into a ticket.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.compare.changes import Change, Resized, Stop, Told, told
from statek_sim.compare.facts import Difference
from statek_sim.compare.matrix import AGAIN, Row, Verdict, VersionMatrix
from statek_sim.compare.upgrade import MOST, Rule, Section, Upgrade
from statek_sim.harness.preset import load_preset
from statek_sim.harness.settings import StatekSettings
from statek_sim.reporting.table import Table
from statek_sim.reporting.text_format import plural
from statek_sim.scenario.schema import Scenario
from statek_sim.values import JSON

MOST_CHANGES: Final = 8
"""Maximum number of changes described per subject; without `full`, the others are only named."""
_ENDINGS: Final = 2
"""Maximum number of endings described per change; without `full`, other differences are only named."""

_DONE: Final = {
    "stops": "stops {}",
    "releases": "lets {} go on",
    "stops earlier": "stops {} earlier",
    "stops later": "stops {} later",
    "ends otherwise": "stops {} for another reason",
}
_WITNESS: Final = {
    Verdict.AGREE: "does the same",
    Verdict.VARIES: "does the same, but differed in one process",
    Verdict.DIFFERS: "differs, see the end",
}


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading for the document (level 1), a subject (2) or a scenario (3)."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph below a heading of this level."""

    text: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Aspects in which a scenario ends differently; `before` and `after` are the names of the two sides."""

    before: str
    after: str
    aspects: tuple[Told, ...]


Block = Heading | Paragraph | Table | Outcomes


def upgrade_blocks(upgrade: Upgrade, packages: Sequence[VersionMatrix], *, full: bool) -> Iterator[Block]:
    """Yield the document for an upgrade; `full` includes every change and all of its aspects."""
    before, after = upgrade.before.name, upgrade.after.name
    if not upgrade.sections:
        yield from _no_difference(upgrade)
        return
    yield Heading(1, f"STATEK {before} -> {after}: changes")
    yield Paragraph(
        f"{plural(upgrade.scenarios, 'scenario')} ran on both sides: {upgrade.changed} behave differently, "
        f"{upgrade.resized} more differ only in request size."
    )
    yield Paragraph(_preset(upgrade.preset))
    head = (f"Under preset {upgrade.preset}", before, after, "")
    cells = [(answer.question, _answer(answer.before), _answer(answer.after)) for answer in upgrade.answers]
    rows = [(*cell, "" if cell[1] == cell[2] else "<-") for cell in cells]
    yield Table(head=head, rows=rows, left=("",))
    counted = [
        (section.subject, str(len(section.changes)), stops_phrase(section)) for section in upgrade.sections
    ]
    stopped = f"under preset {upgrade.preset}"
    yield Table(head=("Changes", "scenarios", stopped), rows=counted, left=(stopped,))
    for section in upgrade.sections:
        yield Heading(2, section.subject)
        yield from _section(upgrade, section, packages, full=full)
    if upgrade.unseen:
        yield Heading(2, "Differing rules that none of these scenarios shows")
        yield from map(_rule, upgrade.unseen)


def _no_difference(upgrade: Upgrade) -> Iterator[Block]:
    yield Heading(1, f"STATEK {upgrade.before.name} -> {upgrade.after.name}: no difference")
    yield Paragraph(f"{plural(upgrade.scenarios, 'scenario')} ran on both sides with the same result.")
    if upgrade.unseen:
        names = ", ".join(rule.name for rule in upgrade.unseen)
        yield Paragraph(f"Differing rules that none of these scenarios shows: {names}.")


def _section(
    upgrade: Upgrade, section: Section, packages: Sequence[VersionMatrix], *, full: bool
) -> Iterator[Block]:
    yield from map(_rule, section.rules)
    most = None if full else MOST_CHANGES
    families = [[change] for change in section.changes] if full else list(_families(section))
    for family in families[:most]:
        yield from _family(upgrade, family, section, packages, full=full)
    yield from _more(
        [] if most is None else [change.scenario for group in families[most:] for change in group]
    )
    shown = {change.scenario.id for change in section.changes}
    others = [stop for stop in section.stops if stop.scenario.id not in shown]
    if others:
        yield Paragraph(f"Under preset {upgrade.preset} only:", 2)
    for stop in others[:most]:
        yield Paragraph(f"{stop.scenario.id}: {stop_phrase(stop)}", 3)
    yield from _more([] if most is None else [stop.scenario for stop in others[most:]])
    for causes in dict.fromkeys(found.causes for found in section.resized):
        resized = [found for found in section.resized if found.causes == causes]
        yield Paragraph(f"{_resized(resized)}; caused by {' and '.join(causes)}", 2)


def _rule(rule: Rule) -> Paragraph:
    return Paragraph(f"{rule.name}: {rule.before} -> {rule.after}. {rule.doc}", 2)


def _families(section: Section) -> Iterator[list[Change]]:
    """Yield groups of changes with the same description and causes; changes that stop or release a job come first."""
    decisive = {stop.scenario.id for stop in section.stops}
    ordered = sorted(section.changes, key=lambda change: change.scenario.id not in decisive)
    families: dict[object, list[Change]] = {}
    for change in ordered:
        shown = _chosen(told(change))
        families.setdefault((change.causes, shown[0].before, shown[0].after), []).append(change)
    yield from families.values()


def _chosen(aspects: Sequence[Told]) -> list[Told]:
    """Return the aspects about how the run and jobs end, or else the first aspect."""
    return [aspect for aspect in aspects if aspect.ending][:_ENDINGS] or list(aspects[:1])


def _family(
    upgrade: Upgrade,
    family: Sequence[Change],
    section: Section,
    packages: Sequence[VersionMatrix],
    *,
    full: bool,
) -> Iterator[Block]:
    change = family[0]
    yield Heading(3, f"{change.scenario.suite}/{change.scenario.id}: {change.scenario.title}")
    aspects = told(change)
    shown = aspects if full else _chosen(aspects)
    yield Outcomes(upgrade.before.name, upgrade.after.name, tuple(shown))
    also = dict.fromkeys(aspect.about for aspect in aspects if aspect not in shown)
    if also:
        yield Paragraph(f"also: {'; '.join(also)}", 3)
    yield Paragraph(f"caused by {' and '.join(change.causes)}", 3)
    for stop in section.stops:
        if stop.scenario is change.scenario:
            yield Paragraph(f"under preset {upgrade.preset} {stop_phrase(stop)}", 3)
    witnesses = [
        f"{matrix.version} {_WITNESS[row.verdict]}"
        for matrix in packages
        for row in matrix.rows
        if row.scenario == change.scenario.id
    ]
    if witnesses:
        yield Paragraph(f"real packages: {'; '.join(witnesses)}", 3)
    if family[1:]:
        names = ", ".join(other.scenario.id for other in family[1:])
        yield Paragraph(f"the same in {len(family) - 1} more: {names}", 3)


def _more(scenarios: Sequence[Scenario]) -> Iterator[Block]:
    if scenarios:
        names = ", ".join(scenario.id for scenario in scenarios)
        yield Paragraph(f"{len(scenarios)} more, listed by --markdown and --json: {names}", 2)


def _preset(preset: str) -> str:
    """Return a sentence with the preset's limits."""
    settings = StatekSettings.from_env(load_preset(preset).values)
    limits = (
        f"{settings.max_turns} turns, {settings.max_exceptions} exceptions, "
        f"{settings.max_consecutive_exceptions} in a row, "
        f"{settings.max_token_usage:,} tokens, extension {settings.limit_extension_per_completion:g}"
    )
    return (
        f"Outcomes are under each scenario's own limits. Statements about preset {preset} ({limits}) "
        "apply to the same scenarios with only these limits."
    )


def _answer(answer: int | None) -> str:
    return f"over {MOST}" if answer is None else f"{answer:,}"


def stops_phrase(section: Section) -> str:
    """Return how a section's changes affect jobs under the preset."""
    counts = section.stop_counts()
    counted = "; ".join(_DONE[kind].format(plural(count, "job")) for kind, count in counts.items())
    return counted or "no jobs change"


def stop_phrase(stop: Stop) -> str:
    """Return how a job ends on both sides under the preset."""
    after = _end(stop.after, stop.calls_after)
    if stop.before == stop.after:
        after = f"after {stop.calls_after:,}"
    return f"{stop.job} {_end(stop.before, stop.calls_before)} -> {after}"


def _end(end: str, calls: int) -> str:
    kind, _, reason = end.partition(": ")
    called = f"after {plural(calls, 'LLM call')}"
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
            return f"is not stopped ({plural(calls, 'LLM call')})"


def _resized(resized: Sequence[Resized]) -> str:
    """Return a sentence about the change in request sizes, with the scenarios."""
    most = max(resized, key=lambda change: abs(change.after - change.before))
    names = ", ".join(found.scenario.id for found in resized)
    return (
        f"Only the request size differs in {plural(len(resized), 'scenario')}; most in "
        f"{most.scenario.id}, from {most.before:,} to {most.after:,} bytes: {names}"
    )


WIDTH: Final = 100
_INDENT: Final = {1: 0, 2: 2, 3: 6}
"""A paragraph's indentation in columns, by level."""


def text_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield a document's lines as plain text."""
    for block in blocks:
        match block:
            case Heading(3, text):
                yield ""
                yield from _wrapped(text, indent=2, hanging=4)
            case Heading(level, text):
                yield from ("", "") if level > 1 else ()
                yield from (text, ("=" if level == 1 else "-") * len(text))
            case Paragraph(text, level):
                yield from ("",) if level < max(_INDENT) else ()
                yield from _wrapped(
                    text, indent=_INDENT[level], hanging=_INDENT[level] + (2 if level > 1 else 0)
                )
            case Table():
                yield ""
                yield from (line.plain for line in block.lines(width=WIDTH))
            case Outcomes(before, after, aspects):
                width = max(len(before), len(after))
                for aspect in aspects:
                    for side, words in ((before, aspect.before), (after, aspect.after)):
                        sentence = f"{side:<{width}}  {aspect.sentence(words)}"
                        yield from _wrapped(sentence, indent=6, hanging=6 + width + 2)


def markdown_lines(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield a document's lines as Markdown."""
    for block in blocks:
        match block:
            case Heading(level, text):
                yield f"{'#' * level} {_escaped(text)}"
            case Paragraph(text):
                yield _escaped(text)
            case Table():
                yield from block.markdown().splitlines()
            case Outcomes(before, after, aspects):
                rows = [(aspect.about, aspect.before, aspect.after) for aspect in aspects]
                table = Table(head=("", before, after), rows=rows, left=(before, after))
                yield from table.markdown().splitlines()
        yield ""


def _escaped(text: str) -> str:
    """Return text escaped for a heading or a paragraph."""
    return text.replace("<", "&lt;")


def _wrapped(text: str, *, indent: int, hanging: int) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )


_LONGEST: Final = 600
"""The maximum length of a value."""


def matrix_lines(matrices: Sequence[VersionMatrix]) -> Iterator[str]:
    """Yield the differences by version, then the totals."""
    for matrix in matrices:
        for row in matrix.rows:
            yield from _row_lines(matrix.version, row)
    for matrix in matrices:
        counts = ", ".join(
            f"{matrix.count(verdict)} {verdict}"
            for verdict in Verdict
            if verdict is not Verdict.VARIES or matrix.count(verdict)
        )
        yield (
            f"statek {matrix.version} (profile {matrix.profile}, Python {matrix.python}): "
            f"{len(matrix.rows)} scenarios: {counts}"
        )


DIFFERS_IN: Final = {
    Verdict.DIFFERS: "differs in",
    Verdict.VARIES: f"differed once, then agreed in {AGAIN} new processes; the difference was in",
}
"""The rest of the sentence about a scenario with differences."""


def _row_lines(version: str, row: Row) -> Iterator[str]:
    name = f"{row.scenario} on {version}"
    if row.verdict in (Verdict.DIFFERS, Verdict.VARIES):
        first, *more = row.differences
        yield f"{name}: {DIFFERS_IN[row.verdict]} {first.field}"
        yield from value_lines(first)
        if more:
            yield f"    also: {', '.join(difference.field for difference in more)}"
            if more and more[-1].field == "trace":
                yield "    first event that differs:"
                yield from value_lines(more[-1])


def value_lines(difference: Difference) -> Iterator[str]:
    """Yield a field's two values, starting shortly before the point where they differ."""
    ours, theirs = _shown(difference.reference), _shown(difference.installed)
    start = _common_start(ours, theirs)
    yield f"    reference: {_cut(ours, start)}"
    yield f"    installed: {_cut(theirs, start)}"


def _shown(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False)


def _common_start(left: str, right: str) -> int:
    """Return where to start showing two strings: 80 characters before the point where they differ."""
    same = next((n for n, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), 0)
    return max(0, same - 80)


def _cut(text: str, start: int) -> str:
    shown = text[start : start + _LONGEST]
    return ("..." if start else "") + shown + ("..." if start + _LONGEST < len(text) else "")


NOT_RUN: Final = "-"
"""The placeholder for a scenario that does not apply to a release."""


def verdicts(matrices: Sequence[VersionMatrix]) -> dict[str, list[str]]:
    """Return each scenario's verdicts, one per release, in release order."""
    found: dict[str, list[str]] = {}
    for column, matrix in enumerate(matrices):
        for row in matrix.rows:
            found.setdefault(row.scenario, [NOT_RUN] * len(matrices))[column] = str(row.verdict)
    return found


def table_lines(matrices: Sequence[VersionMatrix]) -> Iterator[str]:
    """Yield a table of the scenarios that do not agree on all of their releases, and the number of those that do."""
    found = verdicts(matrices)
    shown = {name: row for name, row in found.items() if set(row) - {str(Verdict.AGREE), NOT_RUN}}
    if shown:
        versions = [matrix.version for matrix in matrices]
        rows = [(name, *row) for name, row in shown.items()]
        table = Table(head=("scenario", *versions), rows=rows, left=versions)
        yield from (line.plain for line in table.lines(width=WIDTH))
    alike = len(found) - len(shown)
    yield f"{alike} of {len(found)} scenarios agree on every release that they run on"
