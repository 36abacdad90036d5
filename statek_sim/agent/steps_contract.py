"""A public checker that every enforcer of steps passes, ours or a user's, through a small adapter.

def test_my_enforcer_lets_a_failed_tool_be_tried_again() -> None:
    check_step_enforcer(MyAdapter, supports=["ordered", "repeated"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, Protocol, runtime_checkable

from statek_sim.agent.steps import Step, StepPlan
from statek_sim.agent.steps_expected import Demand, Expected, Finding
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput, ContractViolation

ACTS: Final = 5
"""Acts of the longest exploration: proposals, ends of calls, answers."""
AT_ONCE: Final = 2
"""Calls that run side by side."""
IDLE: Final = 1
"""Refused proposals, and answers, before the last act of an exploration: none of them may change anything."""
LONG: Final = 12
"""How often a pattern of failures is repeated."""


class Feature(StrEnum):
    """What a plan may ask of an enforcer."""

    ORDERED = "ordered"
    ANY_ORDER = "any_order"
    REPEATED = "repeated"
    OPTIONAL = "optional"
    HELPERS = "helpers"
    NAMED_HELPERS = "named_helpers"
    PREREQUISITES = "prerequisites"
    SIDE_BY_SIDE = "side_by_side"


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

_Act = tuple[Literal["propose", "succeed", "fail", "answer"], str]

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
    through while steps are open, or refused when none is.
    """
    features = _features(supports)
    tried = 0
    for wrong in () if gives_up_after is None else _giving_up(make_enforcer, features, gives_up_after):
        tried += 1
        if wrong is not None:
            raise ContractViolation(wrong.sentence)
    for plan, alphabet in _plans(features):
        for wrong in _explored(make_enforcer, plan, alphabet, acts, features):
            tried += 1
            if wrong is not None:
                raise ContractViolation(_shortest(make_enforcer, features, wrong))
    for wrong in (*_walked(make_enforcer, features), *_repeated(make_enforcer, features, gives_up_after)):
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


def _shortest(make: MakeEnforcer, features: frozenset[Feature], known: _Wrong) -> str:
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


# -- playing ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wrong:
    """What is wrong, after how many acts, and the sentence about it."""

    finding: Finding
    acts: int
    sentence: str


@dataclass(slots=True)
class _Played:
    """An order of acts that was played on a fresh enforcer, beside the contract."""

    expected: Expected
    words: list[str]
    wrong: _Wrong | None = None
    idle: int = 0
    """Acts that were refused, and answers: nothing should have changed."""


def _explored(
    make: MakeEnforcer, plan: StepPlan, tools: Sequence[str], length: int, features: frozenset[Feature]
) -> Iterator[_Wrong | None]:
    """Play every order of up to `length` acts that ends with a proposal or an answer; yield what each shows.

    What is wrong ends an order: nothing is played behind it.
    """
    at_once = AT_ONCE if Feature.SIDE_BY_SIDE in features else 1
    orders: list[tuple[_Act, ...]] = [()]
    while orders:
        acts = orders.pop()
        played = _played(make, plan, acts)
        if played.wrong is not None or len(acts) == length:
            yield played.wrong
        elif played.idle <= IDLE:
            last = len(acts) == length - 1
            orders += [(*acts, act) for act in reversed(_next(played.expected, tools, at_once, last=last))]


def _next(expected: Expected, tools: Sequence[str], at_once: int, *, last: bool) -> list[_Act]:
    """Return what may be done next; at the end of an order only what shows what the enforcer thinks."""
    acts: list[_Act] = [("answer", "")]
    if sum(expected.flying.values()) < at_once:
        acts += [("propose", tool) for tool in tools]
    if last:
        return acts
    for tool in sorted(+expected.flying):
        acts += [("succeed", tool), ("fail", tool)]
    return acts


def _played(make: MakeEnforcer, plan: StepPlan, acts: Sequence[_Act]) -> _Played:
    played = _Played(Expected(plan), [])
    enforcer = make(plan)
    out: dict[str, list[object]] = {}
    for act in acts:
        try:
            _play(played, enforcer, act, out)
        except Exception as error:  # noqa: BLE001  # a user's enforcer
            played.words.append(_words(act))
            played.wrong = _wrong(
                played, Finding.RAISES, f"the enforcer raised {type(error).__name__}: {error}"
            )
        if played.wrong is not None:
            break
    return played


def _play(played: _Played, enforcer: EnforcerAdapter, act: _Act, out: dict[str, list[object]]) -> None:
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
        played.wrong = _wrong(played, demand.finding, _judged(act, demand, lets=lets))
    elif not lets:
        played.words[-1] += " and is refused"


def _judged(act: _Act, demand: Demand, *, lets: bool) -> str:
    subject = "the answer" if act[0] == "answer" else repr(act[1])
    if lets:
        return f"the enforcer let {subject} through, but {demand.because}"
    return f"the enforcer refused {subject}, but {demand.because}"


def _wrong(played: _Played, finding: Finding, what: str) -> _Wrong:
    return _Wrong(
        finding, len(played.words), f"{_plan_words(played.expected.plan)}: {', '.join(played.words)}: {what}"
    )


