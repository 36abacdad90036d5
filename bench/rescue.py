"""Rescue parsing: the score on our table, and time per megabyte compared with json_repair and jiter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Final

import jiter
import json_repair

from bench.entry import Entry, time_entry
from statek_sim.rescue import rescue
from statek_sim.values import JSON
from tests.rescue.hostile import SHAPES, Shape
from tests.rescue.table import score

MOST_SECONDS: Final = 0.3
"""Goal for a megabyte of any hostile input."""
MOST_MICROSECONDS: Final = 100.0
"""Goal for an ordinary reply."""
UNITS: Final = (
    "{", "[", '{"name":', "<tool_call>{", "[TOOL_CALLS]a{", "<function=a><parameter=b>", "`a\n", "```json\n{", "<|",
    "[a(b=[", '{“', '{"name":"a","arguments":{"b":[1,', '{"name":"a","arguments":{}}', "x", "</tool_call>", '"{',
)  # fmt: skip
MEGABYTE: Final = 1_000_000
ORDINARY: Final = (
    "The keys are in the drawer of the desk, as far as I can see from the notes of last week. Shall I tell Ada?",
    '<tool_call>\n{"name": "find", "arguments": {"what": "keys", "where": "desk", "limit": 3}}\n</tool_call>',
)
_KINDS: Final[dict[str, JSON]] = {
    "what": {"type": "string"},
    "where": {"type": "string"},
    "limit": {"type": "integer"},
}
TOOLS: Final[list[dict[str, JSON]]] = [
    {"name": "find", "parameters": {"type": "object", "properties": _KINDS}}
]

Read = Callable[[str], object]
READERS: Final[dict[str, Read]] = {
    "json_repair": json_repair.loads,
    "jiter": lambda text: jiter.from_json(text.encode(), partial_mode="on"),
}


def rescue_entries(runs: int) -> Iterator[Entry]:
    """Yield the score on the table of our renderings, and the cost of ordinary and hostile replies."""
    said = score()["all"]
    for what, most, goal in (
        ("not right", said.total() - said["right"], 5.0),
        ("silently wrong", said["wrong"], 0.5),
    ):
        share = 100 * most / said.total()
        name = f"{said.total()} replies of the table: {what}"
        yield Entry(name=name, unit="%", ours=share, goal=goal)
    for text in ORDINARY:
        each = 1e6 * _seconds(lambda reply: [rescue(reply, TOOLS) for _ in range(100)], text, runs) / 100
        name = f"an ordinary reply, {text[:11]!r}"
        yield Entry(name=name, unit="µs", ours=each, goal=MOST_MICROSECONDS)
    text = '{"name": "write", "arguments": {"content": "' + "line of text\\n" * 75_000 + '"}}'
    megabytes = len(text) / 1e6
    mine = _seconds(rescue, text, runs) / megabytes
    for name, reader in READERS.items():
        yield time_entry(
            name="a call with a megabyte of text",
            peer=name,
            unit="ms/MB",
            ours=1e3 * mine,
            theirs=1e3 * _seconds(reader, text, runs) / megabytes,
            goal=None,
        )
    hostile = {unit: Shape(unit) for unit in UNITS} | SHAPES
    slowest = max((_seconds(rescue, shape.text(MEGABYTE), runs), name) for name, shape in hostile.items())
    yield Entry(
        name=f"1 MB of the worst of {len(hostile)} hostile shapes, {slowest[1]!r}",
        unit="s",
        ours=slowest[0],
        goal=MOST_SECONDS,
    )


def _seconds(reader: Read, text: str, runs: int) -> float:
    measured = []
    for _ in range(runs):
        started = perf_counter()
        reader(text)
        measured.append(perf_counter() - started)
    return median(measured)
