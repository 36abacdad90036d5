"""Follows an eval's plan: the next action depends only on the calls and results in the prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from statek_sim.agent.context.history import NOTE_OPENING
from statek_sim.agent.replies.nudges import PREFIX
from statek_sim.evals.expression import Scope, each, evaluate, filled, resolved
from statek_sim.evals.outcome import Called
from statek_sim.evals.schema import PlanStep, WantedCall
from statek_sim.observed_calls import value_fits
from statek_sim.providers.wire.request import text_in
from statek_sim.scenario.calls import conditions_in
from statek_sim.values import JSON, Message

ERROR: Final = "Error: "
"""The prefix that marks the result of a failed or rejected call."""


def seen_in(messages: Sequence[Message]) -> list[Called]:
    """Return the calls in the messages with their results, in order; a result without a call is left out."""
    seen: list[Called] = []
    open_: dict[str, list[int]] = {}
    for message in messages:
        if message.get("role") == "assistant":
            # Ids are unique only within a reply: some models, and calls parsed from text, reuse them.
            open_ = {}
            for call in _calls(message):
                open_.setdefault(str(call.get("id")), []).append(len(seen))
                seen.append(_seen(call))
        elif message.get("role") == "tool":
            waiting = open_.get(str(message.get("tool_call_id")))
            if waiting:
                at = waiting.pop(0)
                seen[at] = _with_result(seen[at], text_in(message.get("content")))
    return seen


def _calls(message: Message) -> list[Any]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _seen(call: Any) -> Called:
    function = call.get("function") or {}
    name, written = str(function.get("name")), function.get("arguments")
    return (
        _read_call(name, written)
        if isinstance(written, str)
        else Called(name=name, arguments=_object(written))
    )


# The same prompts are read on every turn and in every arm.
@lru_cache(maxsize=4096)
def _read_call(name: str, written: str) -> Called:
    """Return a call given its JSON arguments; invalid JSON gives a call without arguments."""
    try:
        return Called(name=name, arguments=_object(json.loads(written)))
    except ValueError:
        return Called(name=name, arguments={})


def _object(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


_CLEARED: Final = re.compile(r"\[cleared: a result of \d+ tokens\]")
_TYPED: Final = re.compile(r"\w*(?:Error|Exception): ")
_CALL: Final = re.compile(r"- ([\w.-]+)\(")
_GAVE: Final = ") -> "
_SHORTENED: Final = " [...] "
"""The marker in a summary line where the middle of a string was left out."""


def shown_calls(messages: Sequence[Message]) -> list[Called]:
    """Return the calls in a prompt, starting with those in a summary; calls whose results were removed have none."""
    return [_as_read(call) for call in (*noted_calls(messages), *seen_in(messages))]


def _as_read(call: Called) -> Called:
    if call.result is None:
        return call
    if _CLEARED.fullmatch(call.result):
        return replace(call, result=None)
    typed = _TYPED.match(call.result)
    return call if typed is None else replace(call, result=None, error=call.result[typed.end() :])


def call_key(name: str, arguments: Mapping[str, JSON]) -> str:
    """Return a string that is identical for equal calls, regardless of argument order."""
    return f"{name} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


def is_corrected(messages: Sequence[Message]) -> bool:
    """Return whether a prompt ends with a correction.

    A correction is a nudge from the built-in agent, or any message with the role `user` that another harness sends
    after a reply.
    """
    last = messages[-1] if messages else {}
    if last.get("role") != "user":
        return False
    after_reply = len(messages) > 1 and messages[-2].get("role") == "assistant"
    return after_reply or text_in(last.get("content")).startswith(PREFIX)


def noted_calls(messages: Sequence[Message]) -> Iterator[Called]:
    """Yield the calls listed in a prompt's summaries. A shortened call is left out; a shortened result is unknown."""
    for message in messages:
        text = text_in(message.get("content")) if message.get("role") in ("user", "system") else ""
        if text.startswith(NOTE_OPENING):
            yield from (call for line in text.splitlines()[1:] if (call := _noted_call(line)) is not None)


def _noted_call(line: str) -> Called | None:
    opening = _CALL.match(line)
    if opening is None:
        return None
    try:
        arguments, end = json.JSONDecoder().raw_decode(line, opening.end())
    except ValueError:
        return None
    if not isinstance(arguments, dict) or not line.startswith(_GAVE, end) or _SHORTENED in line[:end]:
        return None
    gave = line[end + len(_GAVE) :]
    call = Called(name=opening[1], arguments=arguments)
    return _with_result(call, gave, whole=bool(gave) and _SHORTENED not in gave)


def _with_result(call: Called, gave: str, *, whole: bool = True) -> Called:
    if gave.startswith(ERROR):
        return replace(call, error=gave.removeprefix(ERROR))
    return replace(call, result=gave if whole else None)


