"""The pass over a reply, from left to right.

At each opening that `openings` finds, a reader takes a call, or says what is wrong with it; the pass goes on behind
what was read, so that no text is read twice. A reply that is cut inside a call ends there, and so does one with a
broken call whose strings cannot be told apart: what follows may be part of a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from statek_sim.agent.rescue import markup
from statek_sim.agent.rescue.answer import answer
from statek_sim.agent.rescue.beginning import Beginning
from statek_sim.agent.rescue.hints import Hint
from statek_sim.agent.rescue.meter import Broken, Meter
from statek_sim.agent.rescue.offered import Offered
from statek_sim.agent.rescue.openings import (
    ANALYSIS_ENDS,
    CLOSER,
    EXAMPLE,
    FAMILIES,
    MUSE_SAID_ENDS,
    OPENING,
    PROSE,
    RESULT_ENDS,
    SAID_ENDS,
    SECTION,
    THINK_ENDS,
)
from statek_sim.agent.rescue.tags import KnownTags
from statek_sim.agent.rescue.taking import Taker
from statek_sim.agent.rescue.values import Limits, Reason, Rescued
from statek_sim.agent.rescue.variants import RescueRules
from statek_sim.agent.rescue.wrapping import Wrapper

_BLOCKS: Final = frozenset(
    (
        "",
        "json",
        "json5",
        "jsonc",
        "javascript",
        "js",
        "tool_call",
        "tool_calls",
        "tool_code",
        "tool",
        "python",
        "xml",
    )
)
"""Languages of code blocks that may be a call as a whole."""
_NAME_FIRST: Final = re.compile(r"[{\[\s]*[\"'“]?(?:name|tool|function|tool_name|action)\b")
_PYTHON_FIRST: Final = re.compile(r"\[\s*([^\W\d][\w.-]*)\(")
"""How JSON and Python begin that were meant as calls."""
_LOOKBACK: Final = 120
"""Characters before bare JSON in which a word may make it an example."""
_INDENTATION: Final = 4
"""From so many spaces on, what follows them on its line opens no block of code."""
_SENTENCE_BEFORE: Final = re.compile(r"\w[,:]?[ \t]\Z")
_SENTENCE_BEHIND: Final = re.compile(r"[ \t](?!and\b|then\b)[a-z]+[ \t]+[a-z]")
"""The words around a call that is shown in a sentence."""
_TICK_BEFORE: Final = re.compile(r"(?<!`)`(?:<[^<>`]{1,40}>\s{0,8}){0,2}\Z")
_TICK_BEHIND: Final = re.compile(r"(?:\s{0,8}</[^<>`]{1,40}>){0,2}`(?!`)")
"""The backticks around a call that is code, also where that has several lines."""
_BLOCK_CLOSERS: Final = 8
"""Closing tokens that are tried to find the end of a broken call."""
_ELEMENTS: Final = {
    "function": markup.FUNCTION, "invoke": markup.INVOKE, "param": markup.PARAM, "kimi3": markup.KIMI3,
    "beam": markup.BEAM,
}  # fmt: skip


@dataclass(slots=True)
class Pass:
    """One pass over a reply: `run` returns what it says."""

    text: str
    offered: Offered
    rules: RescueRules
    limits: Limits
    hint: Hint | None
    meter: Meter = field(init=False)
    taker: Taker = field(init=False)
    attempts: int = 0
    leading: int | None = 0
    """Up to where the reply holds nothing but thinking and calls; None: something else was there."""

    def __post_init__(self) -> None:
        self.meter = Meter(self.limits.max_repaired_tokens, self.limits.max_values)
        self.taker = Taker(self.text, self.offered, self.rules, self.limits, self.meter, self.hint)

    def run(self) -> Rescued:
        """Read the reply from its beginning to its end."""
        at, end = self._unquoted()
        at = self._first(at, end)
        tags = KnownTags(self.text, self.offered.schemas)
        self.meter.steps += len(self.text)
        behind = at
        while at < end:
            if at >= behind:
                prose = PROSE.match(self.text, at, end)
                behind = at if prose is None else prose.end()
            opening = tags.between(at, behind) or OPENING.match(self.text, behind, end)
            here = end if opening is None else opening.start()
            self.meter.steps += here - at + 1
            if opening is None or self._enough(here):
                break
            at = max(self._at(opening), opening.end() if opening.lastgroup in _SOLID else here + 1)
        return answer(self.taker)

    def _first(self, at: int, end: int) -> int:
        """Read what is a call only where a reply begins."""
        return Beginning(self.taker, self._try).read(at, end)

    def _unquoted(self) -> tuple[int, int]:
        """Return where the reply begins and ends; a reply that is one piece of code on a line is what is in it."""
        bare = self.text.strip()
        if len(bare) > 2 and bare[0] == bare[-1] == "`" and "`" not in bare[1:-1]:
            start = self.text.index("`")
            return start + 1, start + len(bare) - 1
        return 0, len(self.text)

    def _enough(self, here: int) -> bool:
        if len(self.taker.found) > self.limits.max_calls:
            return True
        self.attempts += 1
        if self.attempts <= self.limits.max_attempts + len(self.taker.found):
            return False
        why = f"more than {self.limits.max_attempts} openings are no call; the rest is not read"
        self.taker.refused.append((Reason.LIMIT, why, here, len(self.text)))
        return True

    def _at(self, opening: re.Match[str]) -> int:
        """Read what opens here, and return where the pass goes on."""
        kind = opening.lastgroup or ""
        if kind in ("think", "thought"):
            self._leads(opening.start())
            self.leading = behind = self._think(opening, opens=kind == "think")
            return self._first(behind, len(self.text))
        leads = self._leads(opening.start())
        if self.hint is not None and not self.hint.expects(kind, leads=leads):
            return self._over(kind, opening)
        before = len(self.taker.found)
        at = self._opened(kind, opening)
        if len(self.taker.found) > before and self._in_ticks(opening.start(), at):
            why = "the call stands in code"
            self.taker.refused.append((Reason.QUOTED, why, opening.start(), at))
            self.taker.forget(before)
        # Tokens of a vocabulary are no words: what they open is meant.
        written = not opening.group().startswith(("<|", "<｜", "[TOOL_CALLS]"))
        if len(self.taker.found) > before and written and self._in_a_sentence(opening.start(), at):
            self.taker.refused.append(
                (Reason.QUOTED, "the call stands inside a sentence", opening.start(), at)
            )
            self.taker.forget(before)
        if leads and self.taker.found:
            self.leading = at
        return at

    def _in_ticks(self, start: int, end: int) -> bool:
        """Whether what is read from `start` to `end` stands, with the tags around it, between backticks."""
        return (
            _TICK_BEFORE.search(self.text, max(0, start - _LOOKBACK), start) is not None
            and _TICK_BEHIND.match(self.text, end) is not None
        )

    def _in_a_sentence(self, start: int, end: int) -> bool:
        """Whether what is read from `start` to `end` is a word of a sentence that goes on behind it on its line."""
        return (
            _SENTENCE_BEFORE.search(self.text, max(0, start - _LOOKBACK), start) is not None
            and _SENTENCE_BEHIND.match(self.text, end) is not None
        )

    def _leads(self, at: int) -> bool:
        """Whether nothing but thinking and calls stands before `at`."""
        if self.leading is not None and self.text[self.leading : at].strip(" \t\r\n,;"):
            self.leading = None
        return self.leading is not None

    def _over(self, kind: str, opening: re.Match[str]) -> int:
        """Return the end of what is not expected here; calls in it are refused, and nothing in it is read again."""
        before = len(self.taker.found)
        end = self._opened(kind, opening)
        if len(self.taker.found) > before:
            name = self.hint.name if self.hint is not None else ""
            why = f"the call is not written as {name!r} writes one"
            self.taker.refused.append((Reason.DIALECT, why, opening.start(), end))
            self.taker.forget(before)
        return end

    def _opened(self, kind: str, opening: re.Match[str]) -> int:
        if kind == "fence":
            return self._fence(opening)
        if kind == "said":
            closing = _said_ends(opening).search(self.text, opening.end())
            end = len(self.text) if closing is None else closing.end()
            self.meter.steps += end - opening.end()
            return end
        if FAMILIES[kind] not in self.rules.dialects:
            return opening.end()
        return self._try(lambda: self._read(kind, opening), opening)

    def _read(self, kind: str, opening: re.Match[str]) -> int:
        taker = self.taker
        match kind:
            case "wrapper":
                return Wrapper(taker, opening).read()
            case "mistral":
                return taker.mistral(opening)
            case "gemma":
                return taker.gemma(opening)
            case "kimi":
                return taker.kimi(opening)
            case "deepseek":
                return taker.deepseek(opening)
            case "react":
                return taker.react(opening)
            case "calling":
                return taker.calling(opening)
            case "minimax":
                return taker.minimax(opening)
            case "tag":
                return self._tag(opening)
            case "recipient_only" if opening["recipient_only_name"] not in self.offered.schemas:
                return opening.end()
            case "brace":
                return taker.bare(opening.start(), shown=self._shown(opening.start()))
            case "bracket":
                return taker.bracket(opening.start(), shown=self._shown(opening.start()))
        if kind in _ELEMENTS:
            return taker.elements(opening, kind, _ELEMENTS[kind])
        return taker.named(opening, kind, opening.end())

    def _tag(self, opening: re.Match[str]) -> int:
        """Read a tag that is an offered tool's name."""
        if self._shown(opening.start()):
            self.taker.refused.append(
                (Reason.QUOTED, "the call is shown as an example", opening.start(), opening.end())
            )
            return opening.end()
        return self.taker.tags(opening)

    def _try(self, read: Callable[[], int], opening: re.Match[str]) -> int:
        start, before = opening.start(), len(self.taker.found)
        try:
            return read()
        except Broken as error:
            reason = Reason.LIMIT if error.limit else Reason.CUT if error.cut else Reason.BROKEN
            at = max(error.at, opening.end())
            # A list of calls keeps those that were complete; what was read of one format only in part is not kept.
            del self.taker.found[max(before, self.taker.sure) :]
            if self._looks_like_a_call(opening):
                self.taker.refused.append((reason, error.why, start, min(at, len(self.text))))
            if error.cut or error.limit:
                return len(self.text)
            return at if opening.lastgroup in ("brace", "bracket") else self._behind(opening.end(), at)

    def _looks_like_a_call(self, opening: re.Match[str]) -> bool:
        if opening.lastgroup not in ("brace", "bracket"):
            return True
        head = self.text[opening.start() : opening.start() + 60]
        python = _PYTHON_FIRST.match(head)
        return _NAME_FIRST.match(head) is not None or (
            python is not None and python[1] in self.offered.schemas
        )

    def _behind(self, at: int, broken_at: int) -> int:
        """Return the end of a broken call: its closing token, where the quotes before it are even in number."""
        quotes, here = 0, at
        for _ in range(_BLOCK_CLOSERS):
            closer = CLOSER.search(self.text, here)
            if closer is None:
                break
            quotes += self.text.count('"', here, closer.start()) - self.text.count(
                '\\"', here, closer.start()
            )
            self.meter.steps += closer.end() - here
            here = closer.end()
            if quotes % 2 == 0 and here >= broken_at:
                return here
        self.meter.steps += len(self.text) - here
        return len(self.text)

    # Thinking and code

    def _think(self, opening: re.Match[str], *, opens: bool) -> int:
        if not opens:
            # It was opened in the prompt: everything up to here was thinking.
            self.taker.forget(0)
            del self.taker.refused[:], self.taker.thinking[:]
            self.taker.thinking.append((0, opening.end()))
            return opening.end()
        closing = THINK_ENDS.search(self.text, opening.end())
        end = len(self.text) if closing is None else closing.end()
        self.meter.steps += end - opening.end()
        section = SECTION.search(self.text, opening.end()) if closing is None else None
        if section is not None:
            self.taker.thinking.append((opening.start(), section.start()))
            return section.start()
        self.taker.thinking.append((opening.start(), end))
        if closing is None and PROSE.match(self.text, opening.end()).end() < end:  # type: ignore[union-attr]  # it matches nothing, too
            why = "the reply ends before its thinking does"
            self.taker.refused.append((Reason.CUT, why, opening.start(), end))
        return end

    def _fence(self, opening: re.Match[str]) -> int:
        """Read a block of code: a call when it is nothing else, and else text."""
        if opening["ticks"].startswith("~") and not self._begins_a_line(opening.start()):
            return opening.end()  # "Great~~~", as people write to each other
        closing = self.text.find(opening["ticks"], opening.end())
        inside = len(self.text) if closing < 0 else closing
        end = min(len(self.text), inside + len(opening["ticks"]))
        self.meter.steps += end - opening.end()
        if "fence" not in self.rules.dialects or opening["language"].lower() not in _BLOCKS:
            return end
        body = self.text[opening.end() : inside]
        head = opening.end() + len(body) - len(body.lstrip())
        first = self.text[head : head + 1]
        named = opening["language"] != ""
        if first == "<" and named and self.leading is not None and not self.text[end:].strip():
            return opening.end()  # the whole reply is a block with a call in its wrapper
        if first not in ("{", "[") and opening["language"].lower() not in ("tool_code", "tool_call"):
            return end
        return self._try(lambda: self._block(head, inside, end, opening.start()), opening)

    def _block(self, head: int, inside: int, end: int, start: int) -> int:
        shown = self._shown(start)
        before = len(self.taker.found)
        if self.text[head] == "{" or self.text[head:inside].lstrip("[").lstrip()[:1] == "{":
            stop = self.taker.bare(head, "fence", shown=shown)
        else:
            stop = self.taker.block(head, start)
        if self.text[stop:inside].strip() and stop <= inside:
            self.taker.forget(before)
            return end
        for found in self.taker.found[before:]:
            found.start, found.end = start, max(end, stop)
        return max(end, stop)

    def _begins_a_line(self, at: int) -> bool:
        """Whether nothing but an indentation, or the mark of a quotation, stands before `at` on its line."""
        before = self.text[max(0, at - _INDENTATION) : at].rstrip("> ")
        return before.endswith("\n") or (not before and at < _INDENTATION)

    def _shown(self, at: int) -> bool:
        """Whether the words before `at` make what follows an illustration."""
        return EXAMPLE.search(self.text[max(0, at - _LOOKBACK) : at]) is not None


def _said_ends(opening: re.Match[str]) -> re.Pattern[str]:
    """Return what ends what holds no calls: what is told to the user or to the model itself, a tool's answer."""
    if opening.group().startswith(("<tool_", "<function_")):
        return RESULT_ENDS
    if opening.group().startswith("to=user"):
        return MUSE_SAID_ENDS
    return ANALYSIS_ENDS if "analysis" in opening.group() else SAID_ENDS


_SOLID: Final = frozenset(("think", "thought", "fence"))
"""What is never read again from the inside."""