def _words(act: _Act) -> str:
    what, tool = act
    return {
        "propose": f"{tool} is proposed",
        "succeed": f"{tool} succeeds",
        "fail": f"{tool} fails",
        "answer": "the answer is given",
    }[what]


def _plan_words(plan: StepPlan) -> str:
    said = []
    for step in plan.steps:
        words = step.tool
        words += f" {step.times} times" if step.times > 1 else ""
        words += "" if step.required else " (optional)"
        words += f" after {' and '.join(step.after)}" if step.after else ""
        said.append(words)
    steps = f"steps {', '.join(said)}" + (" in any order" if plan.order == "any" and len(said) > 1 else "")
    if plan.helpers is None:
        return steps
    return f"{steps}, helpers {', '.join(plan.helpers) or 'none'}"


def _walked(make: MakeEnforcer, features: frozenset[Feature]) -> Iterator[_Wrong | None]:
    """Yield what is wrong on the straight way through each plan, and on the way where every call fails once."""
    for plan, _ in _plans(features):
        for ends in (("succeed",), ("fail", "succeed")):
            acts: list[_Act] = []
            for tool in _straight(plan):
                for end in ends:
                    acts += [("propose", tool), ("succeed" if end == "succeed" else "fail", tool)]
            yield _played(make, plan, [*acts, ("answer", "")]).wrong


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


# -- failures that go on and on ---------------------------------------------------------------------------------


def _repeated(
    make: MakeEnforcer, features: frozenset[Feature], gives_up_after: int | None
) -> Iterator[_Wrong | None]:
    """Yield what is wrong when the same failure, or two in turn, come again and again, the shortest first."""
    plan = StepPlan(steps=(Step(tool="a"),))
    failing: tuple[_Act, ...] = (("propose", "a"), ("fail", "a"))
    patterns: list[tuple[StepPlan, tuple[_Act, ...], tuple[_Act, ...]]] = [
        (plan, failing, (("propose", "a"), ("succeed", "a"), ("answer", ""))),
    ]
    if Feature.ANY_ORDER in features:
        both = StepPlan(steps=(Step(tool="a"), Step(tool="b")), order="any")
        in_turn = (*failing, ("propose", "b"), ("fail", "b"))
        end: tuple[_Act, ...] = (("propose", "b"), ("succeed", "b"), ("propose", "a"), ("succeed", "a"))
        patterns.append((both, in_turn, (*end, ("answer", ""))))
    refused = _two_refusals(features)
    if refused is not None and gives_up_after is None:
        ordered, wrong_steps = refused
        patterns.append((ordered, wrong_steps, (("propose", "a"), ("succeed", "a"))))
    again = [
        (told, (*pattern * times, *tail)) for times in range(1, LONG + 1) for told, pattern, tail in patterns
    ]
    for told, acts in sorted(again, key=lambda one: len(one[1])):
        yield _played(make, told, acts).wrong


def _two_refusals(features: frozenset[Feature]) -> tuple[StepPlan, tuple[_Act, ...]] | None:
    """Return a plan and two acts that it refuses for different reasons."""
    if Feature.ORDERED in features:
        plan = StepPlan(steps=(Step(tool="a"), Step(tool="b")))
        return plan, (("propose", "b"), ("answer", ""))
    if Feature.NAMED_HELPERS in features:
        return StepPlan(steps=(Step(tool="a"),), helpers=()), (("propose", "stray"), ("answer", ""))
    return None


def _giving_up(make: MakeEnforcer, features: frozenset[Feature], limit: int) -> Iterator[_Wrong | None]:
    if limit < 1:
        raise BadInput(f"gives_up_after is 1 or more, not {limit}")
    refused = _two_refusals(features)
    plan = StepPlan(steps=(Step(tool="a"),)) if refused is None else refused[0]
    two: tuple[_Act, ...] = (("answer", ""),) if refused is None else refused[1]
    for first in range(len(two)):
        acts = [two[(first + number) % len(two)] for number in range(limit)]
        yield _gave_up_in_time(make, plan, [acts[0]] * limit)
        yield _gave_up_in_time(make, plan, acts)


def _gave_up_in_time(make: MakeEnforcer, plan: StepPlan, acts: Sequence[_Act]) -> _Wrong | None:
    played, enforcer = _Played(Expected(plan), []), make(plan)
    if not isinstance(enforcer, GivingUp):
        raise BadInput(f"gives_up_after needs an adapter with a method gave_up; {enforcer!r} has none")
    for number, act in enumerate(acts, start=1):
        if enforcer.gave_up():
            what = f"the enforcer gave up after {number - 1} refusals, expected {len(acts)}"
            return _wrong(played, Finding.GIVES_UP, what)
        _play(played, enforcer, act, {})
        if played.wrong is not None:
            return played.wrong
    if not enforcer.gave_up():
        what = f"the enforcer did not give up after {len(acts)} refusals in a row"
        return _wrong(played, Finding.GOES_ON, what)
    return None
