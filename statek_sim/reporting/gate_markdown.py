"""The gate's result as GitHub-flavoured Markdown, for CI step summaries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from statek_sim.gate.verdict import GateResult
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
