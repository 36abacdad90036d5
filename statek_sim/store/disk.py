"""The disk as a store of files uses it: few operations, each of which a crash may come before or after.

`SimulatedDisk` is one in memory that dies, and forgets what was not synced:

disk = SimulatedDisk(dies_at=7)
...                              # raises Killed before operation 8
for after in disk.after_crash(): # every state in which a loss of power may leave it
    FileStore(after, ...)
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol

from filelock import FileLock, Timeout

from statek_sim.errors import Held


class Disk(Protocol):
    """What stores of files do to a disk. A path is a text with `/`, below the store's root."""

    def read(self, path: str) -> bytes | None:
        """Return what a file has, None when it is not there."""

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none when it is not there."""

    def make_folder(self, folder: str) -> None:
        """Make a folder and those above it, where they are not there."""

    def write(self, path: str, content: bytes) -> None:
        """Make a file, or empty it, and write to it."""

    def append(self, path: str, content: bytes) -> None:
        """Write at the end of a file, which is made when it is not there."""

    def sync(self, path: str) -> None:
        """Wait until what a file has survives a loss of power."""

    def sync_folder(self, folder: str) -> None:
        """Wait until the names in a folder do."""

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, in the place of what had it."""

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def locked(self, path: str) -> AbstractContextManager[None]:
        """Hold a lock that ends with the process."""


def write_durably(disk: Disk, path: str, content: bytes) -> None:
    """Put a file in its place at once: after a crash it is what it was, or this; it survives what comes later."""
    folder, _, name = path.rpartition("/")
    making = f"{folder}/.{name}.new" if folder else f".{name}.new"
    disk.write(making, content)
    disk.sync(making)
    disk.rename(making, path)
    disk.sync_folder(folder)


