"""Failures that go on and on: the same one, or two in turn, played on an enforcer of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from statek_sim.agent.steps.enforcement import Step, StepPlan
from statek_sim.agent.steps.expected import Expected, Finding
from statek_sim.agent.steps.features import Feature
from statek_sim.agent.steps.played import (
    Act,
    GivingUp,
    MakeEnforcer,
    Played,
    Wrong,
    play,
    played_on,
    wrong_in,
)
from statek_sim.errors import BadInput

LONG: Final = 12
"""How often a pattern of failures is repeated."""


def repeated(
    make: MakeEnforcer, features: frozenset[Feature], gives_up_after: int | None
) -> Iterator[Wrong | None]:
    """Yield what is wrong when the same failure, or two in turn, come again and again, the shortest first."""
    plan = StepPlan(steps=(Step(tool="a"),))
    failing: tuple[Act, ...] = (("propose", "a"), ("fail", "a"))
    patterns: list[tuple[StepPlan, tuple[Act, ...], tuple[Act, ...]]] = [
        (plan, failing, (("propose", "a"), ("succeed", "a"), ("answer", ""))),
    ]
    if Feature.ANY_ORDER in features:
        both = StepPlan(steps=(Step(tool="a"), Step(tool="b")), order="any")
        in_turn = (*failing, ("propose", "b"), ("fail", "b"))
        end: tuple[Act, ...] = (("propose", "b"), ("succeed", "b"), ("propose", "a"), ("succeed", "a"))
        patterns.append((both, in_turn, (*end, ("answer", ""))))
    refused = _two_refusals(features)
    if refused is not None and gives_up_after is None:
        ordered, wrong_steps = refused
        patterns.append((ordered, wrong_steps, (("propose", "a"), ("succeed", "a"))))
    again = [
        (opening, (*pattern * times, *tail))
        for times in range(1, LONG + 1)
        for opening, pattern, tail in patterns
    ]
    for opening, acts in sorted(again, key=lambda play: len(play[1])):
        yield played_on(make, opening, acts).wrong


def _two_refusals(features: frozenset[Feature]) -> tuple[StepPlan, tuple[Act, ...]] | None:
    """Return a plan and two acts that it refuses for different reasons."""
    if Feature.ORDERED in features:
        plan = StepPlan(steps=(Step(tool="a"), Step(tool="b")))
        return plan, (("propose", "b"), ("answer", ""))
    if Feature.NAMED_HELPERS in features:
        return StepPlan(steps=(Step(tool="a"),), helpers=()), (("propose", "stray"), ("answer", ""))
    return None


def giving_up(make: MakeEnforcer, features: frozenset[Feature], limit: int) -> Iterator[Wrong | None]:
    """Yield what is wrong with when an enforcer gives up: after `limit` refusals in a row, of one kind or of two."""
    if limit < 1:
        raise BadInput(f"gives_up_after is 1 or more, not {limit}")
    refused = _two_refusals(features)
    plan = StepPlan(steps=(Step(tool="a"),)) if refused is None else refused[0]
    two: tuple[Act, ...] = (("answer", ""),) if refused is None else refused[1]
    for first in range(len(two)):
        acts = [two[(first + number) % len(two)] for number in range(limit)]
        yield _gave_up_in_time(make, plan, [acts[0]] * limit)
        yield _gave_up_in_time(make, plan, acts)


def _gave_up_in_time(make: MakeEnforcer, plan: StepPlan, acts: Sequence[Act]) -> Wrong | None:
    played, enforcer = Played(Expected(plan), []), make(plan)
    if not isinstance(enforcer, GivingUp):
        raise BadInput(f"gives_up_after needs an adapter with a method gave_up; {enforcer!r} has none")
    for number, act in enumerate(acts, start=1):
        if enforcer.gave_up():
            what = f"the enforcer gave up after {number - 1} refusals, expected {len(acts)}"
            return wrong_in(played, Finding.GIVES_UP, what)
        play(played, enforcer, act, {})
        if played.wrong is not None:
            return played.wrong
    if not enforcer.gave_up():
        what = f"the enforcer did not give up after {len(acts)} refusals in a row"
        return wrong_in(played, Finding.GOES_ON, what)
    return None
