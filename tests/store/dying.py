"""Runs whose process is killed for real, with SIGKILL, at a commit of one's choice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import closing

from statek_sim.backends.deviation_plan import Place, Point
from statek_sim.backends.deviations import FirstRun
from statek_sim.backends.durable import DurableRun, about, run_name
from statek_sim.scenario.schema import Scenario
from statek_sim.store.open import open_store


def in_a_process(work: Callable[[], None]) -> int:
    """Do something in a process of its own; return how it ended, as `os.waitpid` tells it."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1]


def die() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed_run(
    address: str, scenario: Scenario, profile: str, place: Place, *, first_run: FirstRun | None = None
) -> None:
    """Begin a run on a store in a process that dies at `place`, once everything is committed that is so by then."""

    def work() -> None:
        def watch(point: Point) -> None:
            if point.place == place:
                die()

        with closing(open_store(address, clock=lambda: 0.0)) as store:
            name = run_name(scenario, profile)
            lease = store.claim(
                name, worker="the dead one", about=about(scenario, profile, preset=None, seed=None)
            )
            DurableRun(store, lease, scenario, profile, first_run=first_run, watch=watch).finish()

    status = in_a_process(work)
    assert os.WIFSIGNALED(status), f"it did not die at {place}"
    assert os.WTERMSIG(status) == signal.SIGKILL
