"""Where a run's bytes and tokens are, counted both ways part by part, and why STATEK's estimate is off.

STATEK estimates `bytes // 4`, so each part has an estimate (its bytes over 4) and a count (its tokens), and the
differences of all parts add up to the difference of the totals. Only calls that were answered are in it: STATEK
meters no others (behaviour 5).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from statek_sim.backends.record import RunRecord, UsageRecord
from statek_sim.reporting.text_format import count, plural, share, signed
from statek_sim.trace import Event, LLMReplied, LLMRequested
from statek_sim.usage.messages import REPLY_PRIMING, message_tokens
from statek_sim.usage.sizes import body_size, envelope_size, message_size
from statek_sim.usage.tokenizers import ModelTokenizer, tokenizer_for_model
from statek_sim.usage.totals import BYTES_PER_TOKEN
from statek_sim.values import Message

_SMALLEST_TOOLS: Final = 64
"""A tool list takes more bytes than this; a temperature, the other optional part of a request, never does."""

_DENSE: Final = re.compile(r"[!-@\[-`{-~]")
"""ASCII digits and punctuation: characters that make short tokens."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what was sent and received: bytes as STATEK counts them, tokens as the tokenizer does."""

    bytes: int
    tokens: int

    @property
    def excess(self) -> float:
        """Tokens that the estimate has over the count; negative when it has fewer."""
        return self.bytes / BYTES_PER_TOKEN - self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """The parts of all answered calls of a run; the five parts add up to its usage.

    `tools`: tool definitions. `framing`: the JSON around texts, roles and tool calls among it, and what else a
    request holds. `escapes`: bytes that ASCII escapes take beyond the UTF-8 of the same characters. `text`: the
    messages' texts in UTF-8. `replies`: reply bodies.

    Counts are of what was sent, so a message that ten requests carried counts ten times: `messages`, `non_ascii`
    (characters), `dense` (ASCII digits and punctuation), `characters`, `message_bytes`, and
    `resent_bytes`, the part of those that an earlier answered request of the job had carried already.
    """

    tools: Part
    framing: Part
    escapes: Part
    text: Part
    replies: Part
    requests: int
    messages: int
    message_bytes: int
    resent_bytes: int
    characters: int
    non_ascii: int
    dense: int

    @property
    def bytes(self) -> int:
        """All bytes, both directions."""
        return sum(part.bytes for part in (self.tools, self.framing, self.escapes, self.text, self.replies))


def break_down(record: RunRecord) -> Breakdown | None:
    """Return where the run's usage comes from; None when its events do not tell, or tell something else.

    They do not when a user's own tokenizer measured the run, when the run was metered elsewhere, or when it said more
    than `MOST_CHARACTERS`.
    """
    pieces = _Pieces()
    if not pieces.add_all(record.events):
        return None
    usage, found = record.usage, pieces.result()
    if found.bytes != usage.bytes_sent + usage.bytes_received or pieces.tokens != usage.measured_tokens:
        return None
    return found if pieces.label == usage.tokenizer else None


MOST_CHARACTERS: Final = 1_000_000
"""Characters of a run's messages that are measured again, part by part: of more only the totals are told."""


class _Size(NamedTuple):
    """One message, or the sum of a conversation up to and including one."""

    bytes: int = 0
    tokens: int = 0
    escapes: int = 0
    text_bytes: int = 0
    text_tokens: int = 0
    characters: int = 0
    non_ascii: int = 0
    dense: int = 0

    def plus(self, other: _Size) -> _Size:
        """Return both together."""
        return _Size(*(mine + its for mine, its in zip(self, other, strict=True)))


_NOTHING: Final = _Size()


def _size_of(message: Message, model: ModelTokenizer) -> _Size:
    """Measure one message."""
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    escapes, non_ascii = _escapes(json.dumps(dict(message), ensure_ascii=False))
    return _Size(
        bytes=message_size(message),
        tokens=message_tokens(message, model.tokenizer),
        escapes=escapes,
        text_bytes=len(text.encode("utf-8", "surrogatepass")),
        text_tokens=model.tokenizer.count(text) if text else 0,
        characters=len(text),
        non_ascii=non_ascii,
        dense=len(_DENSE.findall(text)),
    )


