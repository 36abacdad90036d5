"""Classify what went wrong in the recorded replies of a run, as far as a recording shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.agent.reliability import rescued
from statek_sim.agent.replies.reading import ModelReply
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.errors import BadTool
from statek_sim.evals.models.failures import FailureClass
from statek_sim.evals.models.shown import call_key, is_corrected, shown_calls
from statek_sim.values import JSON, Message, ToolSpec

_TWICE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTurn:
    """One answered request for a tool-calling agent."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec]
    reply: ModelReply


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedTurn:
    """What was wrong with a turn, None for nothing, and whether the model was corrected right before it."""

    failure: FailureClass | None
    corrected: bool


def classified(turns: Sequence[RecordedTurn]) -> list[ClassifiedTurn]:
    """Return what was wrong with each turn of one run.

    A recording shows what a reply was like, not what would have been right: a wrong value that fits the schema, a
    skipped step and a forgotten result are not found. Turns without tools have no failure.
    """
    corrected = [is_corrected(turn.messages) for turn in turns]
    return [
        ClassifiedTurn(
            failure=_failure(turn, corrected_after=after) if turn.tools else None, corrected=before
        )
        for turn, before, after in zip(turns, corrected, [*corrected[1:], False], strict=False)
    ]


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
