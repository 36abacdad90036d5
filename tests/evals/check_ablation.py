"""Whether every single demand of a check is needed.

A demand that some wrong run breaks, and breaks alone, is needed: without it that run would pass. One that is only
ever broken together with others is implied by them. One that nothing breaks has never been tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

from statek_sim.evals.outcome import Called, Record
from statek_sim.evals.players import play
from statek_sim.evals.scenario import Demands, EvalScenario, Instance, demands
from statek_sim.evals.schema import CheckText, EvalText, WantedCall
from statek_sim.evals.verdict import judge, meets
from statek_sim.evals.world import World
from tests.evals.weak_models import follower

MOST_CALLS: Final = 60
"""Calls of a wrong script after which it is stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """A check without one demand; `demand` names it as the file has it: `calls[1].with.order`."""

    demand: str
    check: CheckText
    ordered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAblation:
    """What a demand is good for: the scripts of the eval, and forged records, that break it alone; and with what else.

    `with_others` are demands that are broken whenever it is.
    """

    demand: str
    scripts: tuple[str, ...] = ()
    forgeries: tuple[str, ...] = ()
    with_others: tuple[str, ...] = ()
    broken: bool = False

    @property
    def needed(self) -> bool:
        """Whether something would pass without it that should not."""
        return bool(self.scripts or self.forgeries)


def relaxations(text: EvalText) -> Iterator[Relaxed]:
    """Yield the check without each of its demands in turn."""
    check = text.check
    groups = [call if isinstance(call, tuple) else (call,) for call in check.expect_calls]
    for at, group in enumerate(groups):
        for inner, wanted in enumerate(group):
            name = f"calls[{at}]" if len(group) == 1 else f"calls[{at}][{inner}]"
            yield _with_call(check, groups, at, inner, None, name)
            for key in wanted.arguments:
                left = {other: value for other, value in wanted.arguments.items() if other != key}
                less = wanted.model_copy(update={"arguments": left})
                yield _with_call(check, groups, at, inner, less, f"{name}.with.{key}")
    if len(groups) > 1:
        yield Relaxed(demand="order of calls", check=check, ordered=False)
    for part in ("never_called", "cites", "avoids"):
        entries = getattr(check, part)
        for at in range(len(entries)):
            fewer = check.model_copy(update={part: entries[:at] + entries[at + 1 :]})
            yield Relaxed(demand=f"{part}[{at}]", check=fewer)
    for at, cited in enumerate(check.cites):
        if not cited.computed:
            known = cited.model_copy(update={"computed": True})
            cites = (*check.cites[:at], known, *check.cites[at + 1 :])
            yield Relaxed(demand=f"cites[{at}]: was shown", check=check.model_copy(update={"cites": cites}))
    for tool in check.at_most:
        most = {other: count for other, count in check.at_most.items() if other != tool}
        yield Relaxed(demand=f"at_most.{tool}", check=check.model_copy(update={"at_most": most}))
    for table in changeable(text):
        if table not in check.ignore:
            ignore = (*check.ignore, table)
            yield Relaxed(demand=f"table {table}", check=check.model_copy(update={"ignore": ignore}))


def changeable(text: EvalText) -> tuple[str, ...]:
    """Return the tables that a tool can change."""
    return tuple(dict.fromkeys(change.table for tool in text.tools.values() for change in tool.changes))


def _with_call(
    check: CheckText,
    groups: Sequence[tuple[WantedCall, ...]],
    at: int,
    inner: int,
    call: WantedCall | None,
    name: str,
) -> Relaxed:
    group = [*groups[at][:inner], *([] if call is None else [call]), *groups[at][inner + 1 :]]
    calls = [*groups[:at], *([tuple(group)] if group else []), *groups[at + 1 :]]
    return Relaxed(demand=name, check=check.model_copy(update={"expect_calls": tuple(calls)}))


# -- runs that are wrong ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run to be judged; a forged one is the ideal run with one thing changed that no script could change alone."""

    name: str
    instance: Instance
    record: Record
    forged: bool = False


def wrong_runs(scenario: EvalScenario, seed: int) -> Iterator[Run]:
    """Yield the runs of an eval's wrong scripts on a seed, and forged ones."""
    for script in scenario.wrong:
        instance = scenario.instance(seed)
        record = play(instance, follower(instance.plan_of(script.id)), most_calls=MOST_CALLS)
        yield Run(name=script.id, instance=instance, record=record)
    instance = scenario.instance(seed)
    ideal = play(instance, follower(instance.plan))
    for name, forged, world in _forgeries(scenario, seed, instance, ideal):
        yield Run(name=name, instance=replace(instance, world=world), record=forged, forged=True)


Forged = tuple[str, Record, World]


def _forgeries(scenario: EvalScenario, seed: int, instance: Instance, ideal: Record) -> Iterator[Forged]:
    world, wanted = instance.world, instance.demands
    untouched = scenario.instance(seed).world
    yield "the answer without a call", replace(ideal, calls=()), untouched
    other = scenario.instance(seed + 1)
    answer = play(other, follower(other.plan)).answer
    if answer != ideal.answer:
        yield "the answer of another seed", replace(ideal, answer=answer), world
    yield from _of_calls(wanted, ideal, world)
    yield from _of_the_answer(wanted, ideal, world)
    for table in changeable(scenario):
        if table in wanted.ignore:
            continue
        touched = copy(world)
        touched.tables = {**world.tables, table: [*world.tables[table], {"forged": True}]}
        yield f"one row more in {table}", ideal, touched


