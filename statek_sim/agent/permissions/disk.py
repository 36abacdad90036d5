"""The files of this machine: what is at a path, and opening one so that nothing on the way leads out of a folder."""

from __future__ import annotations

import errno
import os
import stat

from statek_sim.agent.permissions.paths import Entry


class Disk:
    """Knows what is at a path of this machine now; it may be something else a moment later (see `workspace`)."""

    def look(self, path: str) -> Entry | None:
        """Return what is at a path; what nobody may look at, or has too long a name, is nothing."""
        try:
            found = os.lstat(path)
        except OSError:
            return None
        if stat.S_ISLNK(found.st_mode):
            try:
                return Entry(kind="link", target=os.readlink(path))
            except OSError:  # It is another thing by now.
                return Entry(kind="other")
        if stat.S_ISDIR(found.st_mode):
            return Entry(kind="folder")
        if stat.S_ISREG(found.st_mode):
            return Entry(kind="file", links=found.st_nlink)
        return Entry(kind="other")


def open_beneath(folder: int, path: str, flags: int, mode: int = 0o666) -> int:
    """Return a descriptor of a path below an open folder; `OSError` for one that leads out of it, or over a link.

    Each part is opened below the one before, whatever is changed meanwhile.
    """
    flags |= os.O_CLOEXEC | os.O_NOCTTY
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        for part in parts[:-1]:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        return os.open(parts[-1] if parts else ".", flags | os.O_NOFOLLOW, mode, dir_fd=here)
    finally:
        os.close(here)
