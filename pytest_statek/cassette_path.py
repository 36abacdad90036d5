"""Determines the path to a test's cassette, as pytest-recording 0.14 does, so that its existing cassettes are found."""

from __future__ import annotations

from hashlib import md5
from pathlib import Path
from typing import Final

import pytest

from statek_sim.cassettes.store import LONGEST_NAME

FOLDER: Final = "cassettes"
SUFFIX: Final = ".yaml"

_NO_NAME: Final = str.maketrans(dict.fromkeys("<>?%*:|\"'/\\", "-"))


def cassette_path(item: pytest.Item, name: str | None = None) -> Path:
    """Return `cassettes/<module>/<test>.yaml` next to the test file; `name`, if given, replaces the test name."""
    stem = _fitting(_name(item) if name is None else name.removesuffix(SUFFIX))
    return item.path.parent / FOLDER / item.path.stem / f"{stem}{SUFFIX}"


def _name(item: pytest.Item) -> str:
    owner = getattr(item, "cls", None)
    name = item.name if owner is None else f"{owner.__name__}.{item.name}"
    return "".join(letter if letter.isprintable() else "-" for letter in name.translate(_NO_NAME))


def _fitting(name: str) -> str:
    source = name.encode("utf-8", "surrogateescape")
    if len(source) + len(SUFFIX) <= LONGEST_NAME:
        return name
    digest = md5(source, usedforsecurity=False).hexdigest()
    start = source[: LONGEST_NAME - len(SUFFIX) - len(digest) - 3].decode("utf-8", "ignore")
    return f"{start}...{digest}"
