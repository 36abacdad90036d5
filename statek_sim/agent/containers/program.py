"""A program in a container: its mounts, limits and outcome, and checks of the folders to which it may write."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Final, Protocol

from statek_sim.agent.option_names import PROTECTED
from statek_sim.errors import BadInput, ContainerRefused

MIB: Final = 1024 * 1024
NOBODY: Final = 65534
"""The user and group id of `nobody`, who owns no files; programs run as `nobody` if the caller is root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder on this machine that the program sees at the same path.

    `protected` lists names that stay read-only even in a `writable` folder, at any depth and in any letter case. A
    protected name that does not exist cannot be created, or is removed when the program ends. A writable folder is
    rejected if a file in it has a hard link outside, unless `hard_links` is set.
    """

    path: Path
    writable: bool = False
    protected: Sequence[str] = PROTECTED
    hard_links: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program: its command line, input, environment and mounts.

    `folder` is its working directory (None: the first mount, or /tmp). The program sees only the variables in
    `environment`.
    """

    argv: Sequence[str]
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    folder: Path | None = None

    def __post_init__(self) -> None:
        if isinstance(self.argv, str) or not self.argv:
            raise BadInput(
                f"argv is {self.argv!r}; expected a list of strings: the program and its arguments"
            )
        texts = (*self.argv, *self.environment, *self.environment.values())
        wrong = next((text for text in texts if "\0" in text), None)
        if wrong is not None:
            raise BadInput(f"{wrong!r} in argv or environment; expected a string without NUL")
        for mount in self.mounts:
            if not mount.path.is_absolute():
                raise BadInput(f"mount {str(mount.path)!r}: expected an absolute path")

    @property
    def starts_in(self) -> str:
        """The program's working directory."""
        if self.folder is not None:
            return str(self.folder)
        return str(self.mounts[0].path) if self.mounts else "/tmp"  # the container's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A program's limits; the defaults are those in the agent document §8, where it has any.

    After `seconds`, all processes are killed. In bytes: `memory`, `tmp` (each of /tmp and /dev/shm), `output` (kept per
    stream), `file` (one file) and `folder` (growth of writable folders). `cpu` is in cores.
    """

    seconds: float = 30.0
    memory: int = 512 * MIB
    processes: int = 64
    cpu: float = 0.5
    tmp: int = 100 * MIB
    output: int = MIB
    file: int = 64 * MIB
    folder: int = 256 * MIB
    open_files: int = 256

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise BadInput(f"limit {name} is {value!r}; expected a number above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The outcome of a program.

    `exit` is its exit code, or None if it was killed by `signal`. An exit code of 128 + N cannot be distinguished from
    signal N, and counts as killed. `oom`: the kernel killed a process for lack of memory. `timed_out`, `overfull` (a
    folder grew too large) and `stopped` (the caller gave up) are reasons why the container killed the program.
    `truncated`: there was more output than is kept.
    """

    exit: int | None
    stdout: str = ""
    stderr: str = ""
    signal: int | None = None
    oom: bool = False
    timed_out: bool = False
    overfull: bool = False
    stopped: bool = False
    truncated: bool = False

    @property
    def killed(self) -> bool:
        """Whether the program was killed."""
        return self.exit is None

    @property
    def why(self) -> str:
        """How the program ended, as text."""
        if self.timed_out:
            return "killed: it took too long"
        if self.overfull:
            return "killed: it wrote too much to a folder"
        if self.stopped:
            return "killed: the caller stopped waiting"
        if self.oom:
            return "killed: out of memory"
        return f"killed by signal {self.signal}" if self.killed else f"exit code {self.exit}"


class Container(Protocol):
    """Runs each program in its own container, which is removed afterwards."""

    @property
    def name(self) -> str:
        """The container's name, for messages."""

    def run(self, program: Program, limits: Limits = ..., *, stop: Event | None = None) -> Ended:
        """Run a program until it ends; may block slightly longer than `limits.seconds`.

        If another thread sets `stop`, the program is killed immediately. Raises `ContainerFailed` if no container can
        be created; a program that fails does not raise an error.
        """


