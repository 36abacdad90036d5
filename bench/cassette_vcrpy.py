"""Replays with vcrpy: `python -m bench.cassette_vcrpy SIZE`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import vcr

from bench import cassette_work


def opened(path: Path) -> AbstractContextManager[object]:
    """Answer from the cassette, matching the body."""
    ways = ["method", "scheme", "host", "port", "path", "query", "body"]
    cassette: AbstractContextManager[object] = vcr.use_cassette(str(path), record_mode="none", match_on=ways)
    return cassette


if __name__ == "__main__":
    cassette_work.measure("vcrpy", opened, cassette_work.vcrpy_text)
