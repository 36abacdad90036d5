"""Orders of acts, played on an enforcer of steps beside the contract: what each shows, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, runtime_checkable

from statek_sim.adapters import with_methods
from statek_sim.agent.steps.enforcement import Step, StepPlan
from statek_sim.agent.steps.expected import Demand, Expected, Feature, Finding
from statek_sim.errors import BadInput


class EnforcerAdapter(Protocol):
    """One enforcer with one plan, for the checker."""

    def propose(self, tool: str) -> object | None:
        """Hold a call against the plan before it is executed: return what stands for it, or None: it is refused."""

    def finish(self, call: object, *, failed: bool) -> None:
        """End a call that `propose` let through."""

    def may_answer(self) -> bool:
        """Return whether a final answer is let through now."""


@runtime_checkable
class GivingUp(Protocol):
    """An enforcer that ends a run whose model makes one failure after another."""

    def gave_up(self) -> bool:
        """Return whether it has."""


MakeEnforcer = Callable[[StepPlan], EnforcerAdapter]
"""Takes a plan and returns a fresh enforcer of it."""

Act = tuple[Literal["propose", "succeed", "fail", "answer"], str]
"""What is done, and with which tool; an answer has none."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong, after how many acts, and the sentence about it."""

    finding: Finding
    acts: int
    sentence: str


@dataclass(slots=True)
class Played:
    """An order of acts that was played on a fresh enforcer, beside the contract."""

    expected: Expected
    words: list[str]
    wrong: Wrong | None = None
    idle: int = 0
    """Acts that were refused, and answers: nothing should have changed."""


def played_on(make: MakeEnforcer, plan: StepPlan, acts: Sequence[Act]) -> Played:
    """Play an order of acts on a fresh enforcer, up to the first that shows anything wrong."""
    played = Played(Expected(plan), [])
    enforcer = with_methods(make(plan), ("propose", "finish", "may_answer"), of="EnforcerAdapter")
    out: dict[str, list[object]] = {}
    for act in acts:
        try:
            play(played, enforcer, act, out)
        except Exception as error:  # noqa: BLE001  # a user's enforcer
            played.words.append(_words(act))
            played.wrong = wrong_in(
                played, Finding.RAISES, f"the enforcer raised {type(error).__name__}: {error}"
            )
        if played.wrong is not None:
            break
    return played


def play(played: Played, enforcer: EnforcerAdapter, act: Act, out: dict[str, list[object]]) -> None:
    """Play one act and hold it against the contract; `out` are the calls that run, by tool."""
    what, tool = act
    if what in ("succeed", "fail"):
        enforcer.finish(out[tool].pop(0), failed=what == "fail")
        played.expected.ended(tool, failed=what == "fail")
        played.words.append(_words(act))
        return
    if what == "answer":
        demand, lets = played.expected.answered(), enforcer.may_answer()
    else:
        demand, call = played.expected.proposed(tool), enforcer.propose(tool)
        lets = call is not None
        if call is not None:
            played.expected.let_through(tool)
            out.setdefault(tool, []).append(call)
    played.idle += what == "answer" or not lets
    played.words.append(_words(act))
    if demand.lets is not None and demand.lets != lets:
        played.wrong = wrong_in(played, demand.finding, _judged(act, demand, lets=lets))
    elif not lets:
        played.words[-1] += " and is refused"


def _judged(act: Act, demand: Demand, *, lets: bool) -> str:
    subject = "the answer" if act[0] == "answer" else repr(act[1])
    if lets:
        return f"the enforcer let {subject} through, but {demand.because}"
    return f"the enforcer refused {subject}, but {demand.because}"


def wrong_in(played: Played, finding: Finding, what: str) -> Wrong:
    """Return the finding after what was played so far, as a sentence."""
    return Wrong(
        finding, len(played.words), f"{_plan_words(played.expected.plan)}: {', '.join(played.words)}: {what}"
    )


def _words(act: Act) -> str:
    what, tool = act
    return {
        "propose": f"{tool} is proposed",
        "succeed": f"{tool} succeeds",
        "fail": f"{tool} fails",
        "answer": "the answer is given",
    }[what]


def _plan_words(plan: StepPlan) -> str:
    sentences = []
    for step in plan.steps:
        words = step.tool
        words += f" {step.times} times" if step.times > 1 else ""
        words += "" if step.required else " (optional)"
        words += f" after {' and '.join(step.after)}" if step.after else ""
        sentences.append(words)
    steps = f"steps {', '.join(sentences)}" + (
        " in any order" if plan.order == "any" and len(sentences) > 1 else ""
    )
    if plan.helpers is None:
        return steps
    return f"{steps}, helpers {', '.join(plan.helpers) or 'none'}"


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
