"""The wall clock of user code: `datetime.now()` and similar functions return virtual time.

During a run, freezegun replaces the standard clocks in user modules. Freezegun hangs or leaks around asyncio event
loops (its issues 437, 521, 529), so this package never reads a replaced clock: its code takes a `Clock`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from typing import Any, Final, SupportsIndex

import freezegun

from statek_sim.clock import VirtualClock
from statek_sim.runtime.state.context import traced_job
from statek_sim.values import unchanged

UNTOUCHED: Final = (
    "asyncio",
    "statek_sim",
    "_pytest",
    "xdist",
    "execnet",
    "hypothesis",
    "rich",
    "tiktoken",
    # freezegun inspects every attribute of a module. In these packages, lazy attributes import all of openai
    # (0.6 s), or a command line that accesses the network.
    "openai",
    "huggingface_hub",
)
"""Packages that keep the real clock, because they measure durations or are slow to inspect."""


@contextmanager
def _direct_callers_only() -> Iterator[None]:
    """Make freezegun check only a clock's direct caller, because callers further up are in this package."""
    depth = freezegun.api.call_stack_inspection_limit
    freezegun.api.call_stack_inspection_limit = 1
    try:
        yield
    finally:
        freezegun.api.call_stack_inspection_limit = depth


@contextmanager
def _virtual_sleep() -> Iterator[None]:
    """Make `time.sleep` in tools take virtual time inside the block; outside jobs, it sleeps in real time."""
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
    """Make wall-clock reads in user code return `clock.wall()` inside the block; do nothing unless `active` is set.

    `time.sleep` in a tool takes no real time: the job's step takes that many more virtual seconds. `datetime` and
    `date` objects created by user code in the block are real ones, which a job's variables can hold.
    """
    if not active:
        yield
        return
    freezing = freezegun.freeze_time(clock.wall(), ignore=list(UNTOUCHED))
    with _virtual_sleep(), plain_dates(), _direct_callers_only(), freezing as frozen:

        def follow() -> None:
            frozen.move_to(clock.wall())

        clock.listeners.append(follow)
        try:
            yield
        finally:
            clock.listeners.remove(follow)


@contextmanager
def plain_dates() -> Iterator[None]:
    """Make freezegun's fakes of `datetime` and `date` create and return real objects inside the block.

    dbzero stores `datetime` and `date` objects, but not instances of subclasses.
    """
    api: Any = freezegun.api  # the class that creates its dates is not in its type hints
    with ExitStack() as stack:
        _replace(stack, api, "datetime_to_fakedatetime", unchanged)
        _replace(stack, api, "date_to_fakedate", _plain_date)
        for stand_in, kind in ((api.FakeDate, date), (api.FakeDatetime, datetime)):
            _replace(stack, type(stand_in), "__call__", _maker_of(stand_in, kind))
        yield


def _replace(stack: ExitStack, owner: Any, name: str, replacement: object) -> None:
    if name in vars(owner):
        stack.callback(setattr, owner, name, vars(owner)[name])
    else:
        stack.callback(delattr, owner, name)
    setattr(owner, name, replacement)


def _plain_date(value: date) -> date:
    """Return a real `date`, because freezegun's `today()` returns a datetime."""
    return date(value.year, value.month, value.day)


def _maker_of(stand_in: type, kind: type) -> Any:
    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        return kind(*args, **kwargs) if cls is stand_in else type.__call__(cls, *args, **kwargs)

    return make