class RealDisk:
    """A folder of this machine, which is made for its first file.

    `wait` are the seconds that a lock of another process is waited for, then `Held`.
    """

    def __init__(self, root: Path, *, wait: float = 30.0) -> None:
        self.root = root
        self._wait = wait

    def read(self, path: str) -> bytes | None:
        """Return what a file has, None when it is not there."""
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted; none when it is not there."""
        try:
            return sorted(os.listdir(self.root / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def make_folder(self, folder: str) -> None:
        """Make a folder and those above it; their names survive a loss of power."""
        place = self.root / folder
        missing = [new_folder for new_folder in (place, *place.parents) if not new_folder.is_dir()]
        place.mkdir(parents=True, exist_ok=True)
        for new_folder in missing:
            _sync(new_folder.parent)

    def write(self, path: str, content: bytes) -> None:
        """Make a file, or empty it, and write to it."""
        (self.root / path).write_bytes(content)

    def append(self, path: str, content: bytes) -> None:
        """Write at the end of a file, which is made when it is not there."""
        with (self.root / path).open("ab") as file:
            file.write(content)

    def sync(self, path: str) -> None:
        """Wait until what a file has survives a loss of power."""
        _sync(self.root / path)

    def sync_folder(self, folder: str) -> None:
        """Wait until the names in a folder do."""
        _sync(self.root / folder)

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, in the place of what had it."""
        (self.root / path).replace(self.root / to)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        (self.root / path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Hold a lock that ends with the process."""
        lock = FileLock(self.root / path, timeout=self._wait)
        try:
            lock.acquire()
        except Timeout:
            raise Held(
                f"{self.root / path}: another process has held this lock for {self._wait:g} s; it is frozen in the "
                "middle of a write: let it go on, or end it"
            ) from None
        try:
            yield
        finally:
            lock.release()


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


class Killed(BaseException):
    """The process is gone; nothing catches this but who plays the machine."""


_Change = tuple[Literal["link", "unlink"], str, int]

NOTHING: Final = -1


@dataclass(slots=True)
class _File:
    """One file's content as it is, and as a loss of power leaves it."""

    now: bytes = b""
    durable: bytes = b""

    def leavings(self) -> list[bytes]:
        """Return what may be left of it: what was synced, all, half of what is new, or room without content."""
        if self.now == self.durable:
            return [self.durable]
        kept = self.durable if self.now.startswith(self.durable) else b""
        new = self.now[len(kept) :]
        torn = [kept + new[: len(new) // 2], kept + bytes(len(new))]
        return list(dict.fromkeys([self.durable, self.now, *torn]))


@dataclass(slots=True)
class _Names:
    """The names of one folder: as they are, as they were synced, and the changes between the two in their order."""

    now: dict[str, int] = field(default_factory=dict)
    durable: dict[str, int] = field(default_factory=dict)
    changes: list[list[_Change]] = field(default_factory=list)

    def after(self, count: int) -> dict[str, int]:
        """Return the names after the first changes only; a file system's journal keeps their order."""
        names = dict(self.durable)
        for step in self.changes[:count]:
            for kind, name, file in step:
                if kind == "link":
                    names[name] = file
                else:
                    names.pop(name, None)
        return names


class SimulatedDisk:
    """A disk in memory that loses what was not synced. It dies before operation `dies_at`, counted from 0.

    What it does not model: files that share a block, and a disk that lies about syncing.
    """

    def __init__(self, files: Mapping[str, bytes] | None = None, *, dies_at: int | None = None) -> None:
        self.operations = 0
        self._dies_at = dies_at
        self._files: list[_File] = []
        self._folders: dict[str, _Names] = {}
        for path, content in (files or {}).items():
            folder, name = _split(path)
            self._files.append(_File(content, content))
            names = self._folders.setdefault(folder, _Names())
            names.now[name] = names.durable[name] = len(self._files) - 1

    def _operation(self) -> None:
        if self._dies_at is not None and self.operations >= self._dies_at:
            raise Killed
        self.operations += 1

    # -- what a store does -------------------------------------------------------------------------------------

    def read(self, path: str) -> bytes | None:
        """Return what a file has, None when it is not there."""
        folder, name = _split(path)
        at = self._folders.get(folder, _Names()).now.get(name)
        return None if at is None else self._files[at].now

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, sorted, with those of folders in it."""
        begin = f"{folder}/" if folder else ""
        below = {
            path[len(begin) :].partition("/")[0] for path in self._folders if path.startswith(begin) and path
        }
        return sorted({*self._folders.get(folder, _Names()).now, *below} - {""})

    def make_folder(self, folder: str) -> None:
        """Make a folder; its name is durable at once."""
        self._operation()
        self._folders.setdefault(folder, _Names())

    def write(self, path: str, content: bytes) -> None:
        """Make a file, or empty it, and write to it: two moments, so that it may be found empty."""
        file = self._opened(path)
        self._operation()
        file.now = b""
        self._operation()
        file.now = content

    def append(self, path: str, content: bytes) -> None:
        """Write at the end of a file, which is made when it is not there."""
        file = self._opened(path)
        self._operation()
        file.now += content

    def _opened(self, path: str) -> _File:
        folder, name = _split(path)
        # The disk's own folder is there without being made.
        names = self._folders[folder] if folder else self._folders.setdefault("", _Names())
        if name not in names.now:
            self._operation()
            self._files.append(_File())
            names.now[name] = len(self._files) - 1
            names.changes.append([("link", name, names.now[name])])
        return self._files[names.now[name]]

    def sync(self, path: str) -> None:
        """Wait until what a file has survives a loss of power."""
        self._operation()
        folder, name = _split(path)
        file = self._files[self._folders[folder].now[name]]
        file.durable = file.now

    def sync_folder(self, folder: str) -> None:
        """Wait until the names in a folder do."""
        self._operation()
        names = self._folders[folder]
        names.durable, names.changes = dict(names.now), []

    def rename(self, path: str, to: str) -> None:
        """Give a file another name in its folder, in the place of what had it."""
        self._operation()
        folder, name = _split(path)
        names, target = self._folders[folder], _split(to)[1]
        file = names.now.pop(name)
        names.now[target] = file
        names.changes.append([("unlink", name, NOTHING), ("link", target, file)])

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        self._operation()
        folder, name = _split(path)
        names = self._folders[folder]
        if names.now.pop(name, None) is not None:
            names.changes.append([("unlink", name, NOTHING)])

    @contextlib.contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Do nothing: there is one process."""
        yield

    # -- what is left of it ------------------------------------------------------------------------------------

    def after_crash(self) -> Iterator[SimulatedDisk]:
        """Yield the states after a loss of power: all or nothing of what was not synced, with one thing otherwise.

        The names of one folder after any number of their changes, or one file with any of its leavings.
        """
        for left in self.files_after_crash():
            yield self._with(left)

    def files_after_crash(self) -> Iterator[dict[str, bytes]]:
        """Yield the files of these states by their paths, sorted; each state once."""
        folders = {folder: len(names.changes) for folder, names in self._folders.items() if names.changes}
        files = {at: left for at, file in enumerate(self._files) if len(left := file.leavings()) > 1}
        seen: set[tuple[tuple[str, bytes], ...]] = set()
        for all_ in (True, False):
            kept = {folder: count if all_ else 0 for folder, count in folders.items()}
            content = {at: self._files[at].now if all_ else self._files[at].durable for at in files}
            choices = [(kept, content)]
            choices += [
                ({**kept, changed: n}, content)
                for changed, count in folders.items()
                for n in range(count + 1)
            ]
            choices += [(kept, {**content, at: left}) for at, every in files.items() for left in every]
            for names, contents in choices:
                after = self._left(names, contents)
                state = tuple(after.items())
                if state not in seen:
                    seen.add(state)
                    yield after

    def _left(self, changes: Mapping[str, int], contents: Mapping[int, bytes]) -> dict[str, bytes]:
        left: dict[str, bytes] = {}
        for folder, names in sorted(self._folders.items()):
            there = names.after(changes[folder]) if folder in changes else names.now
            for name, at in sorted(there.items()):
                left[f"{folder}/{name}"] = contents[at] if at in contents else self._files[at].now
        return left

    @property
    def files(self) -> dict[str, bytes]:
        """Every file by its path, sorted."""
        return {
            f"{folder}/{name}": self._files[at].now
            for folder, names in sorted(self._folders.items())
            for name, at in sorted(names.now.items())
        }

    def again(self, *, dies_at: int | None = None) -> SimulatedDisk:
        """Return the same disk under a new process: a machine writes everything whose process only died."""
        return self._with(self.files, dies_at=dies_at)

    def _with(self, files: Mapping[str, bytes], *, dies_at: int | None = None) -> SimulatedDisk:
        """Return a disk that has these files, and the folders that this one has."""
        made = SimulatedDisk(files, dies_at=dies_at)
        for folder in self._folders:
            made._folders.setdefault(folder, _Names())
        return made


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name
