"""Runs a scenario on the reference runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cache
from typing import Any

from statek_sim import trace as events
from statek_sim.backends.call_log import AnsweredCall, CallLog
from statek_sim.backends.deviation_plan import (
    DeviationPlan,
    with_deviations,
    with_moved_events,
    with_other_limits,
)
from statek_sim.backends.deviations import Deviations, Exploring, FirstRun, PinnedReplies
from statek_sim.backends.driver import USER, Driver, Refused, metadata_of, style_of_all, style_of_definitions
from statek_sim.backends.facts import record_of
from statek_sim.backends.record import RunError, RunRecord
from statek_sim.backends.setup import (
    AS_WRITTEN,
    RunOptions,
    harness_for,
    job_settings,
    tool_named,
    world_for,
)
from statek_sim.clock import VirtualClock
from statek_sim.errors import BadInput, BadScenario, StatekSimError, StoppedInTool
from statek_sim.harness.current import get_llm_harness
from statek_sim.providers.network import forbid_network
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.runtime import task
from statek_sim.runtime.agents.agent import Agent, DialogAgent, RecurringReminder
from statek_sim.runtime.agents.warmup_source import parse_warmup
from statek_sim.runtime.execution.runtime import RunOutcome, Runtime
from statek_sim.runtime.execution.toolbox import get_all, get_any
from statek_sim.runtime.jobs import subtask as subtasks
from statek_sim.runtime.jobs.job import Job, get_current_job
from statek_sim.runtime.jobs.subtask import SubTaskHandler, create_sub_task
from statek_sim.runtime.state import error_handlers, futures
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.runtime.stored.containers import kept
from statek_sim.runtime.tools import declaration as tools
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.scenario.schema import AgentText, JobText, Scenario
from statek_sim.semantics import Profile, profile_named
from statek_sim.wall_clock import frozen_wall_clock
from statek_sim.world.tools import WorldTools
from statek_sim.world.world import ToolApi, World


def run_reference_scenario(scenario: Scenario, profile: str | Profile, options: RunOptions) -> RunRecord:
    """Run a scenario under one profile, given by name or value, and return the record.

    A failure of the run itself, such as a script that does not match or a real connection, is part of the
    record. Bad input raises `BadInput`.
    """
    exploring: Exploring | None = None
    if scenario.deviations:
        if options.exchanges is not None:
            raise BadScenario(f"{scenario.place}: deviations apply to a scripted run, not to a recorded one")
        undisturbed = ReferenceRun(with_deviations(scenario, ()), profile, options, exploring=Exploring())
        with closing(undisturbed.runtime):
            undisturbed.play(allow_network=True)
        exploring = Exploring(first_run=undisturbed.first_run)
    run = ReferenceRun(scenario, profile, options, exploring=exploring)
    with closing(run.runtime):
        return run.finish(allow_network=options.allow_network)


class ReferenceRun:
    """A run on the reference runtime. `finish` runs it and returns the record, `play` runs it for inspection."""

    def __init__(
        self,
        scenario: Scenario,
        profile: str | Profile,
        options: RunOptions = AS_WRITTEN,
        *,
        exploring: Exploring | None = None,
    ) -> None:
        self.scenario = scenario = with_moved_events(scenario)
        settings = job_settings(scenario, preset=options.preset)
        behaviour = profile_named(profile) if isinstance(profile, str) else profile
        self.seed = seed = options.seed_of(scenario)
        llm, self.check_finished = options.llm_of(scenario)
        self.script = llm if isinstance(llm, ScriptedLLM) else None
        plan = DeviationPlan(scenario.deviations, None if exploring is None else exploring.pick)
        self._replies = (
            None
            if exploring is None
            else PinnedReplies(llm, scenario, plan, exploring.first_run, within=exploring.pinned)
        )
        self.calls = CallLog(llm if self._replies is None else self._replies)
        self.runtime = Runtime(
            self.calls,
            profile=behaviour,
            settings=settings,
            harness=with_other_limits(
                options.harness(harness_for(scenario.limits, settings, behaviour)), scenario.deviations
            ),
            clock=VirtualClock(),
            seed=seed,
            order=scenario.order,
            max_concurrency=scenario.max_concurrency,
            budget=_budget(scenario),
            tokenizers=options.tokenizers,
            client_options=options.client_options,
        )
        self.deviations: Deviations | None = None
        self.world = world_for(scenario.world, self._world_changed, self._may_change)
        self.agents = agents_of(scenario, self.world)
        self.driver = Driver(scenario, ReferenceSide(self.runtime, self.world, self.agents))
        self.go_on: Callable[[Driver], None] = lambda _driver: None
        """Called before anything is scheduled; a durable run restores its driver's state here."""
        self.planned: Callable[[], None] = lambda: None
        """Called when everything is scheduled."""
        self.resumed = False
        """Whether an earlier process started the run."""
        self.begun = False
        """Whether all actions by the scenario's application are on the agenda."""
        if exploring is not None and self._replies is not None:
            self.deviations = Deviations(
                self.runtime,
                self._replies,
                plan,
                ledger=self.world.ledger.lines,
                exploring=exploring,
            )

    @property
    def replies(self) -> PinnedReplies:
        """The replies in an explored run; other runs have none."""
        assert self._replies is not None, "it was not made with `exploring`"
        return self._replies

    @property
    def first_run(self) -> FirstRun:
        """The answers that this run's jobs received, for use in runs that deviate from it."""
        return self.replies.taken

    def _may_change(self) -> None:
        if self.deviations is not None:
            self.deviations.check_alive()

    def _world_changed(self, subject: str, what: str) -> None:
        job = get_current_job()
        now = self.runtime.clock.now()
        self.runtime.trace.add(events.WorldChanged(now, "" if job is None else job.id, subject, what))

    # -- running -----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        driver = self.driver
        driver.prepare()
        self.runtime.on_tool_returned.append(driver.tool_returned)
        self.go_on(driver)
        if self.deviations is not None and not self.resumed:
            self.deviations.begin()
        driver.begin()
        self.begun = True
        self.planned()

    def finish(self, *, allow_network: bool) -> RunRecord:
        """Run to the end and return the record."""
        return self.record(*self.play(allow_network=allow_network))

    def play(self, *, allow_network: bool) -> tuple[RunOutcome | None, RunError | None]:
        """Run to the end; return the outcome, and the error if the run itself failed."""
        error: RunError | None = None
        outcome: RunOutcome | None = None
        with ExitStack() as stack:
            guard = None if allow_network else stack.enter_context(forbid_network())
            stack.enter_context(frozen_wall_clock(self.runtime.clock, active=self._reads_wall_clock()))
            try:
                self._begin()
                outcome = self._run()
                if not self.scenario.deviations:
                    self.driver.check_finished()
                    self.check_finished()
            except BadInput:
                raise
            except Refused as refusal:
                error = RunError(type=refusal.kind, message=str(refusal))
            except StatekSimError as failure:
                error = RunError(type=type(failure).__name__, message=str(failure))
                if outcome is not None:
                    error = error.in_run(settled=outcome.settled, until=self.scenario.until)
        if guard is not None and guard.attempts and error is None:
            first = guard.attempts[0]
            error = RunError(type="NetworkForbidden", message=f"a real connection was attempted: {first}")
        return outcome, error

    def _run(self) -> RunOutcome:
        try:
            return self.runtime.run(self.scenario.until)
        except StoppedInTool:
            # A scenario run is never continued, so it may stop here.
            return self.runtime.outcome(settled=False)

    def record(self, outcome: RunOutcome | None, error: RunError | None) -> RunRecord:
        """Return the record for a run that ended with this outcome and error."""
        record = record_of(self.scenario, self.runtime, self.world, outcome, error)
        if self.resumed:
            # An earlier process's requests are only in the trace; the requests and answers themselves were not kept.
            return record
        return replace(record, calls=self.answered_calls())

    def answered_calls(self) -> tuple[AnsweredCall, ...]:
        """Return the answered and metered LLM calls, grouped by job in creation order."""
        default = self.runtime.settings.default_llm_api_provider
        return self.calls.answered(self.runtime.jobs, default_provider=default)

    def _reads_wall_clock(self) -> bool:
        """Return whether tools may read the wall clock; freezing the clock takes milliseconds."""
        return any(
            ":" in name or name == "read_clock"
            for text in self.scenario.agents.values()
            for name in text.tools
        )


