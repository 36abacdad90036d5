"""Arguments that are elements inside each other, a list's members called `item`: MiniMax M3's, and plain tags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.rescue.offered import Argument, NestedText, TypedText
from statek_sim.agent.rescue.work_budget import Broken, WorkBudget


@dataclass(frozen=True, slots=True)
class Nested:
    """How a dialect writes its tags, and what closes the call. A text ends at `stop`."""

    stop: str
    opening: re.Pattern[str]
    closing: re.Pattern[str]
    ends: re.Pattern[str]

    plain: bool
    """Whether tags have no mark of their own, so that spaces may stand before them, and a text holds no `<`."""


def _nested(ends: str, mark: str = "") -> Nested:
    gap, written = "" if mark else r"\s*", re.escape(mark)
    return Nested(
        stop=mark or "<",
        opening=re.compile(rf"{gap}{written}<(?P<tag>[\w.-]{{1,128}})>"),
        closing=re.compile(rf"\s*{written}</(?P<tag>[\w.-]{{1,128}})>"),
        ends=re.compile(rf"\s*{written}</{ends}>"),
        plain=not mark,
    )


MINIMAX: Final = _nested("invoke", "]<]minimax[>[")
"""MiniMax M3's, whose mark no text has."""
PLAIN: Final = _nested("invoke")
"""The same without its mark, which a server left out as a special token."""
NAMED: Final = {key: _nested(key) for key in ("arguments", "parameters", "input", "args", "params")}
"""Arguments inside an element that is called so."""
PLAIN_FIRST: Final = re.compile(r"\s{0,40}<(?!param|arg|function|invoke)[A-Za-z_][\w.-]{0,127}>")
"""How plain elements begin, where none of another dialect does."""


def read_nested(
    text: str, at: int, style: Nested, budget: WorkBudget, max_depth: int, known: frozenset[str] = frozenset()
) -> tuple[dict[str, Argument], int]:
    """Return arguments that are elements, and where the call ends; a list's members are elements called `item`.

    Raises `Broken` for an argument that is none of the `known` ones, where there are such.
    """
    made, behind = _Reader(text, style, budget).members(at, max_depth, top=True)
    end = style.ends.match(text, behind)
    if end is None or not isinstance(made, dict):
        raise Broken(behind, "the reply ends inside the call", cut=not text[behind : behind + 200].strip())
    if known and not set(made) <= known:
        raise Broken(at, "an element in a call is none of its arguments")
    return dict(made.items()), end.end()


@dataclass(frozen=True, slots=True)
class _Reader:
    text: str
    style: Nested
    budget: WorkBudget

    def members(self, at: int, depth: int, *, top: bool = False) -> tuple[Argument, int]:
        if depth <= 0:
            raise Broken(at, "it is nested too deeply", limit=True)
        found: list[tuple[str, Argument]] = []
        while True:
            self.budget.token(at)
            opening = self.style.opening.match(self.text, at)
            if opening is None:
                break
            self.budget.steps += opening.end() - at
            value, at = self._member(opening.end(), depth)
            closing = self.style.closing.match(self.text, at)
            if closing is None or closing["tag"] != opening["tag"]:
                raise Broken(at, f"no closing tag of {opening['tag'][:40]!r}", cut=at >= len(self.text))
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

    def _member(self, at: int, depth: int) -> tuple[Argument, int]:
        text = self.text
        if self.style.opening.match(text, at) is not None:
            value, end = self.members(at, depth - 1)
            return NestedText(text[at:end], value), end
        end = text.find(self.style.stop, at)
        if end < 0:
            raise Broken(len(text), "the reply ends inside an argument", cut=True)
        self.budget.steps += end - at
        written = text[at:end]
        unsure = self.style.plain and written != written.strip()
        return TypedText(written, "leaf" if written.strip() else "elements", unsure=unsure), end