def _escapes(text: str) -> tuple[int, int]:
    r"""Return what `\uXXXX` escapes take beyond UTF-8, in bytes, and how many characters they stand for."""
    if text.isascii():
        return 0, 0
    ascii_only = len(text.encode("ascii", "ignore"))
    utf8 = len(text.encode("utf-8", "surrogatepass")) - ascii_only
    # One escape of 6 bytes per UTF-16 code unit: two for an emoji.
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2 - ascii_only
    return 6 * units - utf8, len(text) - ascii_only


@dataclass(slots=True)
class _Conversation:
    """One job's messages as the trace tells them: running sums, and how many of them were paid for before."""

    model: ModelTokenizer
    sums: list[_Size] = field(default_factory=list)
    paid: int = 0

    def follow(self, request: LLMRequested) -> None:
        """Keep what the request kept, add what it added."""
        del self.sums[request.kept :]
        self.paid = min(self.paid, request.kept)
        for message in request.new:
            self.sums.append(self.upto(len(self.sums)).plus(_size_of(message, self.model)))

    def upto(self, length: int) -> _Size:
        """Return the sum of the first `length` messages."""
        return self.sums[length - 1] if length else _NOTHING


class _Pieces:
    """A breakdown in the making."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Conversation] = {}
        self._asked: dict[str, LLMRequested] = {}
        self._labels: set[str] = set()
        self._sent = _NOTHING
        self._requests = self._messages = self._resent = 0
        self._tools_bytes = self._tools_tokens = 0
        self._base_bytes = self._characters = 0
        self._received = self._completion = 0

    @property
    def tokens(self) -> int:
        """All tokens of the parts."""
        return self._sent.tokens + self._tools_tokens + REPLY_PRIMING * self._requests + self._completion

    @property
    def label(self) -> str:
        """The tokenizers' labels, in the form of `UsageTotals.tokenizer`."""
        return " + ".join(sorted(self._labels))

    def add_all(self, events: Iterable[Event]) -> bool:
        """Follow a run's events; False when they contradict each other."""
        for event in events:
            if isinstance(event, LLMRequested):
                fits = self._ask(event)
            else:
                fits = not isinstance(event, LLMReplied) or self._answer(event)
            if not fits:
                return False
        return self._requests > 0

    def _ask(self, request: LLMRequested) -> bool:
        """Follow one request; False when it keeps messages that are not there, measured as its model would."""
        model = tokenizer_for_model(request.model)
        job = self._jobs.get(request.job)
        if job is None or (job.model.label != model.label and not request.kept):
            job = self._jobs[request.job] = _Conversation(model)
        if job.model.label != model.label or request.kept > len(job.sums):
            return False
        self._characters += sum(len(str(message.get("content"))) for message in request.new)
        if self._characters > MOST_CHARACTERS:
            return False
        job.follow(request)
        self._asked[request.job] = request
        return True

    def _answer(self, reply: LLMReplied) -> bool:
        """Add one answered call; False when it does not fit its request."""
        request, job = self._asked.get(reply.job), self._jobs.get(reply.job)
        if request is None or job is None or request.turn != reply.turn:
            return False
        length = len(job.sums)
        sent = job.upto(length)
        base = body_size(envelope_size(request.model), sent.bytes, length) - sent.bytes
        tools_bytes = request.bytes_sent - base - sent.bytes
        tools_tokens = reply.measured_prompt - sent.tokens - REPLY_PRIMING
        if tools_bytes < 0 or tools_tokens < 0:
            return False
        if tools_bytes < _SMALLEST_TOOLS:
            if tools_tokens:
                return False
            base, tools_bytes = base + tools_bytes, 0
        self._labels.add(job.model.label)
        self._requests += 1
        self._messages += length
        self._sent = self._sent.plus(sent)
        self._resent += job.upto(job.paid).bytes
        self._base_bytes += base
        self._tools_bytes += tools_bytes
        self._tools_tokens += tools_tokens
        self._received += reply.bytes_received
        self._completion += reply.measured_completion
        job.paid = length
        return True

    def result(self) -> Breakdown:
        """Return the parts."""
        sent = self._sent
        frame_bytes = self._base_bytes + sent.bytes - sent.escapes - sent.text_bytes
        frame_tokens = REPLY_PRIMING * self._requests + sent.tokens - sent.text_tokens
        return Breakdown(
            tools=Part(self._tools_bytes, self._tools_tokens),
            framing=Part(frame_bytes, frame_tokens),
            escapes=Part(sent.escapes, 0),
            text=Part(sent.text_bytes, sent.text_tokens),
            replies=Part(self._received, self._completion),
            requests=self._requests,
            messages=self._messages,
            message_bytes=sent.bytes,
            resent_bytes=self._resent,
            characters=sent.characters,
            non_ascii=sent.non_ascii,
            dense=sent.dense,
        )


