"""The needle audit and the memory of models, as tables for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statek_sim.agent.context.audit import Audited
from statek_sim.agent.context.transcripts import PLACES, Place
from statek_sim.agent.context.vram.budget import ContextFit, fitting, mib
from statek_sim.agent.context.vram.cards import MIB
from statek_sim.agent.context.vram.models import Model
from statek_sim.values import JSON

AUDIT_HEAD = ("strategy", "saved", "cached", "compactions", "over", "refused", "failed")
"""Columns of an audit before those of the places: parts of tokens, then numbers of prompts or conversations."""

_CARDS = (1024, 8192, 24_576)
"""MiB of free memory in the table of models."""
_TYPES = ("f16", "q8_0", "q4_0")
"""Types of cache in the table of models."""


def audit_rows(found: Sequence[Audited]) -> list[tuple[str, ...]]:
    """Return an audit as rows, the head first."""
    places = _places(found)
    return [(*AUDIT_HEAD, *places), *(_audit_row(audited, places) for audited in found)]


def _audit_row(audited: Audited, places: Sequence[Place]) -> tuple[str, ...]:
    courses = audited.courses
    failed = sum(course.failed is not None for course in courses)
    through = failed < len(courses)
    return (
        audited.strategy,
        f"{audited.saved:.0%}" if through else "-",
        f"{audited.hit_share:.0%}" if through else "-",
        str(sum(course.compactions for course in courses)),
        str(sum(course.over for course in courses)),
        str(sum(course.refused for course in courses)),
        f"{failed} of {len(courses)}" if failed else "-",
        *(f"{audited.kept[place]}/{audited.planted[place]}" for place in places),
    )


def _places(found: Sequence[Audited]) -> list[Place]:
    planted = {place for audited in found for place in audited.planted}
    order: tuple[Place, ...] = (*PLACES, "given")
    return [place for place in order if place in planted]


def audit_json(found: Sequence[Audited]) -> dict[str, JSON]:
    """Return an audit for machines: for each strategy its sums, and each conversation with what it lost and when."""
    return {"schema": "statek-sim/context-audit@1", "strategies": [_audited(audited) for audited in found]}


def _audited(audited: Audited) -> JSON:
    return {
        "strategy": audited.strategy,
        "tokens_sent": audited.sent,
        "tokens_without": audited.whole,
        "saved": round(audited.saved, 4),
        "cached": round(audited.hit_share, 4),
        "kept": {place: [audited.kept[place], audited.planted[place]] for place in audited.planted},
        "conversations": [
            {
                "id": course.talk,
                "prompts": course.prompts,
                "largest": course.largest,
                "compactions": course.compactions,
                "over": course.over,
                "refused": course.refused,
                "failed": course.failed,
                "lost": [
                    {"text": needle.text, "place": needle.place, "prompt": at} for needle, at in course.lost
                ],
            }
            for course in audited.courses
        ],
    }


def model_rows(models: Sequence[Model]) -> list[tuple[str, ...]]:
    """Return what the formula says about models, as rows, the head first."""
    head = (
        "model",
        "layers",
        "MiB per 1K f16",
        "q8_0",
        "q4_0",
        *(f"{free // 1024} GiB free" for free in _CARDS),
    )
    return [head, *map(_model_row, models)]


def _model_row(model: Model) -> tuple[str, ...]:
    shape = model.shape
    rates = (mib(1000 * float(shape.bytes_per_token(kv))) for kv in _TYPES)
    return (
        model.name,
        str(len(shape.layers)),
        *(f"{rate:.1f}" for rate in rates),
        *(_tokens(fitting(shape, [free * MIB])) for free in _CARDS),
    )


def _tokens(fit: ContextFit) -> str:
    """Return how much fits, with a star where the model's longest context bounds it."""
    return "any" if fit.tokens is None else f"{fit.tokens:,}" + ("" if fit.bound == "memory" else "*")


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines, the first column to the left and the others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        first, *rest = (
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join((first, *rest)).rstrip()


def in_markdown(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as a table in Markdown, the first of them its head."""
    head, *rest = rows
    for row in (head, ["---", *["---:"] * (len(head) - 1)], *rest):
        yield f"| {' | '.join(row)} |"
