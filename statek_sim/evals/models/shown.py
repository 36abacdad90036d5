"""What a prompt still shows of the calls that were made: read from its messages, never from a counter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.nudges import PREFIX
from statek_sim.providers.wire.request import text_in
from statek_sim.values import JSON, Message

_ERROR: Final = re.compile(r"(?:Error: |\w*(?:Error|Exception)(?:: |$))")
_CLEARED: Final = re.compile(r"\[cleared: a result of \d+ tokens\]")


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call as a prompt shows it. `result` None and `error` None: what it gave is no longer shown."""

    name: str
    arguments: Mapping[str, JSON]
    result: str | None
    error: str | None

    @property
    def answered(self) -> bool:
        """Whether it was executed and did not fail."""
        return self.error is None

    @property
    def key(self) -> str:
        """Equal for equal calls."""
        return call_key(self.name, self.arguments)


def call_key(name: str, arguments: Mapping[str, JSON]) -> str:
    """Return a text that is equal for equal calls, whatever the order of their arguments."""
    return f"{name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


def shown_calls(messages: Sequence[Message]) -> list[ShownCall]:
    """Return the calls of a prompt in their order; one without a result there is left out."""
    results = {
        str(message.get("tool_call_id")): text_in(message.get("content"))
        for message in messages
        if message.get("role") == "tool"
    }
    return [_shown(name, text, results[id_]) for id_, name, text in _written(messages) if id_ in results]


def _written(messages: Sequence[Message]) -> Iterator[tuple[str, str, str]]:
    for message in messages:
        written = message.get("tool_calls")
        if isinstance(written, list):
            for call in written:
                function = call["function"]
                yield str(call["id"]), str(function["name"]), str(function["arguments"])


def _shown(name: str, text: str, result: str) -> ShownCall:
    if _CLEARED.fullmatch(result):
        return ShownCall(name, _arguments(text), None, None)
    if _ERROR.match(result):
        return ShownCall(name, _arguments(text), None, result.partition(": ")[2] or result)
    return ShownCall(name, _arguments(text), result, None)


def _arguments(text: str) -> Mapping[str, JSON]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def is_corrected(messages: Sequence[Message]) -> bool:
    """Return whether the last thing a prompt says is a correction of the model."""
    last = messages[-1] if messages else {}
    return last.get("role") == "user" and text_in(last.get("content")).startswith(PREFIX)
