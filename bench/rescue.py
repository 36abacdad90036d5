"""Rescue parsing beside json_repair, jiter and document 004's parser: right, refused, silently wrong, time per MB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Final

import jiter
import json_repair

from bench.entry import Entry, time_entry
from statek_sim.agent.rescue import DOCUMENT, rescue
from statek_sim.values import JSON
from tests.rescue.account import answered
from tests.rescue.account import counted as accounted
from tests.rescue.hostile import SHAPES, Shape
from tests.rescue.scoring import CASES, SECOND, Case, Verdict, load_cases, verdict

Said = list[tuple[str, Mapping[str, JSON]]]
MOST_SECONDS: Final = 0.3
"""For a megabyte of any hostile shape."""
WORDS: Final[dict[str, Verdict]] = {"right": "right", "refused": "refused", "silently wrong": "wrong"}
UNITS: Final = (
    "{", "[", '{"name":', "<tool_call>{", "[TOOL_CALLS]a{", "<function=a><parameter=b>", "`a\n", "```json\n{", "<|",
    "[a(b=[", '{“', '{"name":"a","arguments":{"b":[1,', '{"name":"a","arguments":{}}', "x", "</tool_call>", '"{',
)  # fmt: skip
MEGABYTE: Final = 1_000_000


def _ours(case: Case) -> Said:
    return [(call.name, call.arguments) for call in rescue(case.text, case.tools).calls]


def _named(case: Case) -> Said:
    return [(call.name, call.arguments) for call in rescue(case.text, case.tools, dialect=case.dialect).calls]


def _document(case: Case) -> Said:
    try:
        return [(call.name, call.arguments) for call in rescue(case.text, rules=DOCUMENT).calls]
    except RecursionError:
        return []


def _json_repair(case: Case) -> Said:
    return _calls(json_repair.loads(case.text))


def _jiter(case: Case) -> Said:
    try:
        return _calls(jiter.from_json(case.text.encode(), partial_mode="on"))
    except ValueError:
        return []


def _calls(value: object) -> Said:
    """Return the calls that a JSON value is, as its reader would take them: a name and arguments, or a list of such."""
    found: Said = []
    for call in value if isinstance(value, list) else [value]:
        if not isinstance(call, dict):
            continue
        arguments = call.get("arguments", call.get("parameters"))
        if isinstance(arguments, dict) and isinstance(call.get("name"), str):
            found.append((call["name"], arguments))
    return found


READERS: Final[dict[str, Callable[[Case], Said]]] = {
    "json_repair": _json_repair,
    "jiter": _jiter,
    "document 004": _document,
}


def rescue_entries(runs: int) -> Iterator[Entry]:
    """Yield what each reader makes of other people's cases, and what a megabyte costs."""
    for words, path in (("cases of others", CASES), ("later cases of others", SECOND)):
        cases = load_cases(path)
        ours = Counter(verdict(case, _ours(case)) for case in cases)
        for name, reader in READERS.items():
            theirs = Counter(verdict(case, reader(case)) for case in cases)
            yield from _counted(f"{len(cases)} {words}", name, ours, theirs)
    named = Counter(verdict(case, _named(case)) for case in cases)
    yield from _counted(f"{len(cases)} {words}, dialect named", "ours, format unknown", named, ours)
    for label, seen in accounted(answered()).items():
        if label.startswith("all four"):
            name = f"{seen.total()} cases of vLLM, SGLang, llama.cpp and json_repair{label.removeprefix('all four')}"
            for what, most, goal in (
                ("not right", seen.total() - seen["right"], 5.0),
                ("silently wrong", seen["wrong"], 0.5),
            ):
                share = 100 * most / seen.total()
                yield Entry(name=f"{name}: {what}", peer="-", unit="%", ours=share, goal=goal)
    text = '{"name": "write", "arguments": {"content": "' + "line of text\\n" * 75_000 + '"}}'
    case = Case(source="", half="build", text=text, tools=None, calls=(), differs="")
    megabytes = len(text) / 1e6
    mine = _seconds(_ours, case, runs) / megabytes
    for name, reader in READERS.items():
        yield time_entry(
            name="a call with a megabyte of text",
            peer=name,
            unit="ms/MB",
            ours=1e3 * mine,
            theirs=1e3 * _seconds(reader, case, runs) / megabytes,
            goal=None,
        )
    hostile = {unit: Shape(unit) for unit in UNITS} | SHAPES
    slowest = max(
        (_seconds(_ours, replace(case, text=shape.text(MEGABYTE)), runs), name)
        for name, shape in hostile.items()
    )
    yield Entry(
        name=f"1 MB of the worst of {len(hostile)} hostile shapes, {slowest[1]!r}",
        peer="-",
        unit="s",
        ours=slowest[0],
        goal=MOST_SECONDS,
    )


def _counted(name: str, peer: str, ours: Counter[Verdict], theirs: Counter[Verdict]) -> Iterator[Entry]:
    for what, counted in WORDS.items():
        yield Entry(
            name=f"{name}: {what}", peer=peer, unit="cases", ours=ours[counted], theirs=theirs[counted]
        )


def _seconds(reader: Callable[[Case], Said], case: Case, runs: int) -> float:
    measured = []
    for _ in range(runs):
        started = perf_counter()
        reader(case)
        measured.append(perf_counter() - started)
    return median(measured)
