"""A disk in memory that can crash, and then loses what was not synced.

disk = SimulatedDisk(dies_at=7)
...                              # raises Killed before operation 8
for after in disk.after_crash(): # every possible state after a power loss
    FileStore(after, ...)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal


class Killed(BaseException):
    """The simulated process has died; only the simulation catches this."""


_Change = tuple[Literal["link", "unlink"], str, int]

NOTHING: Final = -1


@dataclass(slots=True)
class _File:
    """One file's contents: current, and after a power loss."""

    now: bytes = b""
    durable: bytes = b""

    def leavings(self) -> list[bytes]:
        """Return the possible contents after a power loss.

        The synced contents, all, half of the new bytes, or zeros.
        """
        if self.now == self.durable:
            return [self.durable]
        kept = self.durable if self.now.startswith(self.durable) else b""
        new = self.now[len(kept) :]
        torn = [kept + new[: len(new) // 2], kept + bytes(len(new))]
        return list(dict.fromkeys([self.durable, self.now, *torn]))


@dataclass(slots=True)
class _Names:
    """The names in one folder: current, synced, and the ordered changes between the two."""

    now: dict[str, int] = field(default_factory=dict)
    durable: dict[str, int] = field(default_factory=dict)
    changes: list[list[_Change]] = field(default_factory=list)

    def after(self, count: int) -> dict[str, int]:
        """Return the names after only the first changes; a file system's journal keeps their order."""
        names = dict(self.durable)
        for step in self.changes[:count]:
            for kind, name, file in step:
                if kind == "link":
                    names[name] = file
                else:
                    names.pop(name, None)
        return names


class SimulatedDisk:
    """An in-memory disk that loses unsynced data in a crash. It dies before operation `dies_at`, counted from 0.

    Not modelled: files that share a block, and a disk that lies about syncing.
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

    # -- operations of a store -------------------------------------------------------------------------------

    def read(self, path: str) -> bytes | None:
        """Return a file's contents, or None if it does not exist."""
        folder, name = _split(path)
        at = self._folders.get(folder, _Names()).now.get(name)
        return None if at is None else self._files[at].now

    def names(self, folder: str) -> list[str]:
        """Return the sorted names in a folder, including subfolders."""
        begin = f"{folder}/" if folder else ""
        below = {
            path[len(begin) :].partition("/")[0] for path in self._folders if path.startswith(begin) and path
        }
        return sorted({*self._folders.get(folder, _Names()).now, *below} - {""})

    def make_folder(self, folder: str) -> None:
        """Create a folder; its name is durable at once."""
        self._operation()
        self._folders.setdefault(folder, _Names())

    def write(self, path: str, content: bytes) -> None:
        """Create or truncate a file, and write to it, in two steps, so that a crash may leave it empty."""
        file = self._opened(path)
        self._operation()
        file.now = b""
        self._operation()
        file.now = content

    def append(self, path: str, content: bytes) -> None:
        """Append to a file, creating it if needed."""
        file = self._opened(path)
        self._operation()
        file.now += content

    def _opened(self, path: str) -> _File:
        folder, name = _split(path)
        # The disk's root exists without being created.
        names = self._folders[folder] if folder else self._folders.setdefault("", _Names())
        if name not in names.now:
            self._operation()
            self._files.append(_File())
            names.now[name] = len(self._files) - 1
            names.changes.append([("link", name, names.now[name])])
        return self._files[names.now[name]]

    def sync(self, path: str) -> None:
        """Sync a file, so that its contents survive a power loss."""
        self._operation()
        folder, name = _split(path)
        file = self._files[self._folders[folder].now[name]]
        file.durable = file.now

    def sync_folder(self, folder: str) -> None:
        """Sync a folder, so that the names in it survive a power loss."""
        self._operation()
        names = self._folders[folder]
        names.durable, names.changes = dict(names.now), []

    def rename(self, path: str, to: str) -> None:
        """Rename a file in its folder, replacing an existing one."""
        self._operation()
        folder, name = _split(path)
        names, target = self._folders[folder], _split(to)[1]
        file = names.now.pop(name)
        names.now[target] = file
        names.changes.append([("unlink", name, NOTHING), ("link", target, file)])

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        self._operation()
        folder, name = _split(path)
        names = self._folders[folder]
        if names.now.pop(name, None) is not None:
            names.changes.append([("unlink", name, NOTHING)])

    @contextlib.contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Do nothing, because there is only one process."""
        yield

    # -- the state after a crash -----------------------------------------------------------------------------

    def after_crash(self) -> Iterator[SimulatedDisk]:
        """Yield the states after a power loss: all or none of the unsynced changes, with one exception each.

        The exception is one folder after any number of its changes, or one file with any of its possible contents.
        """
        for left in self.files_after_crash():
            yield self._with(left)

    def files_after_crash(self) -> Iterator[dict[str, bytes]]:
        """Yield the files of these states by path, sorted; each state once."""
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
        """All files by path, sorted."""
        return {
            f"{folder}/{name}": self._files[at].now
            for folder, names in sorted(self._folders.items())
            for name, at in sorted(names.now.items())
        }

    def again(self, *, dies_at: int | None = None) -> SimulatedDisk:
        """Return the same disk for a new process: if only the process died, all changes are kept."""
        return self._with(self.files, dies_at=dies_at)

    def _with(self, files: Mapping[str, bytes], *, dies_at: int | None = None) -> SimulatedDisk:
        """Return a disk with these files, and this one's folders."""
        made = SimulatedDisk(files, dies_at=dies_at)
        for folder in self._folders:
            made._folders.setdefault(folder, _Names())
        return made


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name
