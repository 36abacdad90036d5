r"""From STATEK's estimate to the tokens a model sees, step by step, in whole tokens that add up.

Each level is a count of its own, of all answered calls of a job or a scenario: bytes that still count a quarter of a
token each (one floor division, of their sum, as STATEK takes it), plus tokens of the parts that already count as
what the model sees. A step is the difference of two neighbours. So the steps add up exactly, whatever the rounding.

    level      bytes // 4                                        + tokens
    once       everything, but each message only the first time
    estimate   everything: what the harness counts
    unescaped  the same bodies in UTF-8, without \uXXXX
    framed     without the JSON around the texts of requests     + the chat format's frame
    tooled     texts of requests, whole reply bodies             + tool definitions
    bare       texts of requests and replies                     + the frame of tool calls in replies
    measured                                                     all that the tokenizer counts
"""

from __future__ import annotations

from typing import Final, NamedTuple

from statek_sim.usage.totals import BYTES_PER_TOKEN, approx_tokens

STEPS: Final = ("history", "escaping", "envelope", "tools", "response", "density")
"""The steps by name, in their order; `history` leads to the estimate, the others away from it."""

MEANINGS: Final = {
    "history": "messages that an earlier request of the job already carried, sent again",
    "escaping": r"\uXXXX in place of UTF-8, six bytes for a character or twelve for an emoji",
    "envelope": "the JSON around the texts of requests, against the chat format that the model sees",
    "tools": "tool definitions: a quarter token per byte of JSON schema, against what they take in a prompt",
    "response": "the response body around the model's words: ids, usage, quotes",
    "density": "the words themselves: a quarter token per byte of UTF-8, against the tokenizer",
}
"""What each step is, in one line."""


class CallParts(NamedTuple):
    """The parts of answered calls, of one or of many added up. Sizes are bytes; see `parts` for what they hold.

    `history_bytes` are messages an earlier answered request of the job carried, as STATEK meters them, with
    separators. `tools_bytes` are tool definitions without their escapes. `escape_bytes` are those of messages and
    tool definitions. `frame_tokens` and `call_tokens`: what the chat format adds in prompts and in replies.
    """

    bytes_sent: int = 0
    bytes_received: int = 0
    history_bytes: int = 0
    escape_bytes: int = 0
    tools_bytes: int = 0
    text_bytes: int = 0
    reply_bytes: int = 0
    frame_tokens: int = 0
    tools_tokens: int = 0
    call_tokens: int = 0
    measured_tokens: int = 0

    def plus(self, other: CallParts) -> CallParts:
        """Return both together."""
        return CallParts(*(mine + its for mine, its in zip(self, other, strict=True)))


class Waterfall(NamedTuple):
    """The steps in tokens: `once + history` is STATEK's estimate, all of them together the measured tokens."""

    once: int = 0
    history: int = 0
    escaping: int = 0
    envelope: int = 0
    tools: int = 0
    response: int = 0
    density: int = 0

    @property
    def estimate(self) -> int:
        """What STATEK's harness counts."""
        return self.once + self.history

    @property
    def measured(self) -> int:
        """What the tokenizer counts."""
        return sum(self)

    def plus(self, other: Waterfall) -> Waterfall:
        """Return both together: steps are whole tokens, so those of a suite are the sums of its scenarios'."""
        return Waterfall(*(mine + its for mine, its in zip(self, other, strict=True)))


def waterfall(parts: CallParts) -> Waterfall:
    """Return the steps from what was said once to what the tokenizer counted."""
    sent, received = parts.bytes_sent, parts.bytes_received
    texts = parts.text_bytes + parts.reply_bytes
    once = (sent + received - parts.history_bytes) // BYTES_PER_TOKEN
    estimate = approx_tokens(sent, received)
    unescaped = (sent + received - parts.escape_bytes) // BYTES_PER_TOKEN
    framed = (parts.tools_bytes + parts.text_bytes + received) // BYTES_PER_TOKEN + parts.frame_tokens
    seen = parts.frame_tokens + parts.tools_tokens
    tooled = (parts.text_bytes + received) // BYTES_PER_TOKEN + seen
    bare = texts // BYTES_PER_TOKEN + seen + parts.call_tokens
    return Waterfall(
        once=once,
        history=estimate - once,
        escaping=unescaped - estimate,
        envelope=framed - unescaped,
        tools=tooled - framed,
        response=bare - tooled,
        density=parts.measured_tokens - bare,
    )
