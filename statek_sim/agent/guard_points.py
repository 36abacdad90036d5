"""Applies guards to a text in the loop: the text passes, is changed, needs approval, or is blocked."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from statek_sim import trace as events
from statek_sim.agent.effects import (
    Answer,
    Ask,
    Effect,
    Guard,
    GuardPoint,
    Judging,
    Subject,
    Verdict,
    Wait,
    Waited,
)
from statek_sim.agent.model_request import ask_side_model
from statek_sim.agent.run_state import RunState
from statek_sim.agent.schema import changed_arguments
from statek_sim.values import JSON

if TYPE_CHECKING:
    from collections.abc import Awaitable


NOTHING: Final[Mapping[str, JSON]] = {}


@dataclass(frozen=True, slots=True)
class Ruling:
    """The combined result of all guards: the resulting text, the reason for a block, and any approvals needed."""

    text: str
    blocked: str | None = None
    asks: tuple[Ask, ...] = ()


def guarded(
    run: RunState,
    point: GuardPoint,
    text: str,
    *,
    tool: str | None = None,
    arguments: Mapping[str, JSON] = NOTHING,
) -> Generator[Effect, Answer, Ruling]:
    """Run all guards on a text in order, and return the result; findings are recorded in the trace."""
    passed: list[Guard] = []
    asks: list[Ask] = []
    for guard in run.deps.parts.guards:
        subject = _subject(run, point, text, tool, arguments)
        verdict = yield from _verdict(run, guard(subject))
        if verdict.action != "pass":
            detail = verdict.reason or (verdict.text or "")
            run.tell(events.HarnessSpoke(run.now(), run.job, f"{point.value} guard", verdict.action, detail))
        if verdict.action == "block" or (verdict.action == "ask" and point is not GuardPoint.CALL):
            withdraw(passed, subject)
            return Ruling(text, verdict.reason)
        if verdict.action == "ask":
            asks += verdict.asks or (Ask(text=verdict.reason, confirms=True),)
        if verdict.action in ("modify", "ask") and verdict.text is not None:
            text = verdict.text
            arguments = changed_arguments(arguments, text) if point is GuardPoint.CALL else arguments
        passed.append(guard)
    return Ruling(text, None, tuple(asks))


def call_withdrawn(run: RunState, tool: str, arguments: Mapping[str, JSON]) -> None:
    """Notify the guards that an allowed call will not be made."""
    withdraw(run.deps.parts.guards, _subject(run, GuardPoint.CALL, "", tool, arguments))


def withdraw(guards: Iterable[Guard], subject: Subject) -> None:
    """Call the guards' `withdrawn` methods, if any, because a call will not be made."""
    if subject.point is GuardPoint.CALL:
        for guard in guards:
            withdrawn = getattr(guard, "withdrawn", None)
            if withdrawn is not None:
                withdrawn(subject)


def _subject(
    run: RunState, point: GuardPoint, text: str, tool: str | None, arguments: Mapping[str, JSON]
) -> Subject:
    return Subject(
        point=point,
        text=text,
        tool=tool,
        arguments=arguments,
        session=run.job,
        sources=run.results,
        spent=run.budget.spent(at=run.now()),
        at=run.now(),
    )


def _verdict(
    run: RunState, given: Verdict | Awaitable[Verdict] | Judging
) -> Generator[Effect, Answer, Verdict]:
    if isinstance(given, Verdict):
        return given
    if isinstance(given, Generator):
        return (yield from _judged(run, given))
    assert inspect.isawaitable(given), f"a guard returned {given!r}, expected a Verdict"
    waited = yield Wait(given)
    assert isinstance(waited, Waited), "a driver must answer Wait with a Waited"
    if waited.error is not None:
        raise waited.error
    verdict: Verdict = waited.value
    return verdict


def _judged(run: RunState, steps: Judging) -> Generator[Effect, Answer, Verdict]:
    """Answer a guard's requests until the guard returns its verdict."""
    reply: str | Waited | None = None
    try:
        while True:
            wanted = steps.send(reply)
            if isinstance(wanted, Wait):
                answer = yield wanted
                assert isinstance(answer, Waited), "a driver must answer Wait with a Waited"
                reply = answer
            else:
                reply = yield from ask_side_model(
                    run, wanted, part="guard", missing="no judgement", then_asks=False
                )
    except StopIteration as end:
        verdict: Verdict = end.value
        return verdict
    finally:
        steps.close()