def _budget(scenario: Scenario) -> ExecutionBudget:
    return _shared_budget(
        **{key: getattr(scenario.budget, key) for key in sorted(scenario.budget.model_fields_set)}
    )


@cache
def _shared_budget(**limits: int) -> ExecutionBudget:
    """Return the budget for these limits; budgets are shared, because they are expensive to create."""
    return ExecutionBudget(**limits)


class ReferenceSide:
    """Adapts the reference runtime to the driver: the runtime, its world, and its agents, keyed by role."""

    def __init__(self, runtime: Runtime, world: World, agents: Mapping[str, Agent]) -> None:
        self._runtime = runtime
        self._agents = agents
        self.world = world

    @property
    def now(self) -> float:
        """The current virtual second."""
        return self._runtime.clock.now()

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Call `action` at virtual second `when`."""
        self._runtime.at(when, action)

    def enter_agent(self, role: str, text: AgentText) -> None:
        """Check an agent's warmup; the agent itself already exists."""
        parse_warmup(text.warmup, bind_assignments=self._runtime.profile.as_tool_binds_assignment)

    def add_loop(self, role: str) -> None:
        """Start an agentic loop, which creates a job of this agent for each item in the queue."""
        self._runtime.add_loop(self._agents[role], self.world.queue.ready)

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Job:
        """Create a job as an application does."""
        return self._runtime.create_job(
            self._agents[text.agent or next(iter(self._agents))],
            name=name,
            parent_job=None if text.parent is None else self._runtime.job(text.parent),
            warmup_code=text.warmup,
            shared_vars=shared,
        )

    def job(self, name: str) -> Job:
        """Return a job by name."""
        return self._runtime.job(name)

    def make_subtask(self, job: Job, subtask_id: str) -> SubTaskHandler:
        """Make a job a subtask of its parent."""
        return create_sub_task(job, id=subtask_id)

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker; inside a call, an exception unwinds the step."""
        if in_call:
            raise WorkerKilled(reason)
        self._runtime.crash_worker(reason)

    def restart(self) -> None:
        """Start a new worker."""
        self._runtime.restart_worker()


def tool_api(agents: Mapping[str, Agent]) -> ToolApi:
    """Return the reference runtime's interface for built-in tools, which may delegate to `agents`."""
    return ToolApi(
        tool=tools.tool,
        subtask=subtasks.subtask,
        error_handler=error_handlers.error_handler,
        temporal=futures.temporal,
        future=futures.FutureResult,
        future_error=futures.FutureError,
        get_current_job=get_current_job,
        create_new_job=task.create_new_job,
        complete_sub_task=subtasks.complete_sub_task,
        delegate_task=task.delegate_task,
        any_future=futures.get_any_future,
        all_future=futures.get_all_future,
        get_llm_harness=get_llm_harness,
        agents=agents,
        kept=_as_attribute,
    )


