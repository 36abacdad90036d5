"""Why a file that a person named cannot be read, in the words of every command."""

from __future__ import annotations

import errno
import os
from pathlib import Path

Unreadable = (OSError, UnicodeError, RuntimeError)
"""What reading a file raises: Python 3.11 and 3.12 report links that lead to themselves as RuntimeError."""


def why_unreadable(error: BaseException, path: Path) -> str:
    """Return the reason, to follow `path: `; a link is told apart from a file that is not there."""
    link = link_problem(error, path)
    if link:
        return link
    match error:
        case FileNotFoundError():
            return "no such file or folder"
        case UnicodeDecodeError(object=content, start=start):
            return f"cannot be read: byte 0x{content[start]:02x} at {start} is not UTF-8"
        case OSError(strerror=str(reason)):
            return f"cannot be read: {reason}"
    return f"cannot be read: {error}"


def link_problem(error: BaseException, path: Path) -> str:
    """Return what is wrong with a symbolic link, or nothing where `error` has another cause."""
    if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno == errno.ELOOP):
        return "a symbolic link that leads to itself"
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"a symbolic link to {os.readlink(path)!r}, which is not there"
    return ""
