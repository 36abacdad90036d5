"""The ideal behaviour as data: what comes next is read from what the prompt still shows, never from a counter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from statek_sim.evals.expression import Scope, each, evaluate, filled, resolved
from statek_sim.evals.prompt_calls import SeenCall
from statek_sim.evals.schema import PlanStep, WantedCall
from statek_sim.values import JSON

MOST_REPEATS: Final = 50
"""Calls that a `while` makes at most."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that is right now."""

    name: str
    arguments: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a task is done. `scope` is what its task says; results are added as they are seen."""

    steps: tuple[PlanStep, ...]
    scope: Scope

    def next(self, seen: Sequence[SeenCall]) -> tuple[PlannedCall, ...] | str:
        """Return the calls that are right now, several at once where that can be, or the final answer.

        A call that is shown with its result is done. One whose result is needed and no longer shown is made again; one
        that failed too, unless the plan says what else is done then. `Unanswerable` when results do not say what
        the plan needs of them.
        """
        walk = _Walk(dict(self.scope), list(seen))
        walk.take(self.steps)
        if walk.pending:
            return tuple(walk.pending)
        return "" if walk.answer is None else walk.answer


_OTHERWISE: Final = object()
"""What a call gave that failed, where the plan says what is done then."""


class _Open(Exception):
    """What follows cannot be known yet."""


class _Walk:
    """One reading of a plan against what is shown."""

    def __init__(self, scope: dict[str, Any], left: list[SeenCall]) -> None:
        self.scope = scope
        self.left = left
        self.all = tuple(left)
        self.pending: list[PlannedCall] = []
        self.answer: str | None = None

    def take(self, steps: Sequence[PlanStep]) -> None:
        """Take steps until calls are pending or the answer is said."""
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
        """Return whether a call is done, and what it gave; else it is pending."""
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
        given = resolved(wanted.arguments, self.scope)
        return any(
            seen.name == wanted.tool and seen.error is None and given.items() <= dict(seen.arguments).items()
            for seen in self.all
        )

    def _pop(self, name: str, arguments: Mapping[str, JSON]) -> SeenCall | None:
        for at, seen in enumerate(self.left):
            if seen.name == name and same_arguments(seen.arguments, arguments):
                return self.left.pop(at)
        return None


def same_arguments(first: Mapping[str, JSON], second: Mapping[str, JSON]) -> bool:
    """Return whether arguments are the same; null and not given are."""
    return _given(first) == _given(second)


def _given(arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    return {key: value for key, value in arguments.items() if value is not None}


def _read(text: str | None) -> tuple[bool, Any]:
    """Return whether a result is there in whole, and its value: JSON where it looks like some."""
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