def check_writable(mount: Mount) -> None:
    """Raise `ContainerRefused` for a folder that is not writable, or in which a write may change files elsewhere."""
    if not mount.path.is_dir():
        raise ContainerRefused(f"{mount.path}: not a folder; a writable mount must be one")
    if os.geteuid() == 0 and not _made_by_nobody(mount.path):
        raise ContainerRefused(
            f"{mount.path}: the program runs as uid {NOBODY}, which cannot write there; run `chown {NOBODY}` on it"
        )
    link = next((place for place in protected_places(mount) if place.is_symlink()), None)
    if link is not None:
        raise ContainerRefused(f"{link}: a link cannot be protected; expected a folder")
    try:
        found = linked_elsewhere(mount.path)
    except OSError as error:
        # A folder that we cannot read could grow unnoticed.
        raise ContainerRefused(f"{error.filename}: cannot be read: {error.strerror}") from error
    if not mount.hard_links and found is not None:
        raise ContainerRefused(
            f"{found}: is hard-linked from outside the writable folder, so a write also changes that "
            "file; remove it, or allow hard_links"
        )


def protected_places(mount: Mount) -> list[Path]:
    """Return a folder's protected paths, at any depth and in any letter case, such as `vendor/.GIT`."""
    names = {name.casefold() for name in mount.protected}
    found, folders = [], [mount.path]
    while folders:
        for entry in _entries(folders.pop()):
            if entry.name.casefold() in names:
                found.append(Path(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                folders.append(Path(entry.path))
    return sorted(found)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:  # Another process removed it.
        return []
    except OSError as error:
        raise ContainerRefused(f"{error.filename}: cannot be read: {error.strerror}") from error


def _made_by_nobody(folder: Path) -> bool:
    """Return whether the user `nobody` (uid 65534) may create files in a folder."""
    found = folder.stat()
    if found.st_uid == NOBODY:
        return bool(found.st_mode & stat.S_IWUSR)
    if found.st_gid == NOBODY:
        return bool(found.st_mode & stat.S_IWGRP)
    return bool(found.st_mode & stat.S_IWOTH)


def linked_elsewhere(folder: Path) -> Path | None:
    """Return a file in the folder that is also hard-linked from outside the folder, or None."""
    names: Counter[tuple[int, int]] = Counter()
    files: dict[tuple[int, int], tuple[int, str]] = {}
    for entry in _files(folder):
        found = entry.stat(follow_symlinks=False)
        if found.st_nlink > 1:
            key = found.st_dev, found.st_ino
            names[key] += 1
            files[key] = found.st_nlink, entry.path
    outside = sorted(path for key, (links, path) in files.items() if links > names[key])
    return Path(outside[0]) if outside else None


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    folders = [str(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry


_HELD: Final[Counter[Path]] = Counter()
_LOCK: Final = threading.Lock()
"""Guards `_HELD`, which counts the programs that need each placeholder; the last program removes it."""


@contextmanager
def kept_from_being_made(mount: Mount) -> Iterator[None]:
    """Create empty folders at a folder's missing top-level protected paths, and remove them afterwards.

    Raises `ContainerRefused` if the program created a protected path deeper in the folder. That path is removed,
    because programs outside the container might run its contents.
    """
    held = list(_hold(mount))
    before = set(protected_places(mount))
    try:
        yield
    finally:
        made = [place for place in protected_places(mount) if place not in before]
        for place in made:
            _remove(place)
        with _LOCK:
            for place in held:
                _HELD[place] -= 1
                if not _HELD[place]:
                    del _HELD[place]
                    _let_go(place)
    if made:
        raise ContainerRefused(
            f"{made[0]}: created by the program, and removed because its contents would run outside the container"
        )


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()


def _hold(mount: Mount) -> Iterator[Path]:
    with _LOCK:
        for name in mount.protected:
            place = mount.path / name
            if not os.path.lexists(place):
                place.mkdir()
            elif place not in _HELD:
                continue
            _HELD[place] += 1
            yield place


def _let_go(place: Path) -> None:
    try:
        place.rmdir()
    except OSError:  # Another process put a file into it, so it must stay.
        pass
