"""Reads files named by the user, with the same error messages in every command."""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, Final

from statek_sim.errors import BadInput


def read_text(
    path: Path, problem: type[BadInput] = BadInput, *, most: int | None = None, remedy: str = ""
) -> str:
    """Return the text of a UTF-8 file with universal newlines and without a byte order mark.

    Raises `problem` for an unreadable file, and for other encodings; `remedy` ends the message. With `most`, the file
    must be a regular file of at most that many bytes.
    """
    try:
        if most is not None and not stat.S_ISREG(path.stat().st_mode):
            raise problem(f"{path}: not a regular file{remedy}")
        with path.open("rb") as file:
            content = file.read() if most is None else file.read(most + 1)
    except (OSError, RuntimeError) as error:
        # Python 3.11 and 3.12 raise RuntimeError for a symbolic link to itself.
        raise problem(f"{path}: {why_unreadable(error, path)}{remedy}") from None
    if most is not None and len(content) > most:
        raise problem(f"{path}: more than {most} bytes{remedy}")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise problem(f"{path}:{line}: not UTF-8 (byte 0x{content[error.start]:02x}){remedy}") from None


def toml_in(text: str) -> dict[str, Any]:
    """Parse TOML; raises `tomllib.TOMLDecodeError`, also for values that Python refuses to parse."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep (at end of document)") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        # Python 3.11 and later parse no integers of more than 4,300 digits.
        raise tomllib.TOMLDecodeError("a number has too many digits (at end of document)") from None


_TOML_PLACE: Final = re.compile(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", re.DOTALL)


def why_no_toml(error: tomllib.TOMLDecodeError, text: str) -> str:
    """Return the line number and the reason, such as `3: not TOML: ...`, to follow `path:`.

    If the error has no line, the text's last line is used.
    """
    found = _TOML_PLACE.fullmatch(str(error))
    reason = found[1] if found else str(error)
    line = int(found[2]) if found and found[2] else text.count("\n") + 1
    return f"{line}: not TOML: {reason[:1].lower()}{reason[1:]}"


def why_unreadable(error: BaseException, path: Path) -> str:
    """Return why a file cannot be read, to follow `path: `; a broken link is distinguished from a missing file."""
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
    """Return what is wrong with a symbolic link, or an empty string if `error` has another cause."""
    if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno == errno.ELOOP):
        return "a symbolic link that leads to itself"
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"a symbolic link to {os.readlink(path)!r}, which does not exist"
    return ""
