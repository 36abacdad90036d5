"""A public checker that every handoff file passes, ours or a user's, through a small adapter.

    def test_my_handoff_loses_nothing() -> None:
        check_handoff(MyAdapter)

A session does three steps and is killed before every operation on the disk, with every loss of power that the disk
knows; the next one resumes and does what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from statek_sim.adapters import Trial, checked, findings
from statek_sim.store.disk import Disk
from statek_sim.store.simulated_disk import Killed, SimulatedDisk

STEPS: Final = ("plan", "code", "test")
"""The steps that a session does, in their order."""


class HandoffFinding(StrEnum):
    """What can be wrong with a handoff file."""

    UNREADABLE = "a session that was killed cannot be resumed"
    LOST = "a step that was finished is not done any more"
    REDONE = "a step that was begun is open again, and would be done twice"
    INVENTED = "a step is done that nobody finished"
    NOT_FENCED = "the session before goes on writing after another one has resumed"
    OVERWRITTEN = "a task in progress is overwritten by another one"


@dataclass(frozen=True, slots=True)
class Resumed:
    """What the next session knows: steps that are done, and steps that were begun and may have happened."""

    done: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


class HandoffAdapter(Protocol):
    """One session's hold on a handoff file. What it refuses it raises, whatever that is."""

    def begin(self, task: str) -> object:
        """Begin a task that is not there yet."""

    def resume(self) -> Resumed | None:
        """Take over the task of the session before; None when there is none in progress."""

    def start(self, step: str) -> object:
        """Note that a step begins."""

    def finish(self, step: str) -> object:
        """Note that a step is done."""


MakeHandoff = Callable[[Disk], HandoffAdapter]
"""Returns the adapter of a new session on a disk."""


def check_handoff(make: MakeHandoff) -> int:
    """Kill a session at every moment; return how many states were resumed, or raise `ContractViolation`."""
    return checked((finding, f"{how}: {finding}") for finding, how in _played(make))


def handoff_findings(make: MakeHandoff) -> dict[HandoffFinding, str]:
    """Return everything that is wrong, each with the first way to see it."""
    return findings(_played(make))


def _played(make: MakeHandoff) -> Iterator[Trial[HandoffFinding]]:
    disk = SimulatedDisk()
    _lived(make(disk), [], [])
    for point in range(disk.operations):
        dying, began, finished = SimulatedDisk(dies_at=point), list[str](), list[str]()
        try:
            _lived(make(dying), began, finished)
        except Killed:
            pass
        for number, left in enumerate(dying.after_crash()):
            yield _resumed(make, left, began, finished), f"killed before operation {point}, state {number}"
    yield _fenced(make), "two sessions"
    yield _kept(make), "two tasks"


def _lived(session: HandoffAdapter, began: list[str], finished: list[str]) -> None:
    """Do the steps, noting each that has begun and each that is finished, as those outside know it."""
    session.begin("Ship it")
    for step in STEPS:
        session.start(step)
        began.append(step)
        session.finish(step)
        finished.append(step)


def _resumed(make: MakeHandoff, disk: Disk, began: list[str], finished: list[str]) -> HandoffFinding | None:
    try:
        resumed = make(disk).resume() or Resumed()
    except Exception:  # noqa: BLE001  # a user's file
        return HandoffFinding.UNREADABLE
    if not set(finished) <= set(resumed.done):
        return HandoffFinding.LOST
    if not set(began) <= {*resumed.done, *resumed.unknown}:
        return HandoffFinding.REDONE
    return HandoffFinding.INVENTED if not set(resumed.done) <= set(began) else None


def _fenced(make: MakeHandoff) -> HandoffFinding | None:
    disk = SimulatedDisk()
    before = make(disk)
    before.begin("Ship it")
    before.start("plan")
    after = make(disk)
    after.resume()
    if not _refuses(lambda: before.finish("plan")):
        return HandoffFinding.NOT_FENCED
    return None


def _kept(make: MakeHandoff) -> HandoffFinding | None:
    disk = SimulatedDisk()
    make(disk).begin("Ship it")
    if not _refuses(lambda: make(disk).begin("Write a poem")):
        return HandoffFinding.OVERWRITTEN
    return None


def _refuses(act: Callable[[], object]) -> bool:
    try:
        act()
    except Exception:  # noqa: BLE001  # whatever a user's file refuses with
        return True
    return False
