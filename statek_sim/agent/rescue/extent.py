"""Where a broken JSON value ends, when its strings are beyond doubt.

`{"at": 15:30}` cannot be read, but it can be seen where it ends, so that the calls behind it are not lost.
"""

from __future__ import annotations

import re
from typing import Final

from statek_sim.agent.rescue.meter import Meter

_PIECE: Final = re.compile(
    r'(?P<string>"(?:[^"\\\n]|\\[^\n])*+")|(?P<opens>[{\[])|(?P<closes>[}\]])|(?P<other>[^"{}\[\]<\'“”`]++)'
)
_BEFORE: Final = "{[:,"
_BEHIND: Final = re.compile(r"\s*[:,}\]]")
_PAIRS: Final = {"}": "{", "]": "["}


def extent(text: str, at: int, meter: Meter) -> int | None:
    """Return where the value that opens at `at` closes, or None when a string may have been taken for another.

    Every string has to stand between marks (`{[:,` before it, `:,}]` behind it) on one line, and every bracket to close
    its own kind: a quote that is lost or too many breaks one of these. A `<` between strings may be the end of the
    format around it.
    """
    open_brackets: list[str] = []
    here, before = at, "["
    while True:
        meter.token(here)
        piece = _PIECE.match(text, here)
        meter.steps += 1 if piece is None else piece.end() - here
        if piece is None:
            return None
        here, said = piece.end(), piece.group()
        if piece.lastgroup == "string":
            if before not in _BEFORE or _BEHIND.match(text, here) is None:
                return None
        elif piece.lastgroup == "opens":
            open_brackets.append(said)
        elif piece.lastgroup == "closes":
            if not open_brackets or open_brackets.pop() != _PAIRS[said]:
                return None
            if not open_brackets:
                return here
        before = said.rstrip()[-1:] or before
