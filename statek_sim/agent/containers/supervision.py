"""Supervises a child process: bounded output, a time limit, and no process left behind."""

from __future__ import annotations

import itertools
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from threading import Event
from typing import Final

from statek_sim.agent.containers.program import Ended, Limits

_TICK: Final = 0.05
"""The interval between checks of the time, the folders, memory and the caller, in seconds."""
_PIECE: Final = 65536
_LEFT: Final = 32
"""The maximum number of chunks to read at the end: more than a pipe holds, but finite if a process still writes."""


class Output:
    """Keeps the start of a stream and drops the rest, so that the writer never blocks."""

    def __init__(self, limit: int) -> None:
        self._kept = bytearray()
        self._limit = limit
        self.truncated = False

    def add(self, piece: bytes) -> None:
        """Add a chunk."""
        room = self._limit - len(self._kept)
        self._kept += piece[:room]
        self.truncated |= len(piece) > room

    @property
    def text(self) -> str:
        """The stored output as text; invalid UTF-8 becomes replacement characters."""
        return self._kept.decode(errors="replace")


def watch(
    child: subprocess.Popen[bytes],
    limits: Limits,
    *,
    stdin: bytes,
    kill: Callable[[], None],
    stop: Event | None,
    folders: Sequence[Path] = (),
    memory: Callable[[], int] | None = None,
) -> Ended:
    """Write a child process's input and read its output until it ends, or kill it at its limits; return the outcome.

    `kill` must end all processes started by the child. `memory` returns how many bytes they use, if nothing else
    enforces the memory limit.
    """
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None  # noqa: PT018
    kept = {child.stdout.fileno(): Output(limits.output), child.stderr.fileno(): Output(limits.output)}
    bounds = Bounds(limits, stop, folders, memory)
    ended = os.pidfd_open(child.pid)
    try:
        with selectors.DefaultSelector() as ready:
            ready.register(ended, selectors.EVENT_READ)
            for number in kept:
                os.set_blocking(number, False)
                ready.register(number, selectors.EVENT_READ)
            left = memoryview(stdin)
            os.set_blocking(child.stdin.fileno(), False)
            ready.register(child.stdin.fileno(), selectors.EVENT_WRITE)
            over = False
            while not over:
                for key, _ in ready.select(_TICK):
                    if key.fd == ended:
                        over = True
                    elif key.fd in kept:
                        if _read(key.fd, kept[key.fd]) == b"":
                            ready.unregister(key.fd)
                    else:
                        left = _written(key.fd, left)
                        if not left:
                            ready.unregister(key.fd)
                            child.stdin.close()
                if not over and bounds.give_up():
                    kill()
                    over = True
    finally:
        # Also after an interrupt: processes it started must not outlive it, and may hold the pipes open.
        kill()
        child.wait()
        os.close(ended)
        for number, output in kept.items():
            for _ in range(_LEFT):
                if not _read(number, output):
                    break
        for pipe in (child.stdin, child.stdout, child.stderr):
            _close(pipe)
    out, errors = kept.values()
    return bounds.ended(child.returncode, out, errors)


