"""Renders the gate's result for a terminal, as JSON (`statek-sim/gate@1`), and for GitHub.

For GitHub, there is a Markdown summary, and annotations for lines in preset files.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.text import Text

from statek_sim.gate.verdict import GateResult, JudgedPreset, Place, Remark, Verdict
from statek_sim.reporting.table import Code, Rows, Table, code, escaped
from statek_sim.reporting.text_format import NOTHING, plural
from statek_sim.values import JSON, as_json, record

_FIRST = 24
"""The minimum width of the rule column; with less room, the table becomes a list."""


def gate_lines(result: GateResult, *, width: int) -> Iterator[Text]:
    """Yield the report for a terminal: the table, a sentence per failure, the remarks, and the overall verdict."""
    upright = _table(result)
    table = upright if upright.fits(width=width, first=_FIRST) else _list(result)
    yield from table.lines(width=width)
    if any(preset.path.stem != preset.name for preset in result.presets):
        yield Text()
    for preset in result.presets:
        if preset.path.stem != preset.name:
            yield from _wrapped(f"{preset.path}: ", origins(preset), "dim", width)
    if result.failed:
        yield Text()
        for verdict in result.failed:
            yield from _wrapped(f"{verdict.place}: ", f"{verdict.reason} ({verdict.rule})", "red", width)
    if result.remarks:
        yield Text()
        for remark in result.remarks:
            yield from _wrapped(f"{remark.place}: ", remark.message, "yellow", width)
    yield Text()
    yield Text(verdict_words(result), "bold red" if result.failed else "bold green")


def verdict_words(result: GateResult) -> str:
    """Return the overall verdict, such as `3 of 216 verdicts fail` or `all 216 verdicts pass`."""
    total = len(result.verdicts)
    if result.failed:
        fail = "fails" if len(result.failed) == 1 else "fail"
        return f"{len(result.failed):,} of {plural(total, 'verdict')} {fail}"
    return f"all {plural(total, 'verdict')} pass" if total != 1 else "1 verdict passes"


def origins(preset: JudgedPreset) -> str:
    """Return the source of each limit in a preset: its file or STATEK's default."""
    limits = {
        limit: f"{limit.value} {'unlimited' if value is None else value}" for limit, value in preset.limits
    }
    own = ", ".join(limits[limit] for limit in limits if limit in preset.stated)
    left = ", ".join(limits[limit] for limit in limits if limit not in preset.stated)
    return f"sets {own or 'no limit'}" + (f"; STATEK's defaults: {left}" if left else "")


def rules_of(result: GateResult) -> tuple[str, ...]:
    """Return the names of all rules in order of first occurrence."""
    return tuple(dict.fromkeys(verdict.rule for verdict in result.verdicts))


def tally(verdicts: Sequence[Verdict]) -> str:
    """Summarize verdicts, such as `14 pass` or `3 of 14 fail`; `-` if there are none."""
    failed = sum(not verdict.passed for verdict in verdicts)
    if not verdicts:
        return NOTHING
    return f"{failed} of {len(verdicts)} fail" if failed else f"{len(verdicts)} pass"


def of_cell(result: GateResult, preset: str, rule: str) -> list[Verdict]:
    """Return a rule's verdicts on a preset."""
    return [verdict for verdict in result.verdicts if (verdict.preset, verdict.rule) == (preset, rule)]


def _table(result: GateResult) -> Table:
    presets = [preset.name for preset in result.presets]
    rows: Rows = [
        [rule, *(_cell(of_cell(result, preset, rule)) for preset in presets)] for rule in rules_of(result)
    ]
    return Table(head=("rule", *map(Code, presets)), rows=rows)


def _list(result: GateResult) -> Table:
    """Return a table with a row for each preset and rule, for narrow terminals."""
    rows: Rows = [
        [f"{preset.name}: {rule}", _cell(verdicts)]
        for preset in result.presets
        for rule in rules_of(result)
        if (verdicts := of_cell(result, preset.name, rule))
    ]
    return Table(head=("preset: rule", "verdicts"), rows=rows)


def _cell(verdicts: Sequence[Verdict]) -> Text:
    failed = any(not verdict.passed for verdict in verdicts)
    return Text(tally(verdicts), "bold red" if failed else "green" if verdicts else "dim")


