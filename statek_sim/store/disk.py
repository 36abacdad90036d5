"""The disk as a store of files uses it: few operations, each of which a crash may come before or after."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

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
