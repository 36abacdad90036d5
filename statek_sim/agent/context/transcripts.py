"""Conversations to try context strategies on: read from JSON Lines, with facts planted in them to look for later.

A line is `{"id", "messages"}`, messages in OpenAI's shape; `needles` may name texts that are in it, by place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from statek_sim.agent.context.units import texts_of
from statek_sim.agent.context.wire_check import wire_faults
from statek_sim.errors import BadInput
from statek_sim.values import JSON, Message

Place = Literal[
    "system", "task", "user", "result head", "result middle", "result end", "arguments", "said", "given"
]
"""Where a needle is; `given`: the file named it."""

PLACES: Final[tuple[Place, ...]] = (
    "system",
    "task",
    "user",
    "result head",
    "result middle",
    "result end",
    "arguments",
    "said",
)
"""Where needles are planted: prompt and task, later words of the user, results, arguments, words of the model."""

_RESULTS: Final[tuple[Place, ...]] = ("result head", "result middle", "result end")
_THIRDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Needle:
    """A fact: its text, its place, and the message that holds it."""

    text: str
    place: Place
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A whole conversation, and the needles in it."""

    id: str
    messages: tuple[Message, ...]
    needles: tuple[Needle, ...] = ()


def read_talks(text: str, where: str) -> list[Talk]:
    """Return the conversations of a JSON Lines text; `BadInput` begins with `where:line`."""
    found = [_talk(place, name, messages, given) for place, name, messages, given in _parsed(text, where)]
    if not found:
        raise BadInput(f'{where}: no conversation, expected lines {{"id", "messages"}}')
    return found


def lines_of(text: str, where: str) -> Iterator[tuple[str, str, tuple[Message, ...]]]:
    """Yield place, name and messages of each conversation, whether or not a provider would take it."""
    for place, name, messages, _ in _parsed(text, where):
        yield place, name, messages


def _parsed(text: str, where: str) -> Iterator[tuple[str, str, tuple[Message, ...], dict[str, JSON]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{where}:{number}"
        try:
            given: JSON = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{place}: not JSON: {error}") from None
        messages = given.get("messages") if isinstance(given, dict) else None
        if not isinstance(given, dict) or not isinstance(messages, list) or not messages:
            raise BadInput(f'{place}: expected an object with "messages", a list with one message at least')
        objects = tuple(message for message in messages if isinstance(message, dict))
        if len(objects) < len(messages):
            raise BadInput(f"{place}: messages: expected objects with a role and a content")
        yield place, str(given.get("id", number)), objects, given


def _talk(place: str, name: str, messages: tuple[Message, ...], given: dict[str, JSON]) -> Talk:
    faults = wire_faults(messages, "openai")
    if faults:
        raise BadInput(f"{place}: OpenAI would refuse this conversation: {faults[0].sentence}")
    talk = Talk(id=name, messages=messages)
    return replace(talk, needles=tuple(_given(talk, given.get("needles") or [], place)))


def _given(talk: Talk, needles: JSON, where: str) -> Iterator[Needle]:
    if not isinstance(needles, list) or not all(isinstance(text, str) and text for text in needles):
        raise BadInput(f"{where}: needles: expected a list of texts")
    for text in map(str, needles):
        at = next(
            (
                at
                for at, message in enumerate(talk.messages)
                if any(text in part_text for part_text in texts_of(message))
            ),
            None,
        )
        if at is None:
            raise BadInput(f"{where}: needles: no message says {text!r}")
        yield Needle(text=text, place="given", at=at)


# -- planting ----------------------------------------------------------------------------------------------------


def planted(talk: Talk) -> Talk:
    """Return the conversation with a needle in each place that it has; those of the later places in each third of it.

    A conversation without a system prompt gets one. Nothing else of it changes.
    """
    messages = list(talk.messages)
    if messages[0].get("role") != "system":
        messages.insert(0, {"role": "system", "content": "You work with tools."})
    spots = list(_spots(messages))
    needles: list[Needle] = [
        replace(needle, at=needle.at + len(messages) - len(talk.messages)) for needle in talk.needles
    ]
    for number, (place, at) in enumerate(spots, 1):
        text = f"KEY-{number:02d}-{sum(map(ord, talk.id + place)) % 9000 + 1000}"
        messages[at] = _with(messages[at], place, text)
        needles.append(Needle(text=text, place=place, at=at))
    return Talk(id=talk.id, messages=tuple(messages), needles=tuple(needles))


def _spots(messages: Sequence[Message]) -> Iterator[tuple[Place, int]]:
    """Yield where needles go, each message at most once for each place."""
    users = [at for at, message in enumerate(messages) if message.get("role") == "user"]
    yield "system", 0
    if users:
        yield "task", users[0]
    taken: set[int] = set()
    for third in range(_THIRDS):
        low, high = len(messages) * third // _THIRDS, len(messages) * (third + 1) // _THIRDS
        inside = range(low, high)
        later = next((at for at in inside if at in users[1:]), None)
        if later is not None:
            yield "user", later
        for place in _RESULTS:
            at = next((at for at in inside if at not in taken and messages[at].get("role") == "tool"), None)
            if at is not None:
                taken.add(at)
                yield place, at
        calling = next((at for at in inside if messages[at].get("tool_calls")), None)
        if calling is not None:
            yield "arguments", calling
        saying = next((at for at in inside if messages[at].get("role") == "assistant"), None)
        if saying is not None:
            yield "said", saying


def _with(message: Message, place: Place, text: str) -> Message:
    """Return a message that holds a needle."""
    content = message.get("content")
    before = content if isinstance(content, str) else ""
    if place == "arguments":
        return _with_argument(message, text)
    if place == "result head":
        return {**message, "content": f"{text} {before}"}
    if place == "result middle":
        half = len(before) // 2
        return {**message, "content": f"{before[:half]} {text} {before[half:]}"}
    return {**message, "content": f"{before} Remember {text}.".strip()}


def _with_argument(message: Message, text: str) -> Message:
    calls = message.get("tool_calls")
    assert isinstance(calls, list), "it was chosen for its calls"
    first, *rest = calls
    function = first.get("function") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(function, dict):
        return message
    try:
        arguments = json.loads(str(function.get("arguments")))
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return message
    named = {**function, "arguments": json.dumps({**arguments, "reference": text}, ensure_ascii=False)}
    return {**message, "tool_calls": [{**first, "function": named}, *rest]}
