"""The gate's result for GitHub: a summary as Markdown, and annotations on the lines of preset files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from statek_sim.gate.verdict import GateResult, Place
from statek_sim.reporting.gate_terminal import of_cell, rules_of, tally, verdict_words
from statek_sim.reporting.numbers import plural
from statek_sim.reporting.usage_markdown import escaped, markdown_table

_FAILURES: Final = 200
"""Failures told in full. GitHub shows no step summary of more than 1 MiB."""


def gate_markdown(result: GateResult) -> str:
    """Return the whole report. Equal results give equal text."""
    return "\n\n".join(_blocks(result)) + "\n"


def _blocks(result: GateResult) -> Iterator[str]:
    yield f"# STATEK presets: {verdict_words(result)}"
    presets = [preset.name for preset in result.presets]
    rows = [
        [escaped(rule), *(_cell(tally(of_cell(result, preset, rule))) for preset in presets)]
        for rule in rules_of(result)
    ]
    yield markdown_table(["rule", *map(_code, presets)], rows)
    if result.failed:
        yield "## What fails"
        yield "\n".join(
            f"- {sentence(verdict.reason)} ({escaped(verdict.rule)}, {_code(str(verdict.place))})"
            for verdict in result.failed[:_FAILURES]
        )
    if len(result.failed) > _FAILURES:
        yield f"And {plural(len(result.failed) - _FAILURES, 'more failure')}."
    if result.remarks:
        yield "## Noticed"
        yield "\n".join(
            f"- {_code(str(remark.place))}: {sentence(remark.message)}" for remark in result.remarks
        )


def sentence(text: str) -> str:
    """Return a sentence whose names in backticks are code, and whose other words are shown as they are."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:
        return escaped("`".join(parts))
    return "".join(f"`{part}`" if at % 2 else escaped(part) for at, part in enumerate(parts))


def _cell(text: str) -> str:
    return f"**{text}**" if "fail" in text else text


def _code(text: str) -> str:
    plain = " ".join(text.split())
    return escaped(plain) if "`" in plain else "`" + plain.replace("|", "\\|") + "`"


def gate_annotations(result: GateResult, folder: Path) -> Iterator[str]:
    """Yield a line for every failure and every remark; files in `folder`, the checkout, are named from there."""
    for verdict in result.failed:
        title = f"statek-sim gate: {verdict.rule}"
        yield annotation("error", verdict.place, folder, title=title, message=verdict.reason)
    for remark in result.remarks:
        yield annotation("warning", remark.place, folder, title="statek-sim gate", message=remark.message)


def annotation(level: str, place: Place, folder: Path, *, title: str, message: str) -> str:
    """Return one workflow command, escaped as GitHub demands: values of properties more than the message."""
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
