"""What is a call only where a reply begins: without the tokens of its format, it would be prose anywhere else.

A tool's name on a line and its arguments on the next (Functionary), Mistral's name and arguments, or nothing but
Gemma's calls, or nothing but Python calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.rescue.meter import Broken
from statek_sim.agent.rescue.pythonic import PYTHON_CALL
from statek_sim.agent.rescue.taking import Taker
from statek_sim.agent.rescue.values import Reason

_TOOL_LINE: Final = re.compile(r"\s{0,40}(?P<line_name>[^\W\d][\w.-]{0,127})[ \t]{0,40}\n\s{0,40}(?=\{)")
_GEMMA: Final = re.compile(r"\s{0,40}call:(?P<gemma_name>[^\W\d][\w.:/-]{0,127})\s{0,40}(?=\{)")
_ARGS: Final = re.compile(
    r"\s{0,40}(?=(?P<mistral_name>[^\W\d][\w.:/-]{0,127})\s{0,8}(?:\[CALL_ID\]\s{0,8}[\w-]{0,128}\s{0,8})?\[ARGS\]\s{0,40}\{)"
)
"""Mistral's, of which a server left out the first token as a special one."""
_END: Final = re.compile(r"\s*(?:;\s*)?")
"""What may stand behind calls that are the whole reply."""

Try = Callable[[Callable[[], int], "re.Match[str]"], int]
"""Calls a reader at an opening; what it cannot read is refused. Returns where the pass goes on."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of a reply, or of what stands behind its thinking."""

    taker: Taker
    attempt: Try

    def read(self, at: int, end: int) -> int:
        """Take the calls that begin at `at`, and return where they end; `at` where there are none."""
        named = self._named(at)
        if named > at:
            return named
        mistral = self._mistral(at)
        if mistral > at:
            return mistral
        stop = self._gemma(at, end)
        return stop if stop > at else self._python(at, end)

    def _named(self, at: int) -> int:
        taker = self.taker
        first = _TOOL_LINE.match(taker.text, at)
        if first is None or "tokens" not in taker.rules.dialects or taker.hint is not None:
            return at
        if first["line_name"] not in taker.offered.schemas:
            return at  # where any name is accepted, it may be a file's above its content
        return self.attempt(lambda: taker.named(first, "line", first.end()), first)

    def _mistral(self, at: int) -> int:
        taker = self.taker
        first = _ARGS.match(taker.text, at)
        expected = taker.hint is None or "mistral" in taker.hint.readers
        if first is None or not expected or "mistral" not in taker.rules.dialects:
            return at
        return self.attempt(lambda: taker.mistral(first), first)

    def _gemma(self, at: int, end: int) -> int:
        """Take Gemma's calls without the tokens that a server left out as special ones."""
        taker = self.taker
        opening = _GEMMA.match(taker.text, at)
        expected = taker.hint is None or "gemma" in taker.hint.readers
        if opening is None or not expected or "tokens" not in taker.rules.dialects:
            return at
        return self._alone(lambda: taker.gemma(opening), at, end)

    def _python(self, at: int, end: int) -> int:
        """Take Python calls of offered tools, without brackets around them."""
        taker = self.taker
        call = PYTHON_CALL.match(taker.text, at)
        anyone = taker.hint is not None and taker.hint.python == "anywhere" and taker.offered.anything
        known = call is not None and (call["name"] in taker.offered.schemas or anyone)
        if call is None or not known or "python" not in taker.rules.dialects:
            return at
        start = call.start("name")
        return self._alone(lambda: taker.python(start, "python", start, bracket=False), at, end)

    def _alone(self, read: Callable[[], int], at: int, end: int) -> int:
        """Take the calls at `at` when the reply ends behind them, and return its end, or else `at`."""
        taker, before = self.taker, len(self.taker.found)
        try:
            stop = read()
        except Broken as error:
            taker.forget(before)
            if error.cut:
                taker.refused.append((Reason.CUT, error.why, at, len(taker.text)))
            return len(taker.text) if error.cut else at
        if _END.match(taker.text, stop, end).end() < end:  # type: ignore[union-attr]  # it matches nothing, too
            taker.forget(before)
            return at
        return stop
