"""What outlives a worker process besides STATEK's store, and the watchdog of code that runs too long.

That is the world outside, the time, and what was seen so far.

The process that is about to be killed commits its store, writes this down and dies of SIGKILL; the next one opens the
store again and goes on from here. STATEK's own state goes through the store and nowhere else.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final, NoReturn

import dbzero
from statek.executors import utils

from statek_sim.backends.driver import Driver
from statek_sim.backends.installed import stored_objects as stored
from statek_sim.backends.installed import stored_world
from statek_sim.backends.installed.messages import Message
from statek_sim.backends.installed.runtime import InstalledRuntime
from statek_sim.backends.installed.stored_jobs import JobRegistry
from statek_sim.world.queue import ItemStatus, WorkItem

FILE: Final = "handover.json"
"""In the folder of the scenario's store."""

_KEPT: Final = "statek-sim"
"""A tag: the store forgets what nothing refers to."""


def hand_over(runtime: InstalledRuntime, driver: Driver, folder: str, *, restart: bool) -> NoReturn:
    """Leave everything to the next process and die; with `restart` its worker begins to work at once."""
    memory = {
        "restart": restart,
        "runtime": runtime.memory(),
        "driver": driver.memory(),
        **_of_the_world(),
        **_of_the_store(runtime.jobs, driver),
    }
    Path(folder, FILE).write_text(json.dumps(memory))
    # As if the store's own commits, several a second, had just come round.
    dbzero.commit()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("this process is dead")


def take_over(runtime: InstalledRuntime, driver: Driver, memory: Any) -> None:
    """Go on where the process before stopped."""
    _take_store(runtime.jobs, driver, memory)
    _take_world(memory)
    runtime.remember(memory["runtime"])
    driver.remember(memory["driver"])


def _of_the_world() -> dict[str, Any]:
    return {
        "items": [
            [item.id, str(item.status), item.owner_id, item.error_message]
            for item in stored.LIVE.queue.items.values()
        ],
        "futures": stored.LIVE.events.saved(),
        "ledger": list(stored_world.WORLD.ledger.lines),
    }


def _take_world(memory: Any) -> None:
    for name, status, owner, error in memory["items"]:
        if name not in stored.LIVE.queue.items:
            stored.LIVE.queue.add(WorkItem(name))
        item = stored.LIVE.queue.items[name]
        item.status, item.owner_id, item.error_message = ItemStatus(status), owner, error
    stored.LIVE.events.resume(memory["futures"])
    stored_world.WORLD.ledger.lines.extend(memory["ledger"])


def _of_the_store(jobs: JobRegistry, driver: Driver) -> Message:
    """Return where the objects are that the application holds in its hands."""
    kept = {
        "agents": stored_world.AGENTS,
        "handles": driver.subtasks,
        "items_stored": stored.STORED_ITEMS,
        "owners": stored_world.WORLD.owners,
    }
    for objects in kept.values():
        for kept_object in objects.values():
            dbzero.tags(kept_object).add(_KEPT)
    return {
        "names": {name: uuid for uuid, name in jobs.names.items()},
        "owner": stored_world.WORLD.owner.id,
        **{
            kind: {name: dbzero.uuid(stored) for name, stored in objects.items()}
            for kind, objects in kept.items()
        },
    }


def _take_store(jobs: JobRegistry, driver: Driver, memory: Any) -> None:
    for name, uuid in memory["names"].items():
        jobs.names[uuid], jobs.jobs[name] = name, dbzero.fetch(uuid)
    for role, uuid in memory["agents"].items():
        stored_world.AGENTS[role] = dbzero.fetch(uuid)
    driver.subtasks.update({name: dbzero.fetch(uuid) for name, uuid in memory["handles"].items()})
    stored.STORED_ITEMS.update({name: dbzero.fetch(uuid) for name, uuid in memory["items_stored"].items()})
    owners = {name: dbzero.fetch(uuid) for name, uuid in memory["owners"].items()}
    stored_world.enter_owners(owners, memory["owner"])


MOST_SECONDS: Final = 1.0
"""Processor seconds that one block of code may take; a scenario's blocks take a thousandth of one."""

MOST_BYTES: Final = 512 * 2**20
"""Memory that the process may have more than at the beginning, as of a small container."""

_EVERY: Final = 0.02


class Watchdog:
    """Watches while code runs. `lost(kind, message)` is called once and does not come back."""

    def __init__(self, lost: Callable[[str, str], None]) -> None:
        self._lost = lost
        self._begun = 0.0
        self._at_first = _memory()
        signal.signal(signal.SIGPROF, self._look)

    def install(self) -> None:
        """Watch every block of code from now on."""
        run = utils._exec_code_body

        @wraps(run)
        def watched(*args: Any, **kwargs: Any) -> None:
            self._begun = _seconds()
            signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
            try:
                run(*args, **kwargs)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)

        utils._exec_code_body = watched

    def _look(self, *_: object) -> None:
        if _memory() - self._at_first > MOST_BYTES:
            self._lost(
                "OutOfMemory", f"killed: the code has taken more than {MOST_BYTES // 2**20} MiB of memory"
            )
        elif _seconds() - self._begun > MOST_SECONDS:
            self._lost(
                "NeverEnds", f"killed: the code ran for {MOST_SECONDS:g} s of processor time without an end"
            )


def _seconds() -> float:
    """Return the seconds of processor time that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _memory() -> int:
    """Return the most bytes of memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
