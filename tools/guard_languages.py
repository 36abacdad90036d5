"""Measures the shipped guards by language, on texts by an author who had not read the rules.

    python -m tools.guard_languages [FILE]

An id is `language-kind-number`. The kind `article` is a harmless text that quotes an attack: guards may warn about it
but must not block it. An attack counts as found if it is blocked.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from statek_sim.agent.effects import Subject
from statek_sim.agent.guards.efficacy import Sample, corpus_file
from statek_sim.agent.guards.pipeline import GuardSet
from statek_sim.agent.guards.shipped import texts
from statek_sim.intervals import wilson

TEXTS: Final = Path(__file__).resolve().parents[1] / "tests" / "agent" / "injections"
"""The folder with the texts: `blind.jsonl` and the smaller `blind-second.jsonl`."""


def table(samples: Iterable[Sample]) -> Iterator[str]:
    """Yield a Markdown table row per language, in text order, and one for all languages."""
    guards = GuardSet(texts())
    by_language: dict[str, Counter[tuple[str, str]]] = {}
    for sample in samples:
        language, kind, _ = sample.id.split("-")
        group = "attack" if sample.bad else "article" if kind == "article" else "plain"
        action = guards.run(Subject(point=sample.point, text=sample.text)).action
        by_language.setdefault(language, Counter())[group, action] += 1
    for language, counts in by_language.items():
        yield _row(language, counts)
    yield _row("all", sum(by_language.values(), Counter()))


def _row(name: str, counts: Counter[tuple[str, str]]) -> str:
    attacks, plain, articles = (
        sum(number for (group, _), number in counts.items() if group == wanted)
        for wanted in ("attack", "plain", "article")
    )
    found, wrong = counts["attack", "block"], counts["plain", "block"]
    blocked, warned = counts["article", "block"], counts["article", "warn"]
    cells = (
        name,
        f"{found} of {attacks}, {_share(found, attacks)}",
        f"{wrong} of {plain}",
        f"{blocked} blocked, {warned} warned of {articles}",
        _share(found, found + wrong),
        _share(found, found + wrong + blocked),
    )
    return f"| {' | '.join(cells)} |"


def _share(hits: int, of: int) -> str:
    """Return a percentage with its 95 % Wilson interval, or "-" if there are no texts."""
    interval = wilson(hits, of)
    if interval is None:
        return "-"
    low, high = (100 * edge for edge in interval)
    return f"{100 * hits / of:.0f} % ({low:.0f} to {high:.0f})"


def main(file: Path) -> None:
    """Print the table for a file of texts."""
    print("\n".join(table(corpus_file(file, "injection").samples)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TEXTS / "blind.jsonl")
