"""Where a baseline is to be written: on nothing, or on one that was written before."""
# ruff: noqa: PLC0415  # each command imports what it needs

from __future__ import annotations

import json
from pathlib import Path

from statek_sim.errors import BadInput
from statek_sim.input_files import Unreadable, text_of, why_another, why_unreadable


def check_replaceable(path: Path, *, key: str, schema: str) -> None:
    """Raise BadInput for a file that is there and is no baseline: it would be lost without a word.

    A baseline has such a `schema` under `key`, of whatever version; what else is wrong in it is made anew. An empty
    file has nothing to lose.
    """
    from statek_sim.reporting.artifact import check_writable

    check_writable(path)
    if not path.is_file() or not path.stat().st_size:
        return
    why = _why_none(path, key, schema.partition("@")[0] + "@")
    if why:
        raise BadInput(
            f"{path}: is there already, and is no baseline: {why}; name another file, or delete this one"
        )


def _why_none(path: Path, key: str, kind: str) -> str:
    """Return why a file is no baseline, "" if it is one."""
    try:
        text = text_of(path)
    except Unreadable as error:
        return why_unreadable(error, path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        return why_another(error)
    found = document.get(key) if isinstance(document, dict) else None
    if isinstance(found, str) and found.startswith(kind):
        return ""
    return f"it has no {key!r} that begins with {kind!r}"
