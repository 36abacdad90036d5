"""The files of this machine: what is at a path, and opening one so that nothing on the way leads out of a folder.

It is opened with `openat2(2)`, where the kernel has it (Linux 5.6), whatever is changed meanwhile; elsewhere each part
of the path is opened by itself, and no link is followed at all.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from functools import cache
from typing import Final

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


_OPENAT2: Final = 437
"""The call's number, the same on every processor."""
_NO_MAGIC: Final = 0x02
_NO_LINKS: Final = 0x04
_BENEATH: Final = 0x08
_TRIES: Final = 16
"""How often a path is tried that is being changed while it is walked."""


class _How(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


@cache
def has_openat2() -> bool:
    """Return whether the kernel has the call."""
    if not sys.platform.startswith("linux"):
        return False
    here = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        os.close(_openat2(here, ".", os.O_PATH | os.O_CLOEXEC, 0, _BENEATH))
    except OSError:
        return False
    finally:
        os.close(here)
    return True


def open_beneath(
    folder: int, path: str, flags: int, mode: int = 0o666, *, links: bool = False, kernel: bool = True
) -> int:
    """Return a descriptor of a path below an open folder; `OSError` for one that leads out of it.

    `links` are followed as long as they stay below, where `kernel` has `openat2`; nowhere else.
    """
    flags |= os.O_CLOEXEC | os.O_NOCTTY
    if kernel and has_openat2():
        rules = _BENEATH | _NO_MAGIC | (0 if links else _NO_LINKS)
        return _openat2(folder, path, flags, mode if flags & os.O_CREAT else 0, rules)
    return _walked(folder, path, flags, mode)


def _openat2(folder: int, path: str, flags: int, mode: int, rules: int) -> int:
    how = _How(flags, mode, rules)
    name = os.fsencode(path)
    if b"\0" in name:
        raise ValueError("embedded null byte")
    for _ in range(_TRIES):
        found = _libc().syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(folder),
            ctypes.c_char_p(name),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if found >= 0:
            return int(found)
        error = ctypes.get_errno()
        if error not in (errno.EAGAIN, errno.EINTR):
            raise OSError(error, os.strerror(error), path)
    raise OSError(errno.EAGAIN, "is being changed while it is opened", path)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _walked(folder: int, path: str, flags: int, mode: int) -> int:
    """Open each part of a path below the one before, none of which may be a link."""
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
