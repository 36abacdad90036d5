"""Whether the brackets of a call stand where they were meant to be.

A bracket that is missing or too many may be anyone's: a call is only taken where every reading gives the same call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from statek_sim.agent.rescue.meter import Broken
from statek_sim.agent.rescue.openings import CLOSERS
from statek_sim.values import JSON

_EXTRA: Final = re.compile(r"[\s}\]]{1,8}")
_MORE: Final = re.compile(r"[\s,}\]]{0,40}(?:[\"“'][^\"“”'\n]{1,64}[\"”']|[A-Za-z_]\w{0,64})\s{0,8}:")
"""A member of JSON that stands behind the end of a call."""


def closed(text: str, at: int) -> int:
    """Return the place behind brackets too many and the closing token of a format, where they are."""
    extra = _EXTRA.match(text, at)
    if extra is not None and (closer := CLOSERS.match(text, extra.end())) is not None:
        return closer.end()
    closer = CLOSERS.match(text, at)
    return at if closer is None else closer.end()


def nothing_more(text: str, end: int, calls: Iterable[Mapping[str, JSON]]) -> None:
    """Raise `Broken` when members go on behind calls that end at `end`, or a bracket too many may be an inner one.

    `calls` are their arguments.
    """
    if _MORE.match(text, end) is not None:
        raise Broken(end, f"{text[end : end + 24].strip()!r} behind the end of a call")
    spare = _EXTRA.match(text, end)
    if spare is None or not spare.group().lstrip().startswith("}"):
        return
    if not all(_ends_last(dict(arguments)) for arguments in calls):
        raise Broken(end, "a bracket is too many, and it cannot be told which")


def one_place(arguments: Mapping[str, JSON]) -> bool:
    """Whether a bracket that is missing in a call can only be missing behind its arguments.

    `{"a": {"b": 1, "c": 2}` and a bracket less: `c` may be an argument of its own.
    """
    last: JSON = dict(arguments)
    while isinstance(last, dict | list) and last:
        last = last[-1] if isinstance(last, list) else list(last.values())[-1]
        if isinstance(last, dict) and len(last) > 1:
            return False
    return True


def _ends_last(value: JSON) -> bool:
    """Whether every object in an object is its last member, so that an early bracket has nothing to cut off."""
    if isinstance(value, list):
        return all(map(_ends_last, value))
    if not isinstance(value, dict):
        return True
    members = list(value.values())
    return not any(isinstance(member, dict) for member in members[:-1]) and all(map(_ends_last, members))
