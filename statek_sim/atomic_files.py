"""Atomic file replacement: a reader, or a crash at any moment, sees the old file or the new one."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

_OLD: Final = 3_600
"""Seconds after which a draft counts as abandoned."""


def replace_file(
    path: Path, content: bytes, *, durable: bool = True, check: Callable[[], None] | None = None
) -> None:
    """Replace a file by `content`, keeping its permissions, or create it; raises OSError.

    The folder must exist, and `path` must not be a link: it would be replaced. `check` is called after the content is
    written to a draft and before the file is replaced; if it raises, the file stays unchanged. `durable`: flush the
    content to disk before replacing the file.
    """
    drafts = f".{blake2b(os.fsencode(path.name), digest_size=8).hexdigest()}."
    # The name must differ in other containers too, whose processes may have the same ids.
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
    """Remove drafts of a file whose writers were killed long ago.

    The age of a draft is measured by the disk's clock, read from `mine`.
    """
    now = mine.stat().st_mtime
    for draft in mine.parent.glob(f"{drafts}*.tmp"):
        with suppress(OSError):
            if now - draft.lstat().st_mtime > _OLD:
                draft.unlink()