_WORTH_NAMING: Final = 0.15
"""Share of the difference from which a cause is named."""

_CAUSES: Final = 3
"""Causes named at most."""

_WORTH_COUNTERING: Final = 0.25
"""Share of the difference from which the largest cause in the other direction is named."""

_MOSTLY_RESENT: Final = 0.5
"""Share of message bytes from which the repeated history is mentioned."""

_DENSE_SHARE: Final = 0.3
"""Share of digits and punctuation from which a text is called dense."""


class Reason(NamedTuple):
    """Why an estimate is off: the name of the largest cause, and one sentence."""

    cause: str
    sentence: str


class _Cause(NamedTuple):
    """Something that makes the estimate too high (positive tokens) or too low."""

    name: str
    tokens: float
    words: str


def reason(record: RunRecord) -> Reason:
    """Return what makes the difference between estimate and tokenizer; needs usage of both kinds.

    Signed numbers in the sentence are tokens that a part of the requests and replies adds to the estimate
    beyond what the tokenizer counts in it.
    """
    usage = record.usage
    parts = break_down(record)
    gap = usage.approx_tokens - usage.measured_tokens
    sign = 1 if gap >= 0 else -1
    causes = sorted(
        _coarse(usage) if parts is None else _fine(parts),
        key=lambda cause: (-sign * cause.tokens, cause.name),
    )
    sentence = _difference(causes, gap, sign)
    return Reason(causes[0].name, f"{sentence}{'' if parts is None else _history(parts)}.")


def _difference(ranked: list[_Cause], gap: int, sign: int) -> str:
    """Name the largest causes of the gap, and what works against them."""
    named = [cause for cause in ranked[:_CAUSES] if sign * cause.tokens > max(_WORTH_NAMING * abs(gap), 0.5)]
    if not named:
        return "no part of it stands out"
    sentence = ", ".join(f"{signed(cause.tokens)} from {cause.words}" for cause in named)
    against = ranked[-1]
    if -sign * against.tokens > max(_WORTH_COUNTERING * abs(gap), 0.5):
        sentence += f", against {signed(against.tokens)} from {against.words}"
    return sentence


def _fine(parts: Breakdown) -> list[_Cause]:
    """Return the causes that a breakdown shows."""
    tools, replies = parts.tools, parts.replies
    return [
        _Cause("tools", tools.excess, f"tool definitions ({share(tools.bytes, parts.bytes)} of the bytes)"),
        _Cause(
            "escapes",
            parts.escapes.excess,
            f"{plural(parts.non_ascii, 'non-ASCII character')} sent as \\uXXXX",
        ),
        _Cause("framing", parts.framing.excess, f"the JSON around {plural(parts.messages, 'sent message')}"),
        _Cause("text", parts.text.excess, _text(parts)),
        _Cause("replies", replies.excess, _bodies("reply bodies", replies.bytes, replies.tokens)),
    ]


def _text(parts: Breakdown) -> str:
    """Describe the messages' texts by what makes their tokens long or short."""
    words = f"texts of {parts.text.bytes / max(parts.text.tokens, 1):.1f} bytes per token"
    if parts.text.excess < 0 and parts.dense >= _DENSE_SHARE * max(parts.characters, 1):
        words += f", {share(parts.dense, parts.characters)} digits and punctuation"
    return words


def _history(parts: Breakdown) -> str:
    """Say how much of the conversation was sent again; both columns count it, so it changes sizes, not ratios."""
    if parts.requests < 2 or parts.resent_bytes < _MOSTLY_RESENT * parts.message_bytes:
        return ""
    again = share(parts.resent_bytes, parts.message_bytes)
    return f"; {again} of the message bytes are history sent again in {count(parts.requests)} requests"


def _coarse(usage: UsageRecord) -> list[_Cause]:
    """Return what totals alone show: requests against replies."""
    sent = Part(usage.bytes_sent, usage.measured_prompt)
    received = Part(usage.bytes_received, usage.measured_completion)
    return [
        _Cause("requests", sent.excess, _bodies("requests", sent.bytes, sent.tokens)),
        _Cause("replies", received.excess, _bodies("reply bodies", received.bytes, received.tokens)),
    ]


def _bodies(what: str, size: int, tokens: int) -> str:
    return f"{plural(size, 'byte')} of {what} for {plural(tokens, 'token')}"