def _of_calls(wanted: Demands, ideal: Record, world: World) -> Iterator[Forged]:
    for expected in [call for group in wanted.calls for call in group]:
        made = [call.error is None and meets(call, expected) for call in ideal.calls]
        if True not in made:
            continue  # The ideal plan fails, which `check` says.
        left = tuple([call for call, it in zip(ideal.calls, made, strict=True) if not it])
        yield f"without {expected}", replace(ideal, calls=left), world
        # One of them is left out where it has to be made twice.
        last = len(made) - 1 - made[::-1].index(True)
        yield (
            f"once less {expected}",
            replace(ideal, calls=ideal.calls[:last] + ideal.calls[last + 1 :]),
            world,
        )
        for key in expected.arguments:
            calls = [
                _with_another(call, key) if it else call for call, it in zip(ideal.calls, made, strict=True)
            ]
            yield f"{expected} with another {key}", replace(ideal, calls=tuple(calls)), world
    yield "the calls in the opposite order", replace(ideal, calls=ideal.calls[::-1]), world
    for never in wanted.never_called:
        extra = Called(name=never, arguments={}, result="ok")
        yield f"{never} too", replace(ideal, calls=(*ideal.calls, extra)), world
    for tool, most in wanted.at_most.items():
        again = Called(name=tool, arguments={}, error="no")
        yield f"{tool} again and again", replace(ideal, calls=(*ideal.calls, *[again] * (most + 1))), world


def _with_another(call: Called, key: str) -> Called:
    return replace(call, arguments={**call.arguments, key: {"another": "value"}})


def _of_the_answer(wanted: Demands, ideal: Record, world: World) -> Iterator[Forged]:
    answer = ideal.answer or ""
    yield "no words", replace(ideal, answer="Done."), world
    yield "an error", replace(ideal, answer="There was an error; I will retry later."), world
    for texts, cited in wanted.cites:
        left = answer
        for text in texts:
            left = left.replace(text, "it")
        yield f"without the words {texts}", replace(ideal, answer=left), world
        blind = tuple([_blinded(call, texts) for call in ideal.calls])
        if not cited.computed:
            yield f"nothing showed {texts}", replace(ideal, calls=blind), world
    for text in wanted.avoids:
        yield f"the words {text!r} too", replace(ideal, answer=f"{answer} {text}"), world


def _blinded(call: Called, texts: Sequence[str]) -> Called:
    result, error = call.result, call.error
    for text in texts:
        result = result and result.replace(text, "hidden")
        error = error and error.replace(text, "hidden")
    return replace(call, result=result, error=error)


# -- what each demand is worth ----------------------------------------------------------------------------------


def check_ablations(scenario: EvalScenario, seeds: Sequence[int]) -> list[CheckAblation]:
    """Return what every demand of an eval is good for, by its wrong scripts and forged records on these seeds."""
    found = [_Found(relaxation) for relaxation in relaxations(scenario)]
    for seed in seeds:
        relaxed = [(candidate, _relaxed(scenario, seed, candidate.relaxed)) for candidate in found]
        for run in wrong_runs(scenario, seed):
            whole = judge(run.instance, run.record)
            if whole.passed:
                continue  # a forgery that changes nothing here
            _note(run, whole.problems, relaxed)
    return [candidate.worth() for candidate in found]


class _Found:
    """What was found about a demand so far."""

    def __init__(self, relaxed: Relaxed) -> None:
        self.relaxed = relaxed
        self.scripts: dict[str, None] = {}
        self.forgeries: dict[str, None] = {}
        self.others: set[str] | None = None

    def worth(self) -> CheckAblation:
        return CheckAblation(
            demand=self.relaxed.demand,
            scripts=tuple(self.scripts),
            forgeries=tuple(self.forgeries),
            with_others=tuple(sorted(self.others or ())),
            broken=self.others is not None,
        )


def _note(run: Run, problems: Sequence[str], relaxed: Sequence[tuple[_Found, Demands]]) -> None:
    broken = []
    for candidate, less in relaxed:
        verdict = judge(replace(run.instance, demands=less), run.record)
        if verdict.problems != problems:
            broken.append(candidate)
        if verdict.passed:
            (candidate.forgeries if run.forged else candidate.scripts)[run.name] = None
    names = {candidate.relaxed.demand for candidate in broken}
    for candidate in broken:
        others = names - {candidate.relaxed.demand}
        candidate.others = others if candidate.others is None else candidate.others & others


def _relaxed(scenario: EvalScenario, seed: int, relaxed: Relaxed) -> Demands:
    instance = scenario.instance(seed)
    wanted = demands(relaxed.check, instance.world.before, instance.facts)
    if not relaxed.ordered:
        wanted = replace(wanted, calls=(tuple([call for group in wanted.calls for call in group]),))
    return wanted
