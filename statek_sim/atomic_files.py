"""Files that are rewritten whole: a reader, and a crash at any moment, see the old file or the new one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

_OLD: Final = 3_600
"""Seconds after which nobody writes a draft any more."""


def replace_file(
    path: Path, content: bytes, *, durable: bool = True, check: Callable[[], None] | None = None
) -> None:
    """Put `content` in the place of a file, which keeps its permissions, or make it; raises OSError.

    The folder must be there, and `path` no link: what is at it is replaced. `check` is asked when all is written but
    nothing has changed; what it raises leaves everything as it is. `durable`: the disk has the content before the file
    is replaced.
    """
    drafts = f".{blake2b(os.fsencode(path.name), digest_size=8).hexdigest()}."
    # A name that no other container takes, whose processes may have the same numbers.
    draft = path.with_name(f"{drafts}{os.urandom(8).hex()}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        _remove_old(drafts, draft)
        with suppress(FileNotFoundError):
            draft.chmod(stat.S_IMODE(path.stat().st_mode))
        if check is not None:
            check()
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _remove_old(drafts: str, mine: Path) -> None:
    """Remove drafts of a file whose writers were killed long ago, by the clock of the disk that `mine` is on."""
    now = mine.stat().st_mtime
    for draft in mine.parent.glob(f"{drafts}*.tmp"):
        with suppress(OSError):
            if now - draft.lstat().st_mtime > _OLD:
                draft.unlink()
