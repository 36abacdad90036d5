"""An eval, and its instance for one seed: a task, a new world with tools, a plan, and the demands on a run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from pydantic import Field, SkipValidation

from statek_sim.agent.step_enforcement import Step, StepPlan
from statek_sim.agent.tools.tool import Tool
from statek_sim.evals.expression import Scope, Unanswerable, each, evaluate, filled, names_in, resolved, shown
from statek_sim.evals.ideal_plan import Plan, PlannedCall
from statek_sim.evals.outcome import Called
from statek_sim.evals.random_draws import Draws
from statek_sim.evals.schema import CheckText, Cited, EvalText, WantedCall, arguments_schema
from statek_sim.evals.world import Approving, Tables, World, apply, begun, varied
from statek_sim.scenario.calls import conditions_in

KEPT: Final = 512
"""The maximum number of instances cached per process, enough for a suite with several seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A required call, with the arguments that matter."""

    tool: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.arguments.items())
        return f"{self.tool}({arguments})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What a check demands from a run of one instance, with all expressions evaluated."""

    calls: tuple[tuple[Expected, ...], ...]
    never_called: tuple[str, ...]
    after: Tables
    changes: bool
    ignore: tuple[str, ...]
    cites: tuple[tuple[tuple[str, ...], Cited], ...]
    avoids: tuple[str, ...]
    at_most: Mapping[str, int]


def demands(check: CheckText, before: Tables, scope: Scope) -> Demands:
    """Return a check's demands, given the world's initial tables (`before`); `scope` is for expressions."""
    after: Tables = {name: list(rows) for name, rows in before.items()}
    for change in check.changes:
        apply(change, after, {**scope, **after})
    groups = [demand if isinstance(demand, tuple) else (demand,) for demand in check.expect_calls]
    calls = [tuple([call for wanted in group for call in _expected(wanted, scope)]) for group in groups]
    return Demands(
        calls=tuple([group for group in calls if group]),
        never_called=check.never_called,
        after=after,
        changes=bool(check.changes),
        ignore=check.ignore,
        cites=tuple([(tuple(_texts(resolved(citation.value, scope))), citation) for citation in check.cites]),
        avoids=tuple(_texts([resolved(avoided, scope) for avoided in check.avoids])),
        at_most=check.at_most,
    )


def _expected(wanted: WantedCall, scope: Scope) -> Iterator[Expected]:
    if wanted.condition is not None and not evaluate(wanted.condition, scope):
        return
    for inner in [scope] if wanted.each is None else each(wanted.each, scope):
        yield Expected(tool=wanted.tool, arguments=conditions_in(resolved(wanted.arguments, inner)))


def _texts(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [text for item in value for text in _texts(item)]
    return [shown(value)]


class EvalScenario(EvalText):
    """An eval in a suite, with its file and line. Evals with the same location and text are equal."""

    path: SkipValidation[Path]
    line: int
    digest: str = Field(description="The hash of the eval's text: equal in every process that loads it.")

    @classmethod
    def placed(cls, text: EvalText, path: Path, line: int) -> Self:
        """Return an eval with this validated text and location."""
        values = {name: getattr(text, name) for name in EvalText.model_fields}
        # The statements that an eval proves do not affect its runs.
        content = text.model_dump_json(by_alias=True, include={*values} - {"proves"}).encode()
        place = {"path": path, "line": line, "digest": hashlib.sha256(content).hexdigest()}
        return cls.model_construct(_fields_set={*text.model_fields_set, *place}, **values, **place)

    @property
    def workflow(self) -> tuple[str, ...]:
        """The tools that a run must call, in order."""
        return _tools_of(self)

    def instance(self, seed: int) -> Instance:
        """Return the eval's instance for a seed, with an untouched world."""
        made = _beginning(self, seed)
        world = World(self.tools, made.world.before)
        schemas = {tool.name: tool.parameters for tool in made.tools}
        return replace(made, scenario=self, world=world, tools=world.tools(schemas))


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An eval for one seed: the input for an agent, and for the judge.

    `facts` are the values that the check may use: values that differ by seed, the tables at the start, and the facts
    defined in the eval.
    """

    eval_id: str
    seed: int
    scenario: EvalScenario
    prompt: str
    task: str
    tools: list[Tool]
    steps: StepPlan
    world: World
    plan: Plan
    demands: Demands
    facts: Scope

    def plan_of(self, wrong: str) -> Plan:
        """Return the plan of the incorrect script with this id; it may use facts that a model cannot know."""
        steps = next(script.plan for script in self.scenario.wrong if script.id == wrong)
        return Plan(steps, self.facts)

    def right(self, seen: Sequence[Called]) -> Sequence[PlannedCall] | str | None:
        """Return the plan's next action, given the calls shown; None if the action needs a value that is not shown."""
        try:
            return self.plan.next(seen)
        except Unanswerable:
            return None

    def steps_after(self, tool: str) -> Sequence[str]:
        """Return the required tools that follow a tool, or all but the first if the tool is not required."""
        order = [step.tool for step in self.steps.steps]
        at = order.index(tool) if tool in order else 0
        return order[at + 1 :]

    def approving(self) -> Approving | None:
        """Return the gate and the person for calls that need approval, or None if there are no such calls."""
        scenario = self.scenario
        return Approving(scenario.approvals, self.world, scenario.tools) if scenario.approvals else None


def told_names(text: EvalText) -> frozenset[str]:
    """Return the names of varying values mentioned in the task or the prompt; a plan may use only these."""
    return (names_in(text.task) | names_in(text.prompt)) & text.vary.keys()


def _tools_of(text: EvalText) -> tuple[str, ...]:
    groups = [demand if isinstance(demand, tuple) else (demand,) for demand in text.check.expect_calls]
    wanted: list[WantedCall] = [call for group in groups for call in group]
    return tuple(dict.fromkeys(call.tool for call in wanted))


_kept: dict[tuple[str, int], Instance] = {}


def _beginning(scenario: EvalScenario, seed: int) -> Instance:
    key = scenario.digest, seed
    begin = _kept.get(key)
    if begin is None:
        if len(_kept) >= KEPT:
            del _kept[next(iter(_kept))]
        begin = _kept[key] = _made(scenario, seed)
    return begin


def _made(text: EvalScenario, seed: int) -> Instance:
    draws = Draws(text.id, seed)
    vary = varied(text.vary, draws)
    tables = begun(text.world, draws, vary)
    scope: dict[str, Any] = {**vary, **tables}
    for name, value in text.facts.items():
        scope[name] = resolved(value, scope)
    wanted = demands(text.check, tables, scope)
    used = {call.tool for group in wanted.calls for call in group}
    steps = StepPlan(steps=tuple([Step(tool=name) for name in _tools_of(text) if name in used]))
    world = World(text.tools, tables)
    return Instance(
        eval_id=text.id,
        seed=seed,
        scenario=text,
        prompt=filled(text.prompt, vary),
        task=filled(text.task, vary),
        tools=world.tools({name: arguments_schema(tool) for name, tool in text.tools.items()}),
        steps=steps,
        world=world,
        plan=Plan(text.plan, {name: vary[name] for name in told_names(text)}),
        demands=wanted,
        facts=scope,
    )
