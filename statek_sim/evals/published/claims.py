"""The numbers of document 004 (sections 1 and 10), and what is found of them in the counts that Forge publishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from statek_sim.evals.published.forge import Published, published_of
from statek_sim.evals.statistics.clusters import effective_runs, icc
from statek_sim.intervals import wilson

MODEL: Final = "Ministral-3-8B-Instruct-2512-Q8_0"
SINGLE: Final = 26
"""Runs of a suite of 26 scenarios, each once (004 §10)."""

OTHERS_SCORE: Final = "99.3 %"
OTHERS_PLACE: Final = (
    "ministral-3:8b-reasoning-2512-q4_K_M with the harness, on 18 scenarios "
    "(docs/results/raw/ablation.md at commit 4545dde5e927e4f27d504cd9a89f19d3e12874de)"
)
"""Where a 99 stands that the document may mean: typed from that page, the counts behind it are not kept here."""


class Claim(NamedTuple):
    """What a document says, and what is found; `found` False: in no published count that we know of."""

    says: str
    found: bool
    what: str


def claims() -> Iterator[Claim]:
    """Yield the document's numbers."""
    counts = published_of(MODEL)
    yield _fails(counts)
    yield _succeeds(counts)
    yield Claim("26 scenarios", True, f"{len(counts.scenarios)} scenarios, {counts.runs} runs of each")
    yield Claim(
        "each part of the harness has its share of the gain",
        False,
        "counts are published for all guardrails and for none; any split over parts is an assumption",
    )
    yield _single_runs(counts)
    yield _alike(counts)


def _fails(counts: Published) -> Claim:
    ended, right = sum(counts.bare_completed), sum(counts.bare_correct)
    return Claim(
        "an 8B model fails 47 %",
        True,
        f"{MODEL}, bare: {_share(counts.in_all - ended, counts.in_all)} do not complete; "
        f"{_share(right, counts.in_all)} are right",
    )


def _succeeds(counts: Published) -> Claim:
    ended, right = counts.harness_completed_in_all, sum(counts.harness_correct)
    return Claim(
        "with a harness 99 % succeed",
        False,
        f"the same model with the harness: {_share(ended, counts.in_all)} complete, "
        f"{_share(right, counts.in_all)} are right; {OTHERS_SCORE} is the score of another model: {OTHERS_PLACE}",
    )


def _single_runs(counts: Published) -> Claim:
    bare = round(SINGLE * sum(counts.bare_completed) / counts.in_all)
    return Claim(
        "26 scenarios, each run once, show it",
        False,
        f"{_with_interval(bare, SINGLE)}; {_with_interval(SINGLE, SINGLE)}: 26 right runs do not show 99 %",
    )


def _alike(counts: Published) -> Claim:
    runs = [[1.0] * completed + [0.0] * (counts.runs - completed) for completed in counts.bare_completed]
    return Claim(
        "many runs of each scenario show it",
        False,
        f"bare runs of one scenario end alike (correlation {icc(runs) or 0.0:.2f}): {counts.in_all:,} of them are "
        f"worth about {effective_runs(runs) or 0.0:.0f} independent ones",
    )


def _share(count: int, of: int) -> str:
    return f"{count:,} of {of:,} runs = {100 * count / of:.1f} %"


def _with_interval(count: int, of: int) -> str:
    low, high = wilson(count, of) or (0.0, 1.0)
    return f"{count} of {of} is {100 * low:.1f} % to {100 * high:.1f} %"
