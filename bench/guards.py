"""The shipped text guards on 10 KB: their total time, compared with searching for each pattern separately."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Final

from bench.entry import Entry, time_entry
from statek_sim.agent.effects import GuardPoint, Subject
from statek_sim.agent.guards.injection import rules
from statek_sim.agent.guards.personal_data import KINDS
from statek_sim.agent.guards.pipeline import GuardSet
from statek_sim.agent.guards.shipped import texts
from statek_sim.cassettes.secret_patterns import shapes

MOST_MILLISECONDS: Final = 5.0
_SIZE: Final = 10 * 1024
_DOCS: Final = Path(__file__).parent.parent / "docs"
TEXTS: Final = {
    "10 KB of Markdown": (_DOCS / "agent.md").read_text(encoding="utf-8")[:_SIZE],
    "10 KB of prose": ("Please send the report to Anna by 12 May 2026, order 88123. " * 200)[:_SIZE],
}


def guard_entries(runs: int) -> Iterator[Entry]:
    """Yield the time of all shipped text guards for 10 KB, and of searching for their patterns one by one."""
    guards = GuardSet(texts())
    patterns = [
        *(re.compile(rule.pattern) for rule in rules()),
        *(kind.pattern for kind in KINDS),
        *(shape.pattern for shape in shapes()),
    ]

    def naive(text: str) -> None:
        lowered = text.lower()
        for pattern in patterns:
            pattern.search(lowered)

    for name, text in TEXTS.items():
        ours = _milliseconds(
            lambda subject_text: guards.run(Subject(point=GuardPoint.INPUT, text=subject_text)), text, runs
        )
        yield Entry(
            name=f"all shipped guards of texts on {name}",
            unit="ms",
            ours=ours,
            goal=MOST_MILLISECONDS,
        )
        yield time_entry(
            name=f"all shipped guards of texts on {name}",
            peer=f"{len(patterns)} searches",
            unit="ms",
            ours=ours,
            theirs=_milliseconds(naive, text, runs),
            goal=None,
        )


def _milliseconds(look: Callable[[str], object], text: str, runs: int) -> float:
    """Return the median CPU time; every text is different, so nothing is cached."""
    look(text)
    measured = []
    for number in range(max(runs, 10)):
        other = f"{text}{number}"
        began = process_time()
        look(other)
        measured.append(process_time() - began)
    return 1e3 * median(measured)