MOST_REPEATS: Final = 50
"""The maximum number of calls in a `while`."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """The call that a model should make next, according to the plan."""

    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Plan:
    """A task's plan. `scope` contains the values mentioned in the task's text; `next` never changes it."""

    steps: tuple[PlanStep, ...]
    scope: Scope

    def next(self, seen: Sequence[Called]) -> tuple[PlannedCall, ...] | str:
        """Return the next calls, several together if the plan allows it, or the final answer.

        A call shown with its result is done. A failed call is repeated unless the plan has an alternative; a call whose
        result is needed but no longer shown is repeated too. Raises `Unanswerable` if the results lack a value that the
        plan needs.
        """
        walk = _Walk(dict(self.scope), list(seen))
        walk.take(self.steps)
        if walk.pending:
            return tuple(walk.pending)
        return "" if walk.answer is None else walk.answer


_OTHERWISE: Final = object()
"""The value of a failed call that has an alternative in the plan."""


class _Open(Exception):
    """Raised when the next steps depend on calls that are pending."""


class _Walk:
    """A pass over a plan that compares its steps with the calls in the prompt."""

    def __init__(self, scope: dict[str, Any], left: list[Called]) -> None:
        self.scope = scope
        self.left = left
        self.all = tuple(left)
        self.pending: list[PlannedCall] = []
        self.answer: str | None = None

    def take(self, steps: Sequence[PlanStep]) -> None:
        """Walk through steps until calls are pending or the answer is reached."""
        try:
            self._steps(steps)
        except _Open:
            return

    def _steps(self, steps: Sequence[PlanStep]) -> None:
        for step in steps:
            if self.answer is not None:
                return
            if self._applies(step):
                self._step(step)
            if self.pending:
                raise _Open

    def _applies(self, step: PlanStep) -> bool:
        if step.condition is not None and not evaluate(step.condition, self.scope):
            return False
        return step.unless is None or not self._shows(step.unless)

    def _step(self, step: PlanStep) -> None:
        if step.answer is not None:
            self.answer = filled(step.answer, self.scope)
        elif step.let is not None:
            for name, value in step.let.items():
                self.scope[name] = resolved(value, self.scope)
        elif step.together:
            for inner in step.together:
                if self._applies(inner):
                    self._step(inner)
        elif step.do and step.each is not None:
            for item in each(step.each, self.scope):
                self.scope.update(item)
                self._steps(step.do)
        elif step.each is not None:
            self._each(step)
        elif step.again is not None:
            self._again(step)
        else:
            done, value = self._call(step, self.scope)
            if done and step.bind and value is not _OTHERWISE:
                self.scope[step.bind] = value

    def _each(self, step: PlanStep) -> None:
        assert step.each is not None
        results: list[Any] = []
        for inner in each(step.each, self.scope):
            _, value = self._call(step, inner)
            results.append(None if value is _OTHERWISE else value)
        if step.bind and not self.pending:
            self.scope[step.bind] = results

    def _again(self, step: PlanStep) -> None:
        assert step.again is not None
        results: list[Any] = []
        for number in range(1, MOST_REPEATS + 1):
            last = results[-1] if results else None
            done, value = self._call(step, {**self.scope, "n": number, "last": last})
            if not done:
                return
            results.append(value)
            if not evaluate(step.again, {**self.scope, "n": number, "last": value}):
                break
        if step.bind:
            self.scope[step.bind] = results

    def _call(self, step: PlanStep, scope: Scope) -> tuple[bool, Any]:
        """Return whether a step's call is done, and its result. If the call is not done, it becomes pending."""
        assert step.call is not None
        arguments = resolved(step.arguments, scope)
        needed = bool(step.bind or step.again)
        while (seen := self._pop(step.call, arguments)) is not None:
            if seen.error is not None:
                if step.otherwise:
                    self._steps(step.otherwise)
                    return True, _OTHERWISE
                continue
            readable, value = _read(seen.result)
            if readable or not needed:
                return True, value
        self.pending.append(PlannedCall(step.call, arguments))
        return False, None

    def _shows(self, wanted: WantedCall) -> bool:
        given = conditions_in(resolved(wanted.arguments, self.scope))
        return any(
            seen.name == wanted.tool
            and seen.error is None
            and all(
                name in seen.arguments and value_fits(one, seen.arguments[name])
                for name, one in given.items()
            )
            for seen in self.all
        )

    def _pop(self, name: str, arguments: Mapping[str, JSON]) -> Called | None:
        for at, seen in enumerate(self.left):
            if seen.name == name and same_arguments(seen.arguments, arguments):
                return self.left.pop(at)
        return None


def same_arguments(first: Mapping[str, JSON], second: Mapping[str, JSON]) -> bool:
    """Return whether two calls have equal arguments; null is the same as an omitted argument."""
    return _given(first) == _given(second)


def _given(arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in arguments.items() if value is not None}


def _read(text: str | None) -> tuple[bool, Any]:
    """Return whether a result is complete, and its value; JSON is parsed."""
    if text is None:
        return False, None
    if not text.lstrip().startswith(("{", "[")):
        return True, _scalar(text)
    try:
        return True, json.loads(text)
    except ValueError:
        return False, None


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
