"""The wall clock of user code: `datetime.now()` and friends follow virtual time.

freezegun replaces the standard clocks in user modules while a run lasts. It hangs or leaks around asyncio event
loops (its issues 437, 521, 529), which is why nothing in this package relies on it: everything here takes a Clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, SupportsIndex

import freezegun

from statek_sim.clock import VirtualClock
from statek_sim.runtime.state.context import traced_job

UNTOUCHED: Final = (
    "asyncio",
    "statek_sim",
    "_pytest",
    "xdist",
    "execnet",
    "hypothesis",
    "rich",
    "tiktoken",
    # Looked at by freezegun, its lazy attributes import its command line, which asks the network who runs it.
    "huggingface_hub",
)
"""Packages that keep the real clock: they measure how long things take."""


@contextmanager
def _direct_callers_only() -> Iterator[None]:
    """Have freezegun judge a clock read by who makes it, not by who is further up the stack: that is always us."""
    depth = freezegun.api.call_stack_inspection_limit
    freezegun.api.call_stack_inspection_limit = 1
    try:
        yield
    finally:
        freezegun.api.call_stack_inspection_limit = depth


@contextmanager
def _virtual_sleep() -> Iterator[None]:
    """Let `time.sleep` in a tool pass virtual time; outside of jobs it sleeps as ever."""
    real = time.sleep

    def sleep(seconds: SupportsIndex | float, /) -> None:
        job = traced_job()
        if job is None:
            real(seconds)
        else:
            job.spend(float(seconds))

    time.sleep = sleep
    try:
        yield
    finally:
        time.sleep = real


@contextmanager
def frozen_wall_clock(clock: VirtualClock, *, active: bool = True) -> Iterator[None]:
    """Make wall-clock reads in user code return `clock.wall()` inside the block; nothing when not `active`.

    `time.sleep` of a tool takes no real time there: its job's step takes so many virtual seconds longer.
    """
    if not active:
        yield
        return
    freezing = freezegun.freeze_time(clock.wall(), ignore=list(UNTOUCHED))
    with _virtual_sleep(), _direct_callers_only(), freezing as frozen:

        def follow() -> None:
            frozen.move_to(clock.wall())

        clock.listeners.append(follow)
        try:
            yield
        finally:
            clock.listeners.remove(follow)
