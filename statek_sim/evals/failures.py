"""The failure classes of a simulated model, and the class of each recorded reply that went wrong.

The classes are ToolScan's seven (wrong value, name or type of an argument, a missing or repeated call, a wrong tool,
too few calls, a malformed reply), with what small models do in loops and long contexts beside them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from statek_sim.agent.reliability import rescued
from statek_sim.agent.replies.reading import ModelReply
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.errors import BadTool
from statek_sim.evals.prompt_calls import call_key, is_corrected, shown_calls
from statek_sim.values import JSON, Message, ToolSpec


class FailureClass(StrEnum):
    """One way to be wrong."""

    MALFORMED = "malformed"
    WRONG_TOOL = "wrong_tool"
    MISSING_ARGUMENT = "missing_argument"
    WRONG_ARGUMENT = "wrong_argument"
    SKIPPED_STEP = "skipped_step"
    REPEATED_CALL = "repeated_call"
    EARLY_ANSWER = "early_answer"
    LOOP = "loop"
    CONTEXT_LOSS = "context_loss"


MEANINGS: Final = {
    FailureClass.MALFORMED: "the call is meant and written so that a server's own parser does not read it",
    FailureClass.WRONG_TOOL: "another tool than the right one is called, sometimes one that does not exist",
    FailureClass.MISSING_ARGUMENT: "a required argument is left out or goes by another name",
    FailureClass.WRONG_ARGUMENT: "an argument, or what the final answer cites, has another value than results gave",
    FailureClass.SKIPPED_STEP: "a required step is left out, and the one after it is taken",
    FailureClass.REPEATED_CALL: "a call that was answered is made again",
    FailureClass.EARLY_ANSWER: "prose comes where a call is due: a plan, or an answer made up",
    FailureClass.LOOP: "the same call is made again and again until something breaks the loop",
    FailureClass.CONTEXT_LOSS: "in a long prompt, results at its beginning are no longer heeded",
}
"""What each class is, in a sentence."""

ORDER: Final = (
    FailureClass.CONTEXT_LOSS,
    FailureClass.LOOP,
    FailureClass.EARLY_ANSWER,
    FailureClass.MALFORMED,
    FailureClass.REPEATED_CALL,
    FailureClass.SKIPPED_STEP,
    FailureClass.WRONG_TOOL,
    FailureClass.MISSING_ARGUMENT,
    FailureClass.WRONG_ARGUMENT,
)
"""In this order classes are asked whether they act on a turn: first whether there will be a readable call at all."""


_TWICE: Final = 2


@dataclass(frozen=True, slots=True)
class Act:
    """What a model did on a turn: a failure or none, and whether it was corrected before, and heeded that."""

    turn: int
    place: str
    failure: FailureClass | None
    corrected: bool
    heeded: bool
    how: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One answered request for a tool-calling agent, on the turn of this number."""

    number: int
    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    reply: ModelReply


def acts_of(turns: Sequence[RecordedTurn]) -> list[Act]:
    """Return how each turn of one run went; nothing on a turn that offered no tools.

    A recording shows what a reply was like, not what would have been right: a wrong value that fits the schema, a
    skipped step and a forgotten result are not found.
    """
    corrected = [is_corrected(turn.messages) for turn in turns]
    return [
        _act(turn, corrected=before and bool(turn.tools), corrected_after=after)
        for turn, before, after in zip(turns, corrected, [*corrected[1:], False], strict=False)
    ]


def _act(turn: RecordedTurn, *, corrected: bool, corrected_after: bool) -> Act:
    failure = _failure(turn, corrected_after=corrected_after) if turn.tools else None
    return Act(turn.number, "", failure, corrected, corrected and failure is None)


def _failure(turn: RecordedTurn, *, corrected_after: bool) -> FailureClass | None:
    schemas = {name: parameters for name, parameters in map(_function, turn.tools) if name}
    if not turn.reply.calls:
        reading = rescued(turn.reply.text, schemas)
        if reading.calls or reading.refused is not None:
            return FailureClass.MALFORMED
        return FailureClass.EARLY_ANSWER if corrected_after else None
    answered = [
        call_key(call.name, call.arguments) for call in shown_calls(turn.messages) if call.error is None
    ]
    for call in turn.reply.calls:
        arguments = _parsed(call.arguments)
        if arguments is None:
            return FailureClass.MALFORMED
        wrong = _wrong(call.name, arguments, schemas) or _again(call_key(call.name, arguments), answered)
        if wrong is not None:
            return wrong
    return None


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
