"""The disk behind a file store: a local folder, or memory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from statek_sim.errors import Held


class Disk(Protocol):
    """The disk operations that file stores need. Paths are strings with `/`, relative to the store's root."""

    def read(self, path: str) -> bytes | None:
        """Return a file's contents, or None if it does not exist."""

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; empty if it does not exist."""

    def make_folder(self, folder: str) -> None:
        """Create a folder and its parents if needed."""

    def write(self, path: str, content: bytes) -> None:
        """Create or truncate a file, and write to it."""

    def append(self, path: str, content: bytes) -> None:
        """Append to a file, creating it if needed."""

    def sync(self, path: str) -> None:
        """Sync a file, so that its contents survive a power loss."""

    def sync_folder(self, folder: str) -> None:
        """Sync a folder, so that the names in it survive a power loss."""

    def rename(self, path: str, to: str) -> None:
        """Rename a file, replacing an existing one."""

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""

    def locked(self, path: str) -> AbstractContextManager[None]:
        """Hold a lock during the block; the lock is also released when the process ends."""


def write_durably(disk: Disk, path: str, content: bytes) -> None:
    """Replace a file atomically and durably: after a crash, it has either the old or the new contents."""
    folder, _, name = path.rpartition("/")
    making = f"{folder}/.{name}.new" if folder else f".{name}.new"
    disk.write(making, content)
    disk.sync(making)
    disk.rename(making, path)
    disk.sync_folder(folder)


class RealDisk:
    """A local folder, created along with its first file.

    `locked` waits at most `wait` seconds for another process, then raises `Held`.
    """

    def __init__(self, root: Path, *, wait: float = 30.0) -> None:
        self.root = root
        self._wait = wait

    def read(self, path: str) -> bytes | None:
        """Return a file's contents, or None if it does not exist."""
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder; empty if it does not exist."""
        try:
            return sorted(os.listdir(self.root / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def make_folder(self, folder: str) -> None:
        """Create a folder and its parents; their names survive a power loss."""
        place = self.root / folder
        missing = [new_folder for new_folder in (place, *place.parents) if not new_folder.is_dir()]
        place.mkdir(parents=True, exist_ok=True)
        for new_folder in missing:
            _sync(new_folder.parent)

    def write(self, path: str, content: bytes) -> None:
        """Create or truncate a file, and write to it."""
        (self.root / path).write_bytes(content)

    def append(self, path: str, content: bytes) -> None:
        """Append to a file, creating it if needed."""
        with (self.root / path).open("ab") as file:
            file.write(content)

    def sync(self, path: str) -> None:
        """Sync a file, so that its contents survive a power loss."""
        _sync(self.root / path)

    def sync_folder(self, folder: str) -> None:
        """Sync a folder, so that the names in it survive a power loss."""
        _sync(self.root / folder)

    def rename(self, path: str, to: str) -> None:
        """Rename a file, replacing an existing one."""
        (self.root / path).replace(self.root / to)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        (self.root / path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Hold a lock during the block; the lock is also released when the process ends."""
        lock = FileLock(self.root / path, timeout=self._wait)
        try:
            lock.acquire()
        except Timeout:
            raise Held(
                f"{self.root / path}: another process has held this lock for {self._wait:g} s; it is stuck "
                "in a write: resume it or end it"
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


class MemoryDisk:
    """A disk in memory, for examples and tests. `files` maps each path to the file's contents."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.files = dict(files or {})

    def read(self, path: str) -> bytes | None:
        """Return a file's contents, or None if it does not exist."""
        return self.files.get(path)

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the files and folders in a folder."""
        inside = f"{folder}/" if folder else ""
        return sorted(
            {path.removeprefix(inside).partition("/")[0] for path in self.files if path.startswith(inside)}
        )

    def make_folder(self, folder: str) -> None:
        """Do nothing: a folder exists as soon as it has a file."""

    def write(self, path: str, content: bytes) -> None:
        """Create or truncate a file, and write to it."""
        self.files[path] = content

    def append(self, path: str, content: bytes) -> None:
        """Append to a file, creating it if needed."""
        self.files[path] = self.files.get(path, b"") + content

    def sync(self, path: str) -> None:
        """Do nothing: memory does not survive a power loss."""

    def sync_folder(self, folder: str) -> None:
        """Do nothing: memory does not survive a power loss."""

    def rename(self, path: str, to: str) -> None:
        """Rename a file, replacing an existing one."""
        self.files[to] = self.files.pop(path)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        self.files.pop(path, None)

    @contextlib.contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Do nothing: the memory belongs to a single process."""
        yield
