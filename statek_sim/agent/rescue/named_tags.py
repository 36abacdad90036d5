"""Calls whose tags are names: `<read_file><path>a.py</path></read_file>`, as Cline and Roo ask models to write them.

Such tags are also XML or HTML that is only shown. They are a call where a tool of that name was offered, every tag in
it is one of its arguments, and all of them are closed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from statek_sim.agent.rescue.elements import CDATA, half_kept, half_lined, kept, lines_of
from statek_sim.agent.rescue.offered import TypedText
from statek_sim.agent.rescue.work_budget import Broken, WorkBudget

_TAG: Final = re.compile(r"\s*<(?P<key>[A-Za-z_][\w-]{0,127})>")


def read_tags(
    text: str, at: int, call: str, known: frozenset[str], budget: WorkBudget
) -> tuple[dict[str, TypedText], int]:
    """Return the arguments from `at` on, and the end of `</call>`. `known` are the names that arguments may have.

    Raises `Broken` where a tag is no argument, is not closed, or where a value holds what may be a tag of the call.
    """
    made: dict[str, TypedText] = {}
    tags = _tags_of(call, tuple(sorted(known)))
    while True:
        budget.token(at)
        opening = _TAG.match(text, at)
        if opening is None:
            break
        key = opening["key"]
        if key not in known or key in made:
            raise Broken(at, f"<{key[:40]}> is no argument of {call[:40]!r}, or is there twice")
        made[key], at = _value(text, opening.end(), key, tags, budget)
    end = text.find(f"</{call}>", at, at + len(call) + 200)
    between = text[at : at + 200] if end < 0 else text[at:end]
    if end < 0 or between.strip():
        rest = between.strip()
        raise Broken(
            at, f"{rest[:24]!r} in a call" if rest else "the reply ends inside the call", cut=not rest
        )
    end += len(call) + 3
    return made, end


def _value(text: str, at: int, key: str, tags: re.Pattern[str], budget: WorkBudget) -> tuple[TypedText, int]:
    """Return the value at `at` and the end of its closing tag, which is the next of the call's tags."""
    cdata = CDATA.match(text, at)
    if cdata is not None:
        value, end = kept(text, cdata.end(), re.compile(f"</{re.escape(key)}>"), budget)
        return TypedText(value), end
    closing = tags.search(text, at)
    budget.steps += (len(text) if closing is None else closing.end()) - at
    if closing is None:
        raise Broken(len(text), "the reply ends inside an argument", cut=True)
    if closing.group() != f"</{key}>":
        raise Broken(closing.start(), "where an argument ends cannot be told")
    written = text[at : closing.start()]
    if half_kept(written):
        raise Broken(closing.start(), "where a text that is kept as it is begins cannot be told")
    return TypedText(lines_of(written), unsure=half_lined(written)), closing.end()


@lru_cache(maxsize=256)
def _tags_of(call: str, known: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of everything that may open or close this call or one of its arguments."""
    return re.compile(rf"</?(?:{'|'.join(map(re.escape, (call, *known)))})>")
