"""A control group of its own for one program: memory, processes and processor time, of all that it starts.

Version 2 or 1, whichever this process may make groups in. Where it may in neither there is none, and limits of single
processes are all there is.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from statek_sim.agent.containers.program import Limits

ROOT: Final = Path("/sys/fs/cgroup")
_PERIOD: Final = 100_000
"""Microseconds over which processor time is shared out."""
_NUMBERS: Final = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Places:
    """Where groups can be made: one folder (version 2), or one for each controller (version 1)."""

    version: int
    memory: Path
    pids: Path
    cpu: Path | None


@cache
def places() -> Places | None:
    """Return where this process can make groups, None for nowhere; tried once."""
    own = dict(_own(Path("/proc/self/cgroup")))
    return _version_2(own.get("", "/")) or _version_1(own)


def _own(file: Path) -> Iterator[tuple[str, str]]:
    """Yield each controller with the group this process is in; version 2 is the controller without a name."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _version_2(own: str) -> Places | None:
    inside = ROOT / own.lstrip("/")
    for folder in (inside, *inside.parents):
        try:
            enabled = (folder / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if {"memory", "pids"} <= set(enabled) and _can_make(folder):
            return Places(2, folder, folder, folder if "cpu" in enabled else None)
        if folder == ROOT:
            break
    return None


def _version_1(own: dict[str, str]) -> Places | None:
    found: dict[str, Path] = {}
    for name in ("memory", "pids", "cpu"):
        for folder in (ROOT / name / own.get(name, "/").lstrip("/"), ROOT / name):
            if (folder / "tasks").exists() and _can_make(folder):
                found[name] = folder
                break
    if "memory" not in found or "pids" not in found:
        return None
    return Places(1, found["memory"], found["pids"], found.get("cpu"))


def _can_make(folder: Path) -> bool:
    """Return whether a group can be made here, by making one, and a process put into it."""
    trial = folder / f"statek-trial-{os.getpid()}"
    try:
        trial.mkdir()
    except OSError:
        return False
    try:
        return _moves(trial)
    finally:
        trial.rmdir()


def _moves(trial: Path) -> bool:
    command = ("/bin/sh", "-c", 'echo $$ > "$1"', "sh", str(trial / "cgroup.procs"))
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Group:
    """One group, there until `remove`. `files` are what a process writes its number into to join."""

    def __init__(self, where: Places, limits: Limits) -> None:
        self._version = where.version
        name = f"statek-{os.getpid()}-{next(_NUMBERS)}"
        self._memory, self._pids = where.memory / name, where.pids / name
        self._cpu = None if where.cpu is None else where.cpu / name
        folders = (self._memory, self._pids, self._cpu)
        self._folders: Sequence[Path] = list(dict.fromkeys(place for place in folders if place is not None))
        for folder in self._folders:
            folder.mkdir()
        try:
            self._limit(limits)
        except BaseException:
            self.remove()
            raise

    @property
    def files(self) -> list[str]:
        """What a process joins by."""
        return [str(folder / "cgroup.procs") for folder in self._folders]

    def _limit(self, limits: Limits) -> None:
        (self._pids / "pids.max").write_text(str(limits.processes))
        quota = str(max(1000, int(limits.cpu * _PERIOD)))
        if self._version == 2:
            (self._memory / "memory.max").write_text(str(limits.memory))
            _if_there(self._memory / "memory.swap.max", "0")
            if self._cpu is not None:
                (self._cpu / "cpu.max").write_text(f"{quota} {_PERIOD}")
            return
        (self._memory / "memory.limit_in_bytes").write_text(str(limits.memory))
        _if_there(self._memory / "memory.memsw.limit_in_bytes", str(limits.memory))
        if self._cpu is not None:
            (self._cpu / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (self._cpu / "cpu.cfs_quota_us").write_text(quota)

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed something in the group because it had no memory left."""
        file = self._memory / ("memory.events" if self._version == 2 else "memory.oom_control")
        counts = dict(line.split()[:2] for line in file.read_text().splitlines())
        return int(counts.get("oom_kill", "0")) > 0

    def kill(self) -> None:
        """Kill everything in the group, what is started meanwhile too."""
        if self._version == 2 and _if_there(self._memory / "cgroup.kill", "1"):
            return
        while numbers := (self._pids / "cgroup.procs").read_text().split():
            for number in numbers:
                try:
                    os.kill(int(number), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def remove(self) -> None:
        """Kill what is left, and take the group away."""
        for folder in self._folders:
            while folder.exists():
                try:
                    folder.rmdir()
                except OSError:
                    self.kill()


def _if_there(file: Path, text: str) -> bool:
    """Write to a file of the kernel's that not every kernel has; return whether it is there."""
    try:
        file.write_text(text)
    except FileNotFoundError:
        return False
    return True
