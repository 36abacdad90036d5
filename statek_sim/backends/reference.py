"""Running a scenario on the reference runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from typing import Any, Protocol, assert_never

from statek_sim import trace as events
from statek_sim.backends.call_log import AnsweredCall, CallLog
from statek_sim.backends.deviating import (
    Deviations,
    Exploring,
    undeviating,
    with_moved_events,
    with_other_limits,
)
from statek_sim.backends.driver import Driver, Refused, style_of_all
from statek_sim.backends.exchanges import Exchanges
from statek_sim.backends.facts import record_of
from statek_sim.backends.pinned_replies import PinnedReplies, Said
from statek_sim.backends.record import RunError, RunRecord
from statek_sim.backends.setup import (
    harness_for,
    load_attribute,
    script_of,
    settings_of,
    tool_named,
    world_for,
)
from statek_sim.clock import VirtualClock
from statek_sim.errors import BadInput, BadScenario, StatekSimError
from statek_sim.harness.current import get_llm_harness
from statek_sim.harness.harness import LLM_Harness
from statek_sim.metering.messages import REPLY_PRIMING, completion_tokens, message_tokens, tools_tokens
from statek_sim.metering.tokenizers import TokenizerRegistry, tokenizer_for_model
from statek_sim.providers.access import access_from, client_options
from statek_sim.providers.network import forbid_network
from statek_sim.providers.over_http import HttpLLM
from statek_sim.providers.protocol import ChatRequest, Provider
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.request import PLAIN
from statek_sim.runtime import task
from statek_sim.runtime.agents.agent import Agent, DialogAgent, RecurringReminder
from statek_sim.runtime.agents.warmup_source import parse_warmup
from statek_sim.runtime.execution.builtin import get_all, get_any
from statek_sim.runtime.execution.model_name import BadModelName
from statek_sim.runtime.execution.runtime import RunOutcome, Runtime
from statek_sim.runtime.jobs import subtask as subtasks
from statek_sim.runtime.jobs.current import get_current_job
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.subtask import SubTaskHandler, create_sub_task
from statek_sim.runtime.state import error_handlers, futures
from statek_sim.runtime.state.containment import WorkerKilled
from statek_sim.runtime.stored.containers import kept
from statek_sim.runtime.tools import declaration as tools
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.scenario.references import WorldReference
from statek_sim.scenario.schema import AgentText, JobText, Scenario
from statek_sim.semantics import Profile, profile_named
from statek_sim.values import JSON
from statek_sim.wall_clock import frozen_wall_clock
from statek_sim.world.external_futures import ExternalEvents
from statek_sim.world.tool_api import ToolApi
from statek_sim.world.tools import WorldTools


def unchanged(harness: LLM_Harness) -> LLM_Harness:
    """Return the harness as it is."""
    return harness


def run_scenario(
    scenario: Scenario,
    profile: str | Profile,
    *,
    preset: str | None = None,
    seed: int | None = None,
    allow_network: bool = False,
    tokenizers: TokenizerRegistry | None = None,
    exchanges: Exchanges | None = None,
    harness: Callable[[LLM_Harness], LLM_Harness] = unchanged,
) -> RunRecord:
    """Run one scenario under one profile, a known one by its name, and return what it left behind.

    `preset` and `seed` replace the scenario's own, `exchanges` its script; `tokenizers` are asked before the vendored
    ones; `harness` may change the harness that preset and scenario make. A failure of the run itself (the script does
    not fit, a real connection was tried) is part of the record; bad input raises `BadInput`.
    """
    if scenario.deviations and exchanges is not None:
        raise BadScenario(
            f"{scenario.path}:{scenario.line}: scenario {scenario.id!r}: deviations: they depart from a scripted run, "
            "not from a recorded one"
        )
    run = ReferenceRun(
        scenario,
        profile,
        preset=preset,
        seed=seed,
        tokenizers=tokenizers,
        exchanges=exchanges,
        harness=harness,
        exploring=_as_written(
            scenario, profile, preset=preset, seed=seed, tokenizers=tokenizers, harness=harness
        ),
    )
    try:
        return run.finish(allow_network=allow_network)
    finally:
        run.runtime.close()


def _as_written(
    scenario: Scenario,
    profile: str | Profile,
    *,
    preset: str | None,
    seed: int | None,
    tokenizers: TokenizerRegistry | None,
    harness: Callable[[LLM_Harness], LLM_Harness],
) -> Exploring | None:
    """Return what a scenario with deviations departs from: its undisturbed run."""
    if not scenario.deviations:
        return None
    undisturbed = ReferenceRun(
        undeviating(scenario),
        profile,
        preset=preset,
        seed=seed,
        tokenizers=tokenizers,
        harness=harness,
        exploring=Exploring(),
    )
    try:
        undisturbed.play(allow_network=True)
    finally:
        undisturbed.runtime.close()
    return Exploring(said=undisturbed.said)


def _llm(
    scenario: Scenario, tokenizers: TokenizerRegistry | None, exchanges: Exchanges | None
) -> tuple[Provider, Callable[[], None]]:
    """Return what answers the requests of a run, and what to ask when it is over."""
    if exchanges is not None:
        llm = HttpLLM(exchanges.transport, partial(access_from, exchanges.environment))
        return llm, exchanges.check_finished
    script = ScriptedLLM(script_of(scenario), measure=partial(measured, tokenizers=tokenizers))
    return script, script.check_finished


def tool_api(agents: Mapping[str, Agent]) -> ToolApi:
    """Return what the built-in tools need of the reference runtime; `agents` are those they may delegate to."""
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
    """Return what an attribute of a stored object makes of a value of the current job."""
    job = get_current_job()
    return value if job is None or not job.py_env.stores else kept(value).value


def _known_as(reason: Exception) -> str:
    """Return the class of a refusal as STATEK's users know it: of a model name, ValueError."""
    return ValueError.__name__ if isinstance(reason, BadModelName) else type(reason).__name__


