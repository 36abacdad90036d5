"""Atomic replacement of files: a reader, or a crash at any moment, sees either the old file or the new one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

_OLD: Final = 3_600
"""The age in seconds from which a draft file counts as abandoned."""


def replace_file(path: Path, content: bytes, *, check: Callable[[], None] | None = None) -> None:
    """Replace a file's content, keeping its permissions, or create the file; raises `OSError`.

    The folder must exist. `path` must not be a symbolic link, because the link itself would be replaced. The content is
    first written to a draft file and flushed to disk. `check` is called before the draft replaces the file; if it
    raises an error, the file is not changed.
    """
    drafts = f".{blake2b(os.fsencode(path.name), digest_size=8).hexdigest()}."
    # The name must differ in other containers too, whose processes may have the same ids.
    draft = path.with_name(f"{drafts}{os.urandom(8).hex()}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
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
    """Remove a file's drafts whose writers were killed long ago.

    Drafts' ages are measured by the disk's clock, read from the draft `mine`.
    """
    now = mine.stat().st_mtime
    for draft in mine.parent.glob(f"{drafts}*.tmp"):
        with suppress(OSError):
            if now - draft.lstat().st_mtime > _OLD:
                draft.unlink()
