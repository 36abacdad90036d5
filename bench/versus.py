"""Comparisons with the real package: the same work on both sides, alternately."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from bench.entry import Entry, rate_entry, time_entry
from bench.sides import BenchError, Side
from bench.workload import PEER_VERSION, Measurement

PEER_NAME: Final = f"statek {PEER_VERSION}"

UNSTEADY: Final = 1.25
"""How many times longer than a side's fastest run its slowest may take."""

Pairs = list[tuple[Measurement, Measurement]]
"""Our and their measurements, one pair per run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A workload run on both sides, and its entries."""

    workload: str
    size: int
    entries: Callable[[Pairs], Iterator[Entry]]


def run_contest(
    contest: Contest, ours: Side, theirs: Side, runs: int, warn: Callable[[str], None]
) -> list[Entry]:
    """Measure both sides `runs` times, alternating which goes first, and return the entries.

    Calls `warn` if the machine was too busy for the ratios to be quoted.
    Raises `BenchError` if the sides did different work: steps, bytes or console.
    """
    pairs: Pairs = []
    for number in range(runs):
        if number % 2:
            their = theirs.measure(contest.workload, contest.size)
            our = ours.measure(contest.workload, contest.size)
        else:
            our = ours.measure(contest.workload, contest.size)
            their = theirs.measure(contest.workload, contest.size)
        _check_same_work(our, their)
        pairs.append((our, their))
    doubt = unsteady(pairs)
    if doubt is not None:
        warn(f"  do not quote {contest.workload} {contest.size:,}: {doubt}")
    return list(contest.entries(pairs))


def unsteady(pairs: Pairs) -> str | None:
    """Return why these runs should not be quoted, or None.

    Alternating does not compensate for a busy machine: every burst of load hits the peer's long runs,
    but often misses our short ones, so the ratio comes out too high.
    """
    return unsteady_times([(our.seconds, their.seconds) for our, their in pairs])


def unsteady_times(pairs: Sequence[tuple[float, float]]) -> str | None:
    """Return the same for seconds, ours and theirs per run."""
    for side, seconds in (("ours", [our for our, _ in pairs]), ("theirs", [their for _, their in pairs])):
        if max(seconds) > UNSTEADY * min(seconds):
            return f"{side} took {min(seconds):.3g} to {max(seconds):.3g} s for the same work"
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    return f"load average {load:.1f} on {cores} cores" if load > cores else None


def _check_same_work(ours: Measurement, theirs: Measurement) -> None:
    if ours.work() == theirs.work():
        return
    rows = [
        f"  {name}: ours {our!r:.300}, theirs {their!r:.300}"
        for (name, our), their in zip(ours.work().items(), theirs.work().values(), strict=True)
        if our != their
    ]
    raise BenchError(
        "\n".join([f"{ours.workload} {ours.size}: the two sides did not do the same work", *rows])
    )


def _steps_per_second(name: str, goal: float | None) -> Callable[[Pairs], Iterator[Entry]]:
    def entries(pairs: Pairs) -> Iterator[Entry]:
        yield rate_entry(
            name=name,
            peer=PEER_NAME,
            unit="steps/s",
            ours=median(our.steps / our.seconds for our, _ in pairs),
            theirs=median(their.steps / their.seconds for _, their in pairs),
            goal=goal,
        )

    return entries


def _suspended(pairs: Pairs) -> Iterator[Entry]:
    size = pairs[0][0].size
    yield time_entry(
        name=f"{size:,} jobs to SUSPENDED",
        peer=PEER_NAME,
        unit="s",
        ours=median(our.seconds for our, _ in pairs),
        theirs=median(their.seconds for _, their in pairs),
        goal=None,
    )
    for key, name in (
        ("sweep", f"look for work among {size:,} waiting jobs, none ready"),
        ("wake", f"wake one of {size:,} waiting jobs and finish it"),
    ):
        yield time_entry(
            name=name,
            peer=PEER_NAME,
            unit="ms",
            ours=1e3 * median(our.extra[key] for our, _ in pairs),
            theirs=1e3 * median(their.extra[key] for _, their in pairs),
            goal=None,
        )


CONTESTS: Final = (
    Contest(workload="jobs", size=1000, entries=_steps_per_second("1,000 jobs x 3 turns", 20)),
    Contest(
        workload="varied_jobs",
        size=1000,
        entries=_steps_per_second("1,000 jobs x 3 turns, every reply different", None),
    ),
    Contest(workload="long_job", size=200, entries=_steps_per_second("one job of 200 turns", None)),
    Contest(workload="long_job", size=800, entries=_steps_per_second("one job of 800 turns", 50)),
    Contest(workload="suspend", size=10_000, entries=_suspended),
)
"""Everything measured against the real package."""
