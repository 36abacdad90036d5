"""Slots: a job's cost in the worker under asyncio, and in its queue, while others wait."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from statistics import median
from time import process_time
from typing import Final

from bench.entry import Entry
from statek_sim.agent.slots import DEFAULT, SlotQueue, SlotWorker

JOBS: Final = 100_000
WORKED: Final = 20_000
"""The worker's jobs, each with a task switch that its submitter waits for."""
LEAST_A_SECOND: Final = 50_000
_SUBMITTERS: Final = 7


def slot_entries(runs: int) -> Iterator[Entry]:
    """Yield the CPU time per job with the maximum number waiting."""
    yield Entry(
        name=f"a job of a slot worker under asyncio, {DEFAULT.waiting} agents in turn",
        unit="µs/job",
        ours=1e6 * median(asyncio.run(_worker_seconds()) for _ in range(runs)) / WORKED,
        goal=1e6 / LEAST_A_SECOND,
    )
    yield Entry(
        name=f"a job of a slot worker's queue, {DEFAULT.waiting} waiting",
        unit="µs/job",
        ours=1e6 * median(_seconds() for _ in range(runs)) / JOBS,
        goal=1e6 / LEAST_A_SECOND,
    )


async def _worker_seconds() -> float:
    worker, jobs, most = SlotWorker(DEFAULT), iter(range(WORKED)), 0

    async def agent(name: str) -> None:
        nonlocal most
        for number in jobs:
            await worker.submit(lambda slot: asyncio.sleep(0), submitter=name, priority=1 + number % 10)
            most = max(most, worker.waiting)

    began = process_time()
    await asyncio.gather(
        *[agent(f"submitter {number % _SUBMITTERS}") for number in range(DEFAULT.waiting or 1)]
    )
    took = process_time() - began
    if most < (DEFAULT.waiting or 1) - 2:
        raise SystemExit(f"{most} jobs waited at most, expected nearly {DEFAULT.waiting}")
    return took


def _seconds() -> float:
    queue = SlotQueue(DEFAULT)
    waiting = DEFAULT.waiting or 0
    began = process_time()
    for number in range(waiting):
        queue.add(f"submitter {number % _SUBMITTERS}", 1 + number % 10, now=0.0)
    for number in range(JOBS):
        taken = queue.take(now=float(number))
        assert taken is not None, "somebody waits"
        queue.add(f"submitter {number % _SUBMITTERS}", 1 + number % 10, now=float(number))
        queue.leave(taken, now=float(number))
    return process_time() - began
