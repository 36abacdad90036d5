"""MiniMax M3's arguments: elements inside each other, a list's members called `item`."""

from __future__ import annotations

import re
from typing import Final

from statek_sim.agent.rescue.meter import Broken, Meter
from statek_sim.agent.rescue.offered import Argument, NestedText, TypedText

_M3: Final = "]<]minimax[>["
_M3_OPEN: Final = re.compile(re.escape(_M3) + r"<(?P<tag>[\w.-]{1,128})>")
_M3_CLOSE: Final = re.compile(r"\s*" + re.escape(_M3) + r"</(?P<tag>[\w.-]{1,128})>")
_M3_END: Final = re.compile(r"\s*" + re.escape(_M3) + r"</invoke>")


def read_minimax(text: str, at: int, meter: Meter, max_depth: int) -> tuple[dict[str, Argument], int]:
    """Return the arguments of MiniMax M3's nested elements; a list's members are elements called `item`."""
    made, at = _members(text, at, meter, max_depth, top=True)
    end = _M3_END.match(text, at)
    if end is None or not isinstance(made, dict):
        raise Broken(at, "the reply ends inside the call", cut=not text[at : at + 200].strip())
    arguments: dict[str, Argument] = dict(made.items())
    return arguments, end.end()


def _members(text: str, at: int, meter: Meter, depth: int, *, top: bool = False) -> tuple[Argument, int]:
    if depth <= 0:
        raise Broken(at, "it is nested too deeply", limit=True)
    found: list[tuple[str, Argument]] = []
    while True:
        meter.token(at)
        opening = _M3_OPEN.match(text, at)
        if opening is None:
            break
        value, at = _member(text, opening.end(), meter, depth)
        closing = _M3_CLOSE.match(text, at)
        if closing is None or closing["tag"] != opening["tag"]:
            raise Broken(at, f"no closing tag of {opening['tag'][:40]!r}", cut=at >= len(text))
        found.append((opening["tag"], value))
        at = closing.end()
    keys = [key for key, _ in found]
    if keys and set(keys) == {"item"}:
        return [value for _, value in found], at
    if top and len(set(keys)) != len(keys):
        raise Broken(at, "an argument is there twice")
    grouped: dict[str, list[Argument]] = {}
    for key, value in found:
        grouped.setdefault(key, []).append(value)
    members: dict[str, Argument] = {}
    for key, values in grouped.items():
        members[key] = values[0] if len(values) == 1 else values
    return members, at


def _member(text: str, at: int, meter: Meter, depth: int) -> tuple[Argument, int]:
    if _M3_OPEN.match(text, at) is not None:
        value, end = _members(text, at, meter, depth - 1)
        return NestedText(text[at:end], value), end
    end = text.find(_M3, at)
    if end < 0:
        raise Broken(len(text), "the reply ends inside an argument", cut=True)
    meter.steps += end - at
    return TypedText(text[at:end], "elements" if not text[at:end].strip() else "leaf"), end
