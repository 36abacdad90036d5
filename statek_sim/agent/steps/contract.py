"""A public checker that every enforcer of steps passes, ours or a user's, through a small adapter.

def test_my_enforcer_lets_a_failed_tool_be_tried_again() -> None:
    check_step_enforcer(MyAdapter, supports=["ordered", "repeated"])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from statek_sim.agent.steps.enforcement import Step, StepPlan
from statek_sim.agent.steps.expected import Expected, Finding
from statek_sim.agent.steps.expected import Feature as Feature
from statek_sim.agent.steps.played import Act, Wrong, giving_up, played_on, repeated
from statek_sim.agent.steps.played import EnforcerAdapter as EnforcerAdapter
from statek_sim.agent.steps.played import GivingUp as GivingUp
from statek_sim.agent.steps.played import MakeEnforcer as MakeEnforcer
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput, ContractViolation

ACTS: Final = 5
"""Acts of the longest exploration: proposals, ends of calls, answers."""
AT_ONCE: Final = 2
"""Calls that run side by side."""
IDLE: Final = 1
"""Refused proposals, and answers, before the last act of an exploration: none of them may change anything."""


_PLANS: Final[tuple[tuple[StepPlan, frozenset[Feature]], ...]] = (
    (StepPlan(steps=(Step(tool="a"),)), frozenset()),
    (StepPlan(steps=(Step(tool="a"), Step(tool="b"))), frozenset({Feature.ORDERED})),
    (StepPlan(steps=(Step(tool="a"), Step(tool="b")), order="any"), frozenset({Feature.ANY_ORDER})),
    (StepPlan(steps=(Step(tool="a", times=2),)), frozenset({Feature.REPEATED})),
    (StepPlan(steps=(Step(tool="a"), Step(tool="a"))), frozenset({Feature.REPEATED})),
    (
        StepPlan(steps=(Step(tool="a", times=2), Step(tool="b"))),
        frozenset({Feature.REPEATED, Feature.ORDERED}),
    ),
    (StepPlan(steps=(Step(tool="a"), Step(tool="c", required=False))), frozenset({Feature.OPTIONAL})),
    (StepPlan(steps=(Step(tool="c", required=False), Step(tool="b"))), frozenset({Feature.OPTIONAL})),
    (StepPlan(steps=(Step(tool="a"),), helpers=("look",)), frozenset({Feature.NAMED_HELPERS})),
    (StepPlan(steps=(Step(tool="a"),), helpers=()), frozenset({Feature.NAMED_HELPERS})),
    (
        StepPlan(steps=(Step(tool="b", after=("a",)), Step(tool="a")), order="any"),
        frozenset({Feature.PREREQUISITES, Feature.ANY_ORDER}),
    ),
    (
        StepPlan(steps=(Step(tool="a"), Step(tool="c", required=False, after=("a",)))),
        frozenset({Feature.PREREQUISITES, Feature.OPTIONAL}),
    ),
    (
        StepPlan(steps=(Step(tool="b", after=("look",)),)),
        frozenset({Feature.PREREQUISITES, Feature.HELPERS}),
    ),
    (StepPlan(steps=(Step(tool="a"), Step(tool="b"), Step(tool="c"))), frozenset({Feature.ORDERED})),
)  # fmt: skip
"""Plans that are explored, small ones first, and what an enforcer has to support for each."""


def check_step_enforcer(
    make_enforcer: MakeEnforcer,
    *,
    supports: Sequence[str] = tuple(Feature),
    gives_up_after: int | None = None,
    acts: int = ACTS,
) -> int:
    """Explore an enforcer with fourteen small plans and every order of up to `acts` acts; return how many were tried.

    An act is a proposal, the success or failure of a call, or a final answer. `make_enforcer` gets a plan and returns
    a fresh adapter. `supports` are the names of `Feature`s; plans that need others are left out. `gives_up_after`:
    after how many refusals in a row the enforcer ends the run, as its method `gave_up` says; alternating between two
    kinds of failure is no way round it. Raises `ContractViolation` with the shortest order of acts that shows anything
    wrong: a step let through out of order, before its prerequisite or while what it waits for is still running; a tool
    that failed and is refused; a step or helper refused that is due; one success taken for two; a final answer let
    through while steps are open, or refused when none is. `BadInput` for an adapter without a method.
    """
    features = _features(supports)
    tried = 0
    for wrong in () if gives_up_after is None else giving_up(make_enforcer, features, gives_up_after):
        tried += 1
        if wrong is not None:
            raise ContractViolation(wrong.sentence)
    for plan, alphabet in _plans(features):
        for wrong in _explored(make_enforcer, plan, alphabet, acts, features):
            tried += 1
            if wrong is not None:
                raise ContractViolation(_shortest(make_enforcer, features, wrong))
    for wrong in (*_walked(make_enforcer, features), *repeated(make_enforcer, features, gives_up_after)):
        tried += 1
        if wrong is not None:
            raise ContractViolation(wrong.sentence)
    return tried


def step_enforcer_findings(
    make_enforcer: MakeEnforcer, *, supports: Sequence[str] = tuple(Feature), acts: int = 5
) -> dict[Finding, str]:
    """Return everything that is wrong with an enforcer in up to `acts` acts, each with its shortest order of them."""
    features = _features(supports)
    found: dict[Finding, str] = {}
    for number in range(1, acts + 1):
        for plan, alphabet in _plans(features):
            for wrong in _explored(make_enforcer, plan, alphabet, number, features):
                if wrong is not None and wrong.acts == number:
                    found.setdefault(wrong.finding, wrong.sentence)
    return found


def _shortest(make: MakeEnforcer, features: frozenset[Feature], known: Wrong) -> str:
    """Return the sentence about the shortest order of acts that shows anything wrong; there is one, `known`."""
    for number in range(1, known.acts):
        for plan, alphabet in _plans(features):
            for wrong in _explored(make, plan, alphabet, number, features):
                if wrong is not None:
                    return wrong.sentence
    return known.sentence


def _features(names: Sequence[str]) -> frozenset[Feature]:
    known = [feature.value for feature in Feature]
    for name in names:
        if name not in known:
            raise BadInput(f"no feature is called {name!r}: {', '.join(known)}.{suggestion(name, known)}")
    return frozenset(Feature(name) for name in names)


def _plans(features: frozenset[Feature]) -> Iterator[tuple[StepPlan, tuple[str, ...]]]:
    """Yield the plans that these features allow, and the tools that are proposed for each."""
    for plan, needed in _PLANS:
        if not needed <= features:
            continue
        tools: dict[str, None] = dict.fromkeys([step.tool for step in plan.steps])
        if plan.helpers is not None:
            tools |= dict.fromkeys((*plan.helpers, "stray"))
        elif Feature.HELPERS in features:
            tools["look"] = None
        yield plan, tuple(tools)


def _explored(
    make: MakeEnforcer, plan: StepPlan, tools: Sequence[str], length: int, features: frozenset[Feature]
) -> Iterator[Wrong | None]:
    """Play every order of up to `length` acts that ends with a proposal or an answer; yield what each shows.

    What is wrong ends an order: nothing is played behind it.
    """
    at_once = AT_ONCE if Feature.SIDE_BY_SIDE in features else 1
    orders: list[tuple[Act, ...]] = [()]
    while orders:
        acts = orders.pop()
        played = played_on(make, plan, acts)
        if played.wrong is not None or len(acts) == length:
            yield played.wrong
        elif played.idle <= IDLE:
            last = len(acts) == length - 1
            orders += [(*acts, act) for act in reversed(_next(played.expected, tools, at_once, last=last))]


def _next(expected: Expected, tools: Sequence[str], at_once: int, *, last: bool) -> list[Act]:
    """Return what may be done next; at the end of an order only what shows what the enforcer thinks."""
    acts: list[Act] = [("answer", "")]
    if sum(expected.flying.values()) < at_once:
        acts += [("propose", tool) for tool in tools]
    if last:
        return acts
    for tool in sorted(+expected.flying):
        acts += [("succeed", tool), ("fail", tool)]
    return acts


def _walked(make: MakeEnforcer, features: frozenset[Feature]) -> Iterator[Wrong | None]:
    """Yield what is wrong on the straight way through each plan, and on the way where every call fails once."""
    for plan, _ in _plans(features):
        for ends in (("succeed",), ("fail", "succeed")):
            acts: list[Act] = []
            for tool in _straight(plan):
                for end in ends:
                    acts += [("propose", tool), ("succeed" if end == "succeed" else "fail", tool)]
            yield played_on(make, plan, [*acts, ("answer", "")]).wrong


def _straight(plan: StepPlan) -> list[str]:
    """Return the tools to call, one after another, until all required steps are done."""
    expected, way = Expected(plan), list[str]()
    while expected.open:
        tool = expected.open[0]
        for name in (*expected.needs(tool), tool):
            if name == tool or not expected.done[name]:
                expected.done[name] += 1
                way.append(name)
    return way
