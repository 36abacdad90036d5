"""What went wrong in a recorded reply, as far as a recording shows it; and who went on with which conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from statek_sim.agent.reliability import rescued
from statek_sim.agent.replies.nudges import PREFIX
from statek_sim.agent.replies.reading import ModelReply
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.errors import BadTool
from statek_sim.evals.models.failures import FailureClass
from statek_sim.evals.models.shown import call_key, is_corrected, shown_calls
from statek_sim.providers.wire.request import text_in
from statek_sim.values import JSON, Message, ToolSpec

SEEN: Final = (
    FailureClass.MALFORMED,
    FailureClass.WRONG_TOOL,
    FailureClass.MISSING_ARGUMENT,
    FailureClass.WRONG_ARGUMENT,
    FailureClass.REPEATED_CALL,
    FailureClass.LOOP,
    FailureClass.EARLY_ANSWER,
)
"""Classes that recordings show: wrong tools that were not offered, and wrong arguments of a wrong shape, among them."""

_TWICE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One answered request for a tool-calling agent."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    reply: ModelReply


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticedTurn:
    """A turn with what was wrong with it. `task` is equal for turns that work on the same task.

    `corrected`: the model was corrected right before. `native`: of a malformed call, whether it came as a native one.
    """

    task: str
    failure: FailureClass | None
    corrected: bool
    native: bool


def noticed(turns: Iterable[RecordedTurn]) -> Iterator[NoticedTurn]:
    """Yield the turns that offer tools, in their order, with what was wrong with each."""
    every = [turn for turn in turns if turn.tools]
    corrected = _corrected_after(every)
    for at, turn in enumerate(every):
        failure, native = _failure(turn, corrected=at in corrected)
        yield NoticedTurn(
            task=_task(turn.messages),
            failure=failure,
            corrected=is_corrected(turn.messages),
            native=native,
        )


def _task(messages: Sequence[Message]) -> str:
    """Return what stands for the task: everything up to the first message of the user."""
    first = next((at for at, message in enumerate(messages) if message.get("role") == "user"), 0)
    return _digests(messages[: first + 1])[-1] if messages else ""


def _digests(messages: Sequence[Message]) -> list[str]:
    """Return what stands for the first message, the first two, and so on."""
    found, before = [], b""
    for message in messages:
        text = json.dumps(message, sort_keys=True, ensure_ascii=False)
        before = blake2b(before + text.encode(), digest_size=16).digest()
        found.append(before.hex())
    return found


def _corrected_after(turns: Sequence[RecordedTurn]) -> set[int]:
    """Return the turns after which the conversation went on with a correction."""
    open_: dict[str, int] = {}
    found: set[int] = set()
    for at, turn in enumerate(turns):
        digests = _digests(turn.messages)
        for length in range(len(digests) - 1, 0, -1):
            before = open_.pop(digests[length - 1], None)
            if before is not None:
                if any(_is_correction(message) for message in turn.messages[length:]):
                    found.add(before)
                break
        open_[digests[-1]] = at
    return found


def _is_correction(message: Message) -> bool:
    return message.get("role") == "user" and text_in(message.get("content")).startswith(PREFIX)


def _failure(turn: RecordedTurn, *, corrected: bool) -> tuple[FailureClass | None, bool]:
    schemas = {name: parameters for name, parameters in map(_function, turn.tools) if name}
    if not turn.reply.calls:
        reading = rescued(turn.reply.text, schemas)
        if reading.calls or reading.refused is not None:
            return FailureClass.MALFORMED, False
        return (FailureClass.EARLY_ANSWER if corrected else None), False
    answered = [
        call_key(call.name, call.arguments) for call in shown_calls(turn.messages) if call.error is None
    ]
    for call in turn.reply.calls:
        arguments = _parsed(call.arguments)
        if arguments is None:
            return FailureClass.MALFORMED, True
        wrong = _wrong(call.name, arguments, schemas) or _again(call_key(call.name, arguments), answered)
        if wrong is not None:
            return wrong, False
    return None, False


def _function(tool: ToolSpec) -> tuple[str, Mapping[str, JSON]]:
    member = tool.get("function")
    function = member if isinstance(member, dict) else tool
    parameters = function.get("parameters")
    return str(function.get("name") or ""), parameters if isinstance(parameters, dict) else {"type": "object"}


def _parsed(text: str) -> dict[str, JSON] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _wrong(
    name: str, arguments: dict[str, JSON], schemas: Mapping[str, Mapping[str, JSON]]
) -> FailureClass | None:
    if name not in schemas:
        return FailureClass.WRONG_TOOL
    try:
        checked = ArgumentCheck(name, schemas[name]).check(arguments, coerce=True)
    except BadTool:  # A schema that we cannot read says nothing about arguments.
        return None
    if checked.missing is not None:
        return FailureClass.MISSING_ARGUMENT
    return FailureClass.WRONG_ARGUMENT if checked.problems else None


def _again(key: str, answered: Sequence[str]) -> FailureClass | None:
    if key not in answered:
        return None
    return FailureClass.LOOP if answered[-_TWICE:] == [key] * _TWICE else FailureClass.REPEATED_CALL
