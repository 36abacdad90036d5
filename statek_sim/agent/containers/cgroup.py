"""A control group (version 2) of its own for one program: memory, processes and processor time, of all that it starts.

Where this process may make none, limits of single processes are all there is.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from statek_sim.agent.containers.program import Limits

ROOT: Final = Path("/sys/fs/cgroup")
_PERIOD: Final = 100_000
"""Microseconds over which processor time is shared out."""
_NUMBERS: Final = itertools.count(1)


@cache
def place() -> Path | None:
    """Return the folder in which this process can make groups, None for nowhere; tried once."""
    inside = ROOT / _own().lstrip("/")
    for folder in (inside, *inside.parents):
        try:
            enabled = (folder / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if {"memory", "pids", "cpu"} <= set(enabled) and _can_make(folder):
            return folder
        if folder == ROOT:
            break
    return None


def _own() -> str:
    """Return the group of version 2 that this process is in."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return "/"
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")


def _can_make(folder: Path) -> bool:
    """Return whether a group can be made here, by making one, and a process put into it."""
    trial = folder / f"statek-trial-{os.getpid()}"
    try:
        trial.mkdir()
    except OSError:
        return False
    command = ("/bin/sh", "-c", 'echo $$ > "$1"', "sh", str(trial / "cgroup.procs"))
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    finally:
        trial.rmdir()


class Group:
    """One group, there until `remove`. `file` is what a process writes its number into to join."""

    def __init__(self, where: Path, limits: Limits) -> None:
        self._folder = where / f"statek-{os.getpid()}-{next(_NUMBERS)}"
        self._folder.mkdir()
        try:
            (self._folder / "pids.max").write_text(str(limits.processes))
            (self._folder / "memory.max").write_text(str(limits.memory))
            quota = max(1000, int(limits.cpu * _PERIOD))
            (self._folder / "cpu.max").write_text(f"{quota} {_PERIOD}")
            if (swap := self._folder / "memory.swap.max").exists():
                swap.write_text("0")
        except BaseException:
            self.remove()
            raise

    @property
    def file(self) -> str:
        """What a process joins by."""
        return str(self._folder / "cgroup.procs")

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in the group because it had no memory left."""
        lines = (self._folder / "memory.events").read_text().splitlines()
        return int(dict(line.split()[:2] for line in lines).get("oom_kill", "0")) > 0

    def kill(self) -> None:
        """Kill everything in the group, what is started meanwhile too (Linux 5.14)."""
        (self._folder / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Kill what is left, and take the group away."""
        while self._folder.exists():
            try:
                self._folder.rmdir()
            except OSError:
                self.kill()
