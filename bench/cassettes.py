"""Replay of recorded chats, compared with vcrpy and cassetter."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from bench.cassette_work import CASSETTER, vcrpy_text
from bench.entry import Entry, time_entry
from bench.setup import ensure
from bench.sides import Side
from bench.workload import Measurement
from statek_sim.cassettes.scan import scan

SIZE: Final = 5000
"""Turns in the chat, 3.3 kB each."""
VCRPY_SIZE: Final = 300
"""Turns that vcrpy replays; its time grows quadratically."""
SCANNED: Final = 25
"""Megabytes of recordings that are scanned."""
MOST_PER_MEGABYTE: Final = 0.6
"""Goal for a scan: 100 MB in a minute."""
FLAT: Final = 0.8
"""The minimum ratio that counts as equal cost; the tolerance is for a busy machine."""

_ENVIRONMENT: Final = Path(__file__).resolve().parent / ".cassetter"


def entries(ours: Side, runs: int) -> Iterator[Entry]:
    """Measure our replays `runs` times, and each rival once, right after one of our replays of the same size."""
    own = Side(ours.python, "bench.cassette_ours")
    measured = [own.measure(SIZE) for _ in range(runs)]
    yield from _ours(measured)
    cassetter = Side(_cassetter(), "bench.cassette_cassetter")
    yield from _against(f"cassetter {CASSETTER}", cassetter, own, SIZE)
    vcrpy = Side(Path(sys.executable), "bench.cassette_vcrpy")
    yield from _against(f"vcrpy {version('vcrpy')}", vcrpy, own, VCRPY_SIZE)


def _ours(measured: list[Measurement]) -> Iterator[Entry]:
    size = measured[0].size
    for name, seconds, goal in (
        (f"replay {size:,} chat turns, body matched", [measurement.seconds for measurement in measured], 2.0),
        (f"load {size:,} turns from YAML", [measurement.extra["load"] for measurement in measured], 3.5),
    ):
        yield Entry(name=name, unit="s", ours=median(seconds), goal=goal)
    yield Entry(
        name=f"scan {SCANNED} MB of recordings, each megabyte",
        unit="s",
        ours=_scan(),
        goal=MOST_PER_MEGABYTE,
    )
    fifth = size // 5
    yield time_entry(
        name=f"cost of a request, the last {fifth:,} against the first",
        peer="first fifth of the same replay",
        unit="µs",
        ours=1e6 / fifth * median(measurement.extra["last"] for measurement in measured),
        theirs=1e6 / fifth * median(measurement.extra["first"] for measurement in measured),
        goal=FLAT,
    )


def _scan() -> float:
    """Return the seconds per megabyte of a scan for secrets."""
    text = vcrpy_text(300)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "conversation.yaml"
        path.write_text(text, encoding="utf-8")
        times = round(SCANNED * 1e6 / len(text))
        began = perf_counter()
        for _ in range(times):
            scan(path)
        return (perf_counter() - began) / (times * len(text) / 1e6)


def _against(peer: str, rival: Side, own: Side, size: int) -> Iterator[Entry]:
    mine, theirs = own.measure(size), rival.measure(size)
    for name, what in (
        (f"replay {size:,} chat turns, body matched, one run", "replay"),
        (f"load {size:,} turns", "load"),
    ):
        yield time_entry(
            name=name, peer=peer, unit="s", ours=_part(mine, what), theirs=_part(theirs, what), goal=None
        )


def _part(measured: Measurement, what: str) -> float:
    return measured.seconds if what == "replay" else measured.extra[what]


def _cassetter() -> Path:
    """Return an interpreter with the rival and the HTTP client used here."""
    client = f"httpx2=={version('httpx2')}"
    return ensure(_ENVIRONMENT, "cassetter", CASSETTER, [f"cassetter=={CASSETTER}", client])
