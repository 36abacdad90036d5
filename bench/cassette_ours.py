"""Replays with our cassettes: `python -m bench.cassette_ours SIZE`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import cassette_work
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.tap import tapped


@contextmanager
def opened(path: Path) -> Iterator[None]:
    """Answer from the cassette."""
    with tapped(CassetteSession(path, RecordMode.NONE)):
        yield


if __name__ == "__main__":
    cassette_work.measure("ours", opened, cassette_work.vcrpy_text)
