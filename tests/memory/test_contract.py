"""The checker of handoff files: ours passes it, and each fault is found."""

from __future__ import annotations

import json

import pytest

from statek_sim.agent.memory.contract import (
    HandoffFinding,
    MakeHandoff,
    Resumed,
    check_handoff,
    handoff_findings,
)
from statek_sim.agent.memory.handoff import HandoffFile
from statek_sim.errors import ContractViolation
from statek_sim.store.disk import Disk


class Ours:
    """Our file for the checker."""

    def __init__(self, disk: Disk) -> None:
        self._file = HandoffFile(disk, wall=lambda: "2026-01-01T09:00:00+00:00")

    def begin(self, task: str) -> object:
        return self._file.begin(task)

    def resume(self) -> Resumed | None:
        handoff = self._file.resume()
        return None if handoff is None else Resumed(handoff.done, handoff.unknown)

    def start(self, step: str) -> object:
        return self._file.start(step)

    def finish(self, step: str) -> object:
        return self._file.finish(step)


class Plain:
    """A plain write of JSON, as document 004 has it: done steps alone."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._done: list[str] = []

    def begin(self, task: str) -> object:
        self._done = []
        self._put()
        return None

    def resume(self) -> Resumed | None:
        content = self._disk.read("progress.json")
        self._done = [] if content is None else json.loads(content)
        return Resumed(tuple(self._done))

    def start(self, step: str) -> object:
        return None

    def finish(self, step: str) -> object:
        self._done.append(step)
        self._put()
        return None

    def _put(self) -> None:
        self._disk.write("progress.json", json.dumps(self._done).encode())


class Eager(Ours):
    """Notes a step as done when it begins."""

    def start(self, step: str) -> object:
        return self._file.finish(step)

    def finish(self, step: str) -> object:
        return None


def test_our_handoff_file_passes_the_checker() -> None:
    assert check_handoff(Ours) > 100


@pytest.mark.parametrize(
    ("make", "findings"),
    [
        (
            Plain,
            {
                HandoffFinding.UNREADABLE, HandoffFinding.LOST, HandoffFinding.REDONE, HandoffFinding.NOT_FENCED,
                HandoffFinding.OVERWRITTEN,
            },
        ),
        (Eager, {HandoffFinding.INVENTED, HandoffFinding.NOT_FENCED}),
    ],
)  # fmt: skip
def test_the_checker_finds_what_is_wrong_with_others(
    make: MakeHandoff, findings: set[HandoffFinding]
) -> None:
    assert set(handoff_findings(make)) == findings
    with pytest.raises(ContractViolation, match=r"^(killed before operation \d+, state \d+|two \w+): "):
        check_handoff(make)
