"""Files that a person named: how they are opened, and why one cannot be read, in the words of every command."""

from __future__ import annotations

import errno
import json
import os
import re
import select
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO, Final

PATIENCE: Final = 5.0
"""Seconds for which a pipe is waited for that nobody has opened to write into it."""

Unreadable = (OSError, UnicodeError, RuntimeError)
"""What reading a file raises: Python 3.11 and 3.12 report links that lead to themselves as RuntimeError."""


def opened(path: Path) -> BinaryIO:
    """Return a file, or a pipe, that comes to an end; `OSError` for a folder, a device, a pipe nobody writes into.

    `/dev/zero` would fill the memory before anybody looked at a byte of it.
    """
    # Opening a file that another program has a lease on waits for it, or fails where nothing is to wait.
    waits = stat.S_ISREG(os.stat(path).st_mode)
    without_waiting = 0 if waits else getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | without_waiting)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if stat.S_ISFIFO(mode):
            _await_writer(descriptor, path)
        elif stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not ends(descriptor)):
            raise OSError(errno.EINVAL, "a device, which has no end", str(path))
        if os.name == "posix":
            os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def content_of(path: Path) -> bytes:
    """Return the bytes of what is `opened`."""
    with opened(path) as file:
        return file.read()


def text_of(path: Path) -> str:
    """Return the text of what is `opened`, with its lines as Python ends them; `UnicodeDecodeError` if it is none."""
    return content_of(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def toml_in(text: str) -> dict[str, Any]:
    """Return what a text says in TOML; `tomllib.TOMLDecodeError` also for what Python does not read."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep (at end of document)") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        # Python 3.11 and later read no integers of more than 4,300 digits.
        raise tomllib.TOMLDecodeError("a number has too many digits (at end of document)") from None


_TOML_PLACE: Final = re.compile(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", re.DOTALL)


def why_no_toml(error: tomllib.TOMLDecodeError, text: str) -> str:
    """Return the line and the reason, `3: not TOML: ...`, to follow `path:`; without a line it is the last one's."""
    found = _TOML_PLACE.fullmatch(str(error))
    reason = found[1] if found else str(error)
    line = int(found[2]) if found and found[2] else text.count("\n") + 1
    return f"{line}: not TOML: {reason[:1].lower()}{reason[1:]}"


def ends(device: int) -> bool:
    """Whether a character device is one that has an end: a terminal, or the one that is empty."""
    return os.isatty(device) or os.fstat(device).st_rdev == os.stat(os.devnull).st_rdev


def _await_writer(pipe: int, path: Path) -> None:
    """Return when there is something to read, or somebody who may write it."""
    ready = select.poll()
    ready.register(pipe, select.POLLIN)
    if ready.poll(PATIENCE * 1000):
        return
    try:
        os.read(pipe, 1)
    except BlockingIOError:
        return
    raise OSError(errno.ENXIO, "a pipe that nobody writes into", str(path))


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


def why_another(error: BaseException) -> str:
    """Return why a document is none of the kind that was expected, in words: what making something of it raised."""
    match error:
        case KeyError(args=[key]):
            return f"it has no {key!r}"
        case json.JSONDecodeError():
            return f"it is no JSON: {error}"
        case RecursionError():
            return "it is nested too deep"
        case ArithmeticError():
            return "it has an amount that is no number"
        case TypeError() if str(error).startswith("unhashable type: "):
            return "it has a list or a mapping where a plain value is expected"
        case TypeError() if _SHAPE.search(str(error)):
            return f"it has {_found_shape(str(error))}"
    return str(error)


_SHAPE: Final = re.compile(
    r"(list|string) indices must be integers|'(\w+)' object is not (subscriptable|iterable)"
)
_IN_WORDS: Final = {
    "list": "a list",
    "string": "a text",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "NoneType": "null",
}
"""What JSON has, by Python's words for it."""


def _found_shape(message: str) -> str:
    """Return what was found and what was expected, of Python's message about a value that has nothing in it."""
    found = _SHAPE.search(message)
    groups = (None, None, None) if found is None else found.groups()
    kind = groups[0] or groups[1] or ""
    return f"{_IN_WORDS.get(kind, kind)} where {'a list' if groups[2] == 'iterable' else 'an object'} is expected"


def link_problem(error: BaseException, path: Path) -> str:
    """Return what is wrong with a symbolic link, or nothing where `error` has another cause."""
    if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno == errno.ELOOP):
        return "a symbolic link that leads to itself"
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"a symbolic link to {os.readlink(path)!r}, which is not there"
    return ""
