"""Replays with cassetter, in its own environment: `python -m bench.cassette_cassetter SIZE`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import cassetter

from bench import cassette_work


def opened(path: Path) -> AbstractContextManager[object]:
    """Answer from the cassette, matching the JSON body."""
    cassette: AbstractContextManager[object] = cassetter.use_cassette(
        str(path), record_mode="none", match_on=["method", "uri", "json_body"]
    )
    return cassette


if __name__ == "__main__":
    cassette_work.measure("cassetter", opened, cassette_work.cassetter_text)