def _as_attribute(value: Any) -> Any:
    """Return a value as the current job would store it in an attribute."""
    job = get_current_job()
    return value if job is None or not job.py_env.stores else kept(value).value


def agents_of(scenario: Scenario, world: World) -> dict[str, Agent]:
    """Return a scenario's agents, keyed by role.

    Their built-in tools use `world`, and may delegate to these agents.
    """
    agents: dict[str, Agent] = {}
    builtin = WorldTools(world, tool_api(agents), extra=(get_any, get_all))
    of_all = style_of_all(scenario)
    for role, text in scenario.agents.items():
        own = [tool_named(scenario, name, builtin) for name in text.tools]
        agents[role] = _agent(role, text, own, of_all)
    return agents


def _agent(role: str, text: AgentText, own: list[Callable[..., Any]], of_all: str | None) -> Agent:
    if not text.dialog:
        return Agent(
            role,
            text.prompt,
            tools=own,
            metadata=metadata_of(text),
            warmup=text.warmup,
            chat_style=style_of_definitions(text, of_all),
        )
    reminder = text.reminder
    return DialogAgent(
        _deliver,
        role,
        text.prompt,
        tools=own,
        add_answer_tool=text.answer_tool,
        reminder=None if reminder is None else RecurringReminder(reminder.text, reminder.min_dialog_len),
        metadata=metadata_of(text),
        warmup=text.warmup,
    )


def _deliver(body: str, media: str | None = None) -> None:
    return


_deliver.__doc__ = USER
