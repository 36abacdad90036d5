"""Shows random programs that differ as scenarios to paste into a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import indent

from statek_sim.compare.matrix import Verdict
from statek_sim.reporting.comparison import DIFFERS_IN, value_lines
from statek_sim.scenario.edit import block
from statek_sim.values import JSON
from tools.random_programs.compare import RandomDifference, RandomRun, for_profile


def random_lines(runs: Sequence[RandomRun]) -> Iterator[str]:
    """Yield the examples that differ as scenarios to paste into a file, then the numbers."""
    for run in runs:
        for found in run.differing:
            yield from _found_lines(run, found, Verdict.DIFFERS)
        for found in run.varying:
            yield from _found_lines(run, found, Verdict.VARIES)
    for run in runs:
        yield f"statek {run.version}: {run.examples} random examples: {len(run.differing)} differ"


def _found_lines(run: RandomRun, found: RandomDifference, verdict: Verdict) -> Iterator[str]:
    first, *more = found.differences
    yield f"{found.example.name} on {run.version}: {DIFFERS_IN[verdict]} {first.field}"
    yield from value_lines(first)
    if more:
        yield f"    also: {', '.join(difference.field for difference in more)}"
    if found.smallest is not None:
        yield "    the smallest example like it:"
        scenario: dict[str, JSON] = {
            "id": found.example.name,
            "title": f"Differs in {first.field}.",
            "profiles": [run.profile],
            **for_profile(found.smallest, run.profile),
        }
        yield indent(f"scenarios:{block([scenario], indent=2, column=0, spread=True)}", "    ")
