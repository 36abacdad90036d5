"""An agent with its tools, limits, clock and trace, ready to run in tests and small programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from statek_sim.agent.approvals import word_of
from statek_sim.agent.budget import Budget
from statek_sim.agent.context.manager import ContextManager, ContextSettings
from statek_sim.agent.conversation import Envelopes
from statek_sim.agent.effects import NO_PARTS, Delayed, Parts, PersonSaid, Question, ToolFunction
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.reliability import BreakerGate, LoopWatcher, loop_watcher, reader_of, rescued
from statek_sim.agent.replies.nudges import LIMIT, LIMIT_IN_ALL
from statek_sim.agent.resume import resumed
from statek_sim.agent.run_state import RunDeps
from statek_sim.agent.simulation import Settle, Simulation
from statek_sim.agent.spec import MAX_ITERATIONS, PROFILE, TOOL_TIMEOUT, AgentSpec, Choice, Layers
from statek_sim.agent.step_enforcement import Step, StepPlan, check_plan, never_offered
from statek_sim.agent.tools.registry import Registry
from statek_sim.agent.tools.tool import Tool
from statek_sim.clock import Clock, Continued, VirtualClock
from statek_sim.errors import BadInput, RunawayJob, Unanswered
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.protocol import Provider
from statek_sim.providers.wire.format import PROVIDERS, format_of
from statek_sim.providers.wire.request import FormatName
from statek_sim.trace import Trace
from statek_sim.usage.tokenizers import TokenizerRegistry

if TYPE_CHECKING:
    from statek_sim.agent.checkpoints.sessions import Keeper

Person = Callable[[Question], PersonSaid | str | bool | Delayed | None]
"""Answers a question with a string, True or False for approval, or a `PersonSaid`; None means no answer.