class Durable(Protocol):
    """Makes a run durable: it hears of the driver before anything is planned."""

    def begin(self, driver: Driver) -> None:
        """Let the driver go on where the process before ended, if there was one."""

    def begun(self) -> None:
        """Go on once everything is planned."""


class ReferenceRun:
    """One run in the making: `finish` plays it and collects the facts, `play` leaves it to be looked at."""

    def __init__(
        self,
        scenario: Scenario,
        profile: str | Profile,
        *,
        preset: str | None = None,
        seed: int | None = None,
        tokenizers: TokenizerRegistry | None = None,
        exchanges: Exchanges | None = None,
        harness: Callable[[LLM_Harness], LLM_Harness] = unchanged,
        exploring: Exploring | None = None,
    ) -> None:
        self.scenario = scenario = with_moved_events(scenario)
        settings = settings_of(scenario, preset=preset)
        if (style := style_of_all(scenario)) is not None:
            settings = settings.model_copy(update={"chat_style": style})
        behaviour = profile_named(profile) if isinstance(profile, str) else profile
        self.seed = seed = scenario.seed if seed is None else seed
        llm, self.check_finished = _llm(scenario, tokenizers, exchanges)
        self.script = llm if isinstance(llm, ScriptedLLM) else None
        self._replies = (
            None
            if exploring is None
            else PinnedReplies(llm, scenario, exploring.said, within=exploring.pinned)
        )
        self.calls = CallLog(llm if self._replies is None else self._replies)
        self.runtime = Runtime(
            self.calls,
            profile=behaviour,
            settings=settings,
            harness=with_other_limits(
                harness(harness_for(scenario.limits, settings, behaviour)), scenario.deviations
            ),
            clock=VirtualClock(),
            seed=seed,
            order=scenario.order,
            max_concurrency=scenario.max_concurrency,
            budget=_budget(scenario),
            tokenizers=tokenizers,
            client_options=PLAIN if exchanges is None else client_options(exchanges.environment),
        )
        self.deviations: Deviations | None = None
        self.world = world_for(scenario.world, self._world_changed, self._may_change)
        self.agents: dict[str, Agent] = {}
        self._driver: Driver | None = None
        self.durable: Durable | None = None
        """What makes this run durable; None: it ends with its process."""
        self.resumed = False
        """Whether an earlier process began it."""
        self.begun = False
        """Whether everything that the scenario's application plans is on the agenda."""
        if exploring is not None and self._replies is not None:
            self.deviations = Deviations(
                self.runtime,
                self._replies,
                scenario.deviations,
                ledger=self.world.ledger.lines,
                exploring=exploring,
            )
        self._add_agents()

    @property
    def replies(self) -> PinnedReplies:
        """The replies of a run that is explored."""
        assert self._replies is not None, "it was not made with `exploring`"
        return self._replies

    @property
    def said(self) -> Said:
        """What the jobs of an undisturbed run were answered."""
        return self.replies.taken

    def _may_change(self) -> None:
        if self.deviations is not None:
            self.deviations.check_alive()

    def _world_changed(self, subject: str, what: str) -> None:
        job = get_current_job()
        now = self.runtime.clock.now()
        self.runtime.trace.add(events.WorldChanged(now, "" if job is None else job.id, subject, what))

    # -- agents ------------------------------------------------------------------------------------------------

    def _add_agents(self) -> None:
        builtin = WorldTools(self.world, tool_api(self.agents), extra=(get_any, get_all))
        for role, text in self.scenario.agents.items():
            self.agents[role] = self._agent(role, text, builtin)

    def _agent(self, role: str, text: AgentText, builtin: Mapping[str, Callable[..., Any]]) -> Agent:
        metadata = {key: str(value) for key, value in text.metadata.items()}
        if text.chat_style is not None and text.dialog:
            metadata["CHAT_STYLE"] = text.chat_style
        if text.tools_scope is not None:
            metadata["LLM_TOOLS_SCOPE"] = text.tools_scope
        if text.temperature is not None:
            metadata["TEMPERATURE"] = str(text.temperature)
        own = [tool_named(self.scenario, name, builtin) for name in text.tools]
        if not text.dialog:
            return Agent(
                role,
                text.prompt,
                tools=own,
                model=text.model,
                metadata=metadata,
                warmup=text.warmup,
                chat_style=None if text.chat_style == style_of_all(self.scenario) else text.chat_style,
            )
        reminder = text.reminder
        return DialogAgent(
            self._deliver,
            role,
            text.prompt,
            tools=own,
            add_answer_tool=text.answer_tool,
            reminder=None if reminder is None else RecurringReminder(reminder.text, reminder.min_dialog_len),
            model=text.model,
            metadata=metadata,
            warmup=text.warmup,
        )

    def _deliver(self, body: str, media: str | None = None) -> None:
        """The user of every dialog agent: reads and stays silent. What was sent is in the trace."""

    def _read_warmups(self) -> None:
        """Refuse an agent whose warmup cannot be read: STATEK reads it when it is given, before any job."""
        for agent in self.agents.values():
            try:
                parse_warmup(agent.warmup, bind_assignments=self.runtime.profile.as_tool_binds_assignment)
            except (SyntaxError, ValueError) as reason:
                raise Refused(reason) from reason

    # -- the stage that the driver plays on ---------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The virtual second."""
        return self.runtime.clock.now()

    @property
    def events(self) -> ExternalEvents:
        """The external events of the world."""
        return self.world.events

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do `action` at virtual second `when`."""
        self.runtime.at(when, action)

    def make_job(self, name: str, text: JobText, shared: dict[str, Any]) -> Job:
        """Create a job as an application does."""
        return self.runtime.create_job(
            self.agents[text.agent or next(iter(self.agents))],
            name=name,
            parent_job=None if text.parent is None else self.runtime.job(text.parent),
            warmup_code=text.warmup,
            shared_vars=shared,
        )

    def job(self, name: str) -> Job:
        """Return a job by its name."""
        return self.runtime.job(name)

    def thing(self, reference: WorldReference) -> object:
        """Return what a reference to the world stands for."""
        match reference.kind:
            case "owner":
                return self.world.owner_named(reference.name)
            case "queue":
                return self.world.queue
            case "item":
                return self.world.queue.items[reference.name]
            case "future":
                return self.world.events[reference.name]
            case _:
                assert_never(reference.kind)

    def make_subtask(self, job: Job, subtask_id: str) -> SubTaskHandler:
        """Make a job a subtask of its parent."""
        return create_sub_task(job, id=subtask_id)

    def find_subtask(self, subtask_id: str) -> SubTaskHandler | None:
        """Return the subtask of this id that a tool made."""
        return next((handle for handle in subtask_handles(self.runtime) if handle.id == subtask_id), None)

    def kill(self, reason: str, *, in_call: bool) -> None:
        """Kill the worker; in a call by what unwinds the step."""
        if in_call:
            raise WorkerKilled(reason)
        self.runtime.crash_worker(reason)

    def restart(self) -> None:
        """Start a new worker."""
        self.runtime.restart_worker()

    def _begin(self) -> Driver:
        for role in self.scenario.loops:
            self.runtime.add_loop(self.agents[role], self.world.queue.ready)
        driver = self._driver = Driver(self.scenario, self)
        if any(event.after for event in self.scenario.events):
            self.runtime.on_tool_returned.append(driver.tool_returned)
        if self.durable is not None:
            self.durable.begin(driver)
        if self.deviations is not None and not self.resumed:
            self.deviations.begin()
        driver.begin()
        self.begun = True
        if self.durable is not None:
            self.durable.begun()
        return driver

    def driver_memory(self) -> JSON:
        """Return what has happened of the scenario's events, and which calls of tools they count."""
        return None if self._driver is None else self._driver.memory()

    # -- running -----------------------------------------------------------------------------------------------

    def finish(self, *, allow_network: bool) -> RunRecord:
        """Run to the end and collect the facts."""
        return self.record(*self.play(allow_network=allow_network))

    def play(self, *, allow_network: bool) -> tuple[RunOutcome | None, RunError | None]:
        """Run to the end; return how it ended, and why the run itself failed if it did."""
        error: RunError | None = None
        outcome: RunOutcome | None = None
        with ExitStack() as stack:
            guard = None if allow_network else stack.enter_context(forbid_network())
            stack.enter_context(frozen_wall_clock(self.runtime.clock, active=self._reads_wall_clock()))
            try:
                self._read_warmups()
                driver = self._begin()
                outcome = self.runtime.run(self.scenario.until)
                if not self.scenario.deviations:
                    driver.check_finished()
                    self.check_finished()
            except BadInput:
                raise
            except Refused as refusal:
                error = RunError(type=_known_as(refusal.reason), message=str(refusal.reason))
            except StatekSimError as failure:
                error = RunError(type=type(failure).__name__, message=str(failure))
                if outcome is not None:
                    error = error.in_run(settled=outcome.settled, until=self.scenario.until)
        if guard is not None and guard.attempts and error is None:
            first = guard.attempts[0]
            error = RunError(type="NetworkForbidden", message=f"a real connection was tried: {first}")
        return outcome, error

    def record(self, outcome: RunOutcome | None, error: RunError | None) -> RunRecord:
        """Return the facts of a run that has ended so."""
        record = record_of(self.scenario, self.runtime, self.world, outcome, error, seed=self.seed)
        if self.resumed:
            # What an earlier process asked is in the trace; requests and answers themselves are not kept.
            return record
        return replace(record, calls=self.answered_calls())

    def answered_calls(self) -> tuple[AnsweredCall, ...]:
        """Return the LLM calls that were answered and metered, job by job."""
        default = self.runtime.settings.default_llm_api_provider
        return self.calls.answered(self.runtime.jobs, default_provider=default)

    def _reads_wall_clock(self) -> bool:
        """Freezing the wall clock costs milliseconds: only tools that may read it pay for it."""
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
    """Return one budget per set of limits: it starts anew with every block, and its helpers are costly to make."""
    return ExecutionBudget(**limits)


def measured(
    request: ChatRequest, content: str, *, tokenizers: TokenizerRegistry | None = None
) -> tuple[int, int]:
    """Return (prompt, completion) tokens as a provider with this model's tokenizer would report them."""
    tokenizer = tokenizer_for_model(request.model, tokenizers).tokenizer
    prompt = sum(message_tokens(message, tokenizer) for message in request.messages)
    prompt += tools_tokens(request.tools, tokenizer) + REPLY_PRIMING
    return prompt, completion_tokens(content, None, tokenizer)


def subtask_handles(runtime: Runtime) -> list[SubTaskHandler]:
    """Return the handlers of all subtask jobs, in the order of the jobs."""
    found = [job.py_env.local_state.get("sub_task_handler") for job in runtime.jobs]
    return [handle for handle in found if isinstance(handle, SubTaskHandler)]


__all__ = ["Job", "load_attribute", "measured", "run_scenario"]
