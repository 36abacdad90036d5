"""Checks whether a provider would accept a history, according to the rules of four wire formats.

Sources: OpenAI's error messages ("messages with role 'tool' must be a response to a preceeding message with
'tool_calls'"), Anthropic's ("`tool_use` ids were found without `tool_result` blocks immediately after"), Gemini's
("function call turn comes immediately after a user turn or after a function response turn"; a request ends with a user
or a function), Mistral's chat template for `alternating`, and, for what is not sent, this package's own clients.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Final

from statek_sim.agent.context.history import call_ids
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import JSON, Message

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_STRICT: Final[frozenset[FormatName]] = frozenset(("anthropic", "gemini"))
"""Formats where arguments are objects, only the first message may be from the system, and the user begins."""


class WireRule(StrEnum):
    """Wire format rules that a history can break."""

    ORPHAN = "a result without its call"
    UNANSWERED = "a call without its result"
    TWICE = "a call answered twice, or an id used twice"
    EMPTY = "empty content"
    ROLE = "an unknown role"
    ARGUMENTS = "arguments that are not an object"
    LATE_SYSTEM = "a system message that is left out"
    NOT_USER_FIRST = "a first message that is not the user's"
    NOTHING = "no messages besides system messages"
    ENDS_WITH_MODEL = "a last message that is the model's"
    CALL_AFTER_MODEL = "a call after a message from the model"
    NOT_ALTERNATING = "roles that do not alternate"


@dataclass(frozen=True, slots=True)
class WireFault:
    """A broken rule: its name, its position in the history, and a description."""

    rule: WireRule
    at: int
    sentence: str


def wire_faults(
    messages: Sequence[Message], wire: FormatName, *, alternating: bool = False
) -> list[WireFault]:
    """Return a history's faults, in order: what a provider with this format would reject or never receive.

    `alternating`: user and model messages must alternate, as the chat templates of many open models require; turns with
    calls and their results do not count.
    """
    found = [*_pairs(messages), *_contents(messages, wire), *_order(messages, wire)]
    if alternating:
        found += _turns(messages)
    return sorted(found, key=lambda fault: fault.at)


# -- calls and results -------------------------------------------------------------------------------------------


def _pairs(messages: Sequence[Message]) -> Iterator[WireFault]:
    """Yield the faults in calls and results: each call must have one result, directly after its turn."""
    open_: list[JSON] = []
    answered: list[JSON] = []
    turn = 0
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            answer = message.get("tool_call_id")
            if answer in open_:
                open_.remove(answer)
                answered.append(answer)
            elif answer in answered:
                yield WireFault(WireRule.TWICE, at, f"message {at} answers the call {answer!r} a second time")
            else:
                problem = (
                    f"message {at} is the result of {answer!r}, but no call with that id is right before it"
                )
                yield WireFault(WireRule.ORPHAN, at, problem)
            continue
        yield from _unanswered(open_, turn)
        turn, open_, answered = at, call_ids(message), []
        if len(set(map(str, open_))) < len(open_):
            yield WireFault(WireRule.TWICE, at, f"message {at} uses an id for two calls: {open_!r}")
    yield from _unanswered(open_, turn)


def _unanswered(open_: Sequence[JSON], turn: int) -> Iterator[WireFault]:
    for call in open_:
        yield WireFault(WireRule.UNANSWERED, turn, f"message {turn} calls {call!r}, but no result follows")


# -- contents ----------------------------------------------------------------------------------------------------


def _contents(messages: Sequence[Message], wire: FormatName) -> Iterator[WireFault]:
    for at, message in enumerate(messages):
        role = message.get("role")
        if role not in _ROLES:
            yield WireFault(
                WireRule.ROLE, at, f"message {at} has the role {role!r}, expected {', '.join(_ROLES)}"
            )
        elif _is_empty(message):
            yield WireFault(WireRule.EMPTY, at, f"message {at}, with the role {role!r}, is empty")
        if wire in _STRICT and not all(map(_is_object, _arguments(message))):
            problem = f"message {at} has arguments that are not a JSON object, which {wire} cannot express"
            yield WireFault(WireRule.ARGUMENTS, at, problem)


def _is_empty(message: Message) -> bool:
    """Return whether a message is empty. A tool result may be an empty string but must exist."""
    content = message.get("content")
    if message.get("role") == "tool":
        return content is None
    if message.get("role") == "assistant" and message.get("tool_calls"):
        return False
    if isinstance(content, str):
        return not content.strip()
    return not content


def _arguments(message: Message) -> Iterator[JSON]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        yield function.get("arguments") if isinstance(function, dict) else None


def _is_object(arguments: JSON) -> bool:
    try:
        return isinstance(json.loads(str(arguments)), dict)
    except (ValueError, RecursionError):
        return False


# -- order -------------------------------------------------------------------------------------------------------


def _order(messages: Sequence[Message], wire: FormatName) -> Iterator[WireFault]:
    roles = [(at, str(message.get("role"))) for at, message in enumerate(messages)]
    spoken = [(at, role) for at, role in roles if role not in ("system", "developer")]
    if not spoken:
        yield WireFault(WireRule.NOTHING, 0, "there are only system messages")
        return
    if wire in _STRICT:
        for at, role in roles[1:]:
            if role in ("system", "developer"):
                text = f"message {at} is a system message but not the first one, which {wire} cannot express"
                yield WireFault(WireRule.LATE_SYSTEM, at, text)
    at, role = spoken[0]
    if wire in _STRICT and role != "user":
        yield WireFault(
            WireRule.NOT_USER_FIRST, at, f"message {at}, the first, has the role {role!r}, expected 'user'"
        )
    if wire == "gemini":
        yield from _gemini(messages, spoken)


def _gemini(messages: Sequence[Message], spoken: Sequence[tuple[int, str]]) -> Iterator[WireFault]:
    for (_, before), (at, role) in pairwise(spoken):
        if role == before == "assistant" and call_ids(messages[at]):
            text = f"message {at} calls a tool right after another message from the model"
            yield WireFault(WireRule.CALL_AFTER_MODEL, at, text)
    if spoken[-1][1] == "assistant":
        at = spoken[-1][0]
        yield WireFault(
            WireRule.ENDS_WITH_MODEL,
            at,
            f"message {at}, the last, is the model's, so there is nothing to answer",
        )


def _turns(messages: Sequence[Message]) -> Iterator[WireFault]:
    expected = "user"
    for at, message in enumerate(messages):
        role = message.get("role")
        if role in ("system", "developer", "tool") or message.get("tool_calls"):
            continue
        if role != expected:
            text = f"message {at} has the role {role!r}, expected {expected!r}"
            yield WireFault(WireRule.NOT_ALTERNATING, at, text)
            return
        expected = "assistant" if role == "user" else "user"