def _wrapped(place: str, sentence: str, style: str, width: int) -> Iterator[Text]:
    """Yield a location and a sentence, wrapped; continuation lines are indented."""
    whole = " ".join(f"{place}{sentence}".split())
    lines = textwrap.wrap(
        whole, max(width, 40), subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )
    for number, line in enumerate(lines):
        text = Text(line)
        if not number:
            text.stylize(style, 0, len(place) - 2)
        yield text


SCHEMA: Final = "statek-sim/gate@1"
VERSION: Final = 1


def gate_json(result: GateResult) -> dict[str, JSON]:
    """Return the result as JSON that follows `gate_schema.json`; equal results give equal objects."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "profile": result.profile,
        "policies": {preset.name: preset.policy.as_posix() for preset in result.presets},
        "baselines": {name: path.as_posix() for name, path in result.baselines},
        "presets": [_preset(preset, result) for preset in result.presets],
        "verdicts": [_verdict(verdict) for verdict in result.verdicts],
        "remarks": [_remark(remark) for remark in result.remarks],
        "passed": result.passed,
    }


def _preset(preset: JudgedPreset, result: GateResult) -> JSON:
    own = [verdict for verdict in result.verdicts if verdict.preset == preset.name]
    return {
        **record(preset, "name", "path"),
        "sets": as_json(preset.stated),
        "limits": as_json(dict(preset.limits)),
        "limit_extension_per_completion": preset.extension,
        "verdicts": len(own),
        "failed": sum(not verdict.passed for verdict in own),
    }


def _verdict(verdict: Verdict) -> JSON:
    return {
        **record(verdict, "preset", "scenario", "tags", "rule", "passed", "reason", "limit", "stop"),
        **record(verdict.place),
        "figures": [{**record(figure), **record(figure, "headroom_percent")} for figure in verdict.figures],
        **record(verdict, "burnt", "leaked"),
    }


def _remark(remark: Remark) -> JSON:
    return {**record(remark, "preset", "message"), **record(remark.place)}


_FAILURES: Final = 200
"""The maximum number of failures shown in full, because GitHub does not show step summaries larger than 1 MiB."""


def gate_markdown(result: GateResult) -> str:
    """Return the report as Markdown; equal results give equal text."""
    return "\n\n".join(_blocks(result)) + "\n"


def _blocks(result: GateResult) -> Iterator[str]:
    yield f"# STATEK presets: {verdict_words(result)}"
    yield _table(result).markdown()
    if result.failed:
        yield "## Failures"
        yield "\n".join(
            f"- {sentence(verdict.reason)} ({escaped(verdict.rule)}, {code(str(verdict.place))})"
            for verdict in result.failed[:_FAILURES]
        )
    if len(result.failed) > _FAILURES:
        yield f"And {plural(len(result.failed) - _FAILURES, 'more failure')}."
    if result.remarks:
        yield "## Remarks"
        yield "\n".join(
            f"- {code(str(remark.place))}: {sentence(remark.message)}" for remark in result.remarks
        )


def sentence(text: str) -> str:
    """Return a sentence as Markdown: names in backticks become code, everything else is escaped."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:
        return escaped("`".join(parts))
    return "".join(f"`{part}`" if at % 2 else escaped(part) for at, part in enumerate(parts))


def gate_annotations(result: GateResult, folder: Path) -> Iterator[str]:
    """Yield a GitHub annotation for each failure and remark; paths are relative to `folder`, the checkout."""
    for verdict in result.failed:
        title = f"statek-sim gate: {verdict.rule}"
        yield annotation("error", verdict.place, folder, title=title, message=verdict.reason)
    for remark in result.remarks:
        yield annotation("warning", remark.place, folder, title="statek-sim gate", message=remark.message)


def annotation(level: str, place: Place, folder: Path, *, title: str, message: str) -> str:
    """Return a GitHub workflow command for a location in a file, escaped as GitHub requires."""
    path = Path(os.path.abspath(folder / place.path))
    base = Path(os.path.abspath(folder))
    shown = path.relative_to(base) if path.is_relative_to(base) else path
    properties = {"file": shown.as_posix(), "line": str(place.line), "title": title}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
