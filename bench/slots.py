"""The queue of slots: what one job takes of it, from its coming to its end, while others wait."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import process_time
from typing import Final

from bench.entry import Entry
from statek_sim.agent.slots.queue import SlotQueue
from statek_sim.agent.slots.rules import HARDENED

JOBS: Final = 100_000
LEAST_A_SECOND: Final = 50_000
_SUBMITTERS: Final = 7


def slot_entries(runs: int) -> Iterator[Entry]:
    """Yield the processor time of a job, of as many waiting as may."""
    yield Entry(
        name=f"a job of a slot worker's queue, {HARDENED.waiting} waiting",
        peer="-",
        unit="µs/job",
        ours=1e6 * median(_seconds() for _ in range(runs)) / JOBS,
        goal=1e6 / LEAST_A_SECOND,
    )


def _seconds() -> float:
    queue = SlotQueue(HARDENED)
    waiting = HARDENED.waiting or 0
    began = process_time()
    for number in range(waiting):
        queue.add(f"submitter {number % _SUBMITTERS}", 1 + number % 10, now=0.0)
    for number in range(JOBS):
        taken = queue.take(now=float(number))
        assert taken is not None, "somebody waits"
        queue.add(f"submitter {number % _SUBMITTERS}", 1 + number % 10, now=float(number))
        queue.leave(taken, now=float(number))
    return process_time() - began