class Bounds:
    """Decides when to kill a program: when it exceeds a time, folder or memory limit, or when the caller gives up."""

    def __init__(
        self,
        limits: Limits,
        stop: Event | None,
        folders: Sequence[Path],
        memory: Callable[[], int] | None = None,
    ) -> None:
        self._limits = limits
        self._memory = memory
        self._stop = stop
        self._folders = folders
        self._room = sum(map(size_of, folders)) + limits.folder
        self._looks_again = 0.0
        self._reason = ""
        self.start()

    def start(self) -> None:
        """Start the program's clock now."""
        self._until = time.monotonic() + self._limits.seconds

    def give_up(self) -> bool:
        """Return whether to kill the program now."""
        if self._stop is not None and self._stop.is_set():
            self._reason = "stopped"
        elif time.monotonic() >= self._until:
            self._reason = "timed_out"
        elif self._overfull():
            self._reason = "overfull"
        elif self._memory is not None and self._memory() > self._limits.memory:
            self._reason = "oom"
        return bool(self._reason)

    def _overfull(self) -> bool:
        """Return whether the folders grew too large, spending at most a tenth of the time on measuring."""
        started = time.monotonic()
        if not self._folders or started < self._looks_again:
            return False
        size = sum(map(size_of, self._folders))
        took = time.monotonic() - started
        self._looks_again = started + max(_TICK, 10 * took)
        return size > self._room

    def ended(self, code: int, out: Output, errors: Output, *, oom: bool = False) -> Ended:
        """Return the program's outcome; a folder may have grown too large just before the program ended.

        `code` is negative for a signal, or 128 plus the signal's number.
        """
        if not self._reason and self._folders and sum(map(size_of, self._folders)) > self._room:
            self._reason = "overfull"
        by = -code if code < 0 else code - 128 if 128 < code <= 128 + signal.NSIG else None
        if self._reason:
            by = int(signal.SIGKILL)
        return Ended(
            exit=code if by is None else None,
            signal=by,
            stdout=out.text,
            stderr=errors.text,
            oom=oom or self._reason == "oom",
            timed_out=self._reason == "timed_out",
            overfull=self._reason == "overfull",
            stopped=self._reason == "stopped",
            truncated=out.truncated or errors.truncated,
        )


def memory_of(first: int) -> int:
    """Return the private memory of a process and its descendants in bytes."""
    total, left = 0, [first]
    while left:
        place = Path(f"/proc/{left.pop()}")
        try:
            for task in (place / "task").iterdir():
                left += map(int, (task / "children").read_text().split())
            for line in (place / "status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    total += int(line.split()[1]) * 1024
        except OSError:  # The process has exited.
            continue
    return total


def size_of(folder: Path) -> int:
    """Return the disk usage of a folder's files in bytes, without following links.

    An unreadable folder counts as infinitely large, because a program may have made it unreadable.
    """
    total, folders = 0, [str(folder)]
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except PermissionError:
            return sys.maxsize
        except OSError:  # The file has been removed.
            continue
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
            except OSError:
                continue
    return total


def _read(number: int, output: Output) -> bytes | None:
    """Return the available bytes: empty at the end of the stream, None if no data is available."""
    try:
        piece = os.read(number, _PIECE)
    except BlockingIOError:
        return None
    output.add(piece)
    return piece


def _written(number: int, left: memoryview) -> memoryview:
    try:
        return left[os.write(number, left[:_PIECE]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return memoryview(b"")


def _close(pipe: object) -> None:
    try:
        pipe.close()  # type: ignore[attr-defined]  # one of the child's three pipes
    except BrokenPipeError:
        pass


_CGROUPS: Final = Path("/sys/fs/cgroup")
_PERIOD: Final = 100_000
"""The CPU quota's period, in microseconds."""
_NUMBERS: Final = itertools.count(1)


@cache
def cgroup_place() -> Path | None:
    """Return the folder in which this process can create control groups, or None; the result is cached."""
    inside = _CGROUPS / _own_cgroup().lstrip("/")
    for folder in (inside, *inside.parents):
        try:
            enabled = (folder / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if {"memory", "pids", "cpu"} <= set(enabled) and _can_make(folder):
            return folder
        if folder == _CGROUPS:
            break
    return None


def _own_cgroup() -> str:
    """Return the path of this process's version 2 control group."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return "/"
    return next((line.removeprefix("0::") for line in lines if line.startswith("0::")), "/")


def _can_make(folder: Path) -> bool:
    """Return whether a control group can be created in a folder, by creating one with a process in it."""
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


class Cgroup:
    """A control group with these limits, until `remove` is called. A process joins by writing its pid to `file`."""

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
        """The path of the file to which a process writes its pid to join the group."""
        return str(self._folder / "cgroup.procs")

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process in the group for lack of memory."""
        lines = (self._folder / "memory.events").read_text().splitlines()
        return int(dict(line.split()[:2] for line in lines).get("oom_kill", "0")) > 0

    def kill(self) -> None:
        """Kill all processes in the group, including any that start in the meantime (Linux 5.14)."""
        (self._folder / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Kill the remaining processes and remove the group."""
        while self._folder.exists():
            try:
                self._folder.rmdir()
            except OSError:
                self.kill()