A `Delayed` holds one of these answers, or an error to raise, and the seconds until then.
"""

CONTEXT: Final = ContextSettings()
"""The default prompt limits, from the agent document."""

LONGEST: Final = 86_400.0
"""The default limit on virtual seconds for `AgentHarness.run`."""


class AgentHarness:
    """An agent and its harness. `run` works on a task in virtual time; `begin` returns a run for your own driver.

    `tools` are plain functions, `Tool`s, or a whole `Registry`; `steps` are tool names, `Step`s, or a `StepPlan`;
    raises `BadInput` if one names an unknown tool. Three protections are on by default, separately for each run:
    `rescue` reads calls written as text (unless `parts.reader` is set), `protection` responds to loops and pauses
    failing tools, and `context` keeps prompts within a budget (unless `parts.compactor` is set). `rescue=False`,
    `protection=False` and `context=None` turn them off. STATEK's `limits` and a `budget` are unlimited unless given.
    `person` answers questions. All of a harness's runs share its clock and its trace.
    """

    def __init__(
        self,
        provider: Provider | None = None,
        *,
        tools: Iterable[Tool | ToolFunction] | Registry = (),
        steps: Sequence[str | Step] | StepPlan = (),
        prompt: str | Layers = "",
        model: str = "gpt-4o",
        api: str = "OPENAI",
        role: str = "agent",
        choice: Choice | None = None,
        task_types: Mapping[str, Sequence[str]] | None = None,
        budget: Budget | None = None,
        max_iterations: int = MAX_ITERATIONS,
        nudges: int = LIMIT,
        nudges_in_all: int | None = LIMIT_IN_ALL,
        tool_timeout: float | None = TOOL_TIMEOUT,
        retry_provider: bool = True,
        parts: Parts = NO_PARTS,
        rescue: bool = True,
        protection: bool = True,
        context: ContextSettings | None = CONTEXT,
        person: Person | None = None,
        limits: LLM_Harness | None = None,
        clock: VirtualClock | None = None,
        trace: Trace | None = None,
        tokenizers: TokenizerRegistry | None = None,
    ) -> None:
        registry = tools if isinstance(tools, Registry) else Registry(tools, task_types=task_types)
        self.spec = AgentSpec(
            role=role,
            model=model,
            provider=api,
            wire=_wire(api),
            layers=Layers(rules=prompt) if isinstance(prompt, str) else prompt,
            registry=registry,
            choice=choice or Choice(),
            plan=_plan(steps),
            budget=budget or Budget(),
            max_iterations=max_iterations,
            nudges=nudges,
            nudges_in_all=nudges_in_all,
            tool_timeout=tool_timeout,
            retry_provider=retry_provider,
        )
        envelopes = Envelopes(tokenizers)
        self.provider = provider
        self._person = person
        self.clock = VirtualClock() if clock is None else clock
        self.trace = Trace(profile=PROFILE, seed=0) if trace is None else trace
        self._deps = RunDeps(
            clock=self.clock,
            trace=self.trace,
            harness=limits or LLM_Harness(None, None, None, None),
            envelopes=envelopes,
            parts=self._with_defaults(parts, envelopes, context, rescue=rescue),
        )
        self._protects, self._runs = protection, 0
        if registry is not tools:
            self._check_steps(offered=True)

    def _with_defaults(
        self, parts: Parts, envelopes: Envelopes, context: ContextSettings | None, *, rescue: bool
    ) -> Parts:
        """Return the parts, with the default reader and compactor added where none are set."""
        if parts.reader is rescued or (rescue and parts.reader is None):
            parts = replace(parts, reader=reader_of(self.spec.model))
        if context is None or (context is CONTEXT and parts.compactor is not None):
            return parts
        if parts.compactor is not None:
            raise BadInput("context and parts.compactor both shorten the history; expected only one of them")
        meter = envelopes.meter(self.spec.model)
        manager = ContextManager(context, lambda message: meter.measure(message)[1], wire=self.spec.wire)
        return replace(parts, compactor=manager)

    def plan(self, task: str) -> str:
        """Return a hash of a task and this agent's steps, which identifies a stored session's plan."""
        steps = [asdict(step) for step in self.spec.plan.steps]
        # Imported only here: most runs are not kept.
        from statek_sim.agent.checkpoints.sessions import plan_hash  # noqa: PLC0415

        return plan_hash(self.spec.role, task, steps, self.spec.plan.order)

    def _check_steps(self, *, offered: bool = False) -> None:
        """Raise `BadInput` for a step with an unknown tool; with `offered`, also for one that no turn can offer."""
        check_plan(self.spec.plan, (tool.name for tool in self.spec.registry.list()))
        if offered and self._deps.parts.chooser is None and self.spec.plan.required:
            why = never_offered(self.spec.plan, self.spec.offer().names)
            if why is not None:
                raise BadInput(f"agent {self.spec.role!r}: {why}")

    def begin(self, task: str, *, clock: Clock | None = None, keeper: Keeper | None = None) -> AgentRun:
        """Return a run for a driver; pass the driver's `clock` if it differs from this harness's clock.

        With a `keeper`, the run is committed, and resumes the keeper's session. A new `LoopClock` is then set to the
        second of the last commit; if any other clock is behind that second, `BadInput` is raised. Pass the keeper's
        `save` and `note` (under asyncio) or `committed` and `receipted` to the driver.
        """
        if not isinstance(task, str):
            raise BadInput(f"task is {task!r}; expected a string")
        # Checked again, because the caller's registry may have new tools.
        self._check_steps()
        self._runs += 1
        job = "main" if self._runs == 1 else f"main-{self._runs}"
        deps = replace(self._deps, clock=clock or self.clock, parts=self._parts())
        if keeper is None:
            return AgentRun(job, self.spec, deps, task)
        deps = replace(deps, parts=replace(deps.parts, commits=True))
        if keeper.kept is None:
            return AgentRun(job, self.spec, deps, task)
        from statek_sim.agent.checkpoints.sessions import saved_run  # noqa: PLC0415  # as in `plan`

        if isinstance(deps.clock, Continued):
            deps.clock.go_on_from(keeper.kept.checkpoint.entry.at)
        return resumed(job, self.spec, deps, **saved_run(keeper.kept), anew=True)

    def _parts(self) -> Parts:
        """Return the parts for one run, with a new loop watcher and breaker gate unless the parts have their own."""
        parts = self._deps.parts
        if not self._protects:
            return parts
        watches = any(isinstance(watcher, LoopWatcher) for watcher in parts.watchers)
        breaks = any(isinstance(gate, BreakerGate) for gate in parts.gates)
        return replace(
            parts,
            watchers=parts.watchers if watches else (loop_watcher(), *parts.watchers),
            gates=parts.gates if breaks else (BreakerGate(), *parts.gates),
        )

    def run(
        self,
        task: str,
        *,
        then: Mapping[float, str] | None = None,
        within: float = LONGEST,
        keeper: Keeper | None = None,
    ) -> AgentRun:
        """Work on a task until it is finished, and return the run.

        `then` maps virtual seconds to later messages. Raises `RunawayJob` if the work takes longer than `within`
        virtual seconds, and `Unanswered` if a question has neither an answer nor a deadline. With a `keeper`, every
        commit is saved, and an existing session is resumed.
        """
        if self.provider is None:
            raise LookupError("this harness has no provider; set one, or drive `begin` yourself")
        driver = Simulation(
            self.provider,
            clock=self.clock,
            person=lambda question, answered: self._asked(driver, question, answered),
            committed=None if keeper is None else keeper.committed,
            receipted=None if keeper is None else keeper.receipted,
            renewed=None if keeper is None else (keeper.every, keeper.renew),
        )
        if keeper is not None and keeper.kept is not None:
            self.clock.advance_to(max(self.clock.now(), keeper.kept.checkpoint.entry.at))
        run = self.begin(task, keeper=keeper)
        driver.start(run)
        for at, message in (then or {}).items():
            driver.at(self.clock.now() + at, _pusher(driver, run, message))
        if not driver.run(self.clock.now() + within):
            if driver.waiting:
                raise Unanswered(unanswered(driver.waiting.values()))
            raise RunawayJob(
                f"run {run.job!r} is {run.status} and not finished after {within:g} virtual seconds; set "
                "a timeout for slow tools, or a larger `within`"
            )
        return run

    def _asked(self, driver: Simulation, question: Question, answered: Settle) -> None:
        """Settle a question with the person's answer, after its delay."""
        given = None if self._person is None else self._person(question)
        if given is None:
            return
        later = given if isinstance(given, Delayed) else Delayed(0.0, given)
        if question.seconds is not None and later.seconds > question.seconds:
            return  # The run no longer waits for the answer.
        if later.error is None:
            say: Callable[[], object] = partial(answered, word_of(question, later.value))
        else:
            say = partial(_raise, later.error)
        driver.at(self.clock.now() + later.seconds, say)


def _raise(error: Exception) -> None:
    raise error


def unanswered(questions: Iterable[Question]) -> str:
    """Return an error message about questions that will never be answered."""
    waits = [f"run {question.job!r} waits for an answer to {question.text!r}" for question in questions]
    return f"{'; '.join(waits)}; expected a person to answer it, or a deadline"


def _wire(api: str) -> FormatName:
    """Return an API's wire format, given its STATEK name; raises `BadInput`, listing the valid names."""
    if api.upper() not in PROVIDERS:
        raise BadInput(f"unknown api {api!r}; expected one of {', '.join(PROVIDERS)}")
    return format_of(api).NAME


def _plan(steps: Sequence[str | Step] | StepPlan) -> StepPlan:
    if isinstance(steps, str):
        raise BadInput(f"steps is {steps!r}; expected a list of tool names, a list of Steps, or a StepPlan")
    if isinstance(steps, StepPlan):
        return steps
    return StepPlan(steps=tuple([Step(tool=step) if isinstance(step, str) else step for step in steps]))


def _pusher(driver: Simulation, run: AgentRun, message: str) -> Callable[[], None]:
    def push() -> None:
        if run.push(message):
            driver.start(run)

    return push
