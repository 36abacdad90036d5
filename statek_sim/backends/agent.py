"""Runs a scenario on engine two, the tool-calling agent, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from statek_sim import trace as events
from statek_sim.agent.checkpoints.sessions import saved_run
from statek_sim.agent.context.manager import ContextManager
from statek_sim.agent.conversation import Envelopes
from statek_sim.agent.effects import Question, Receipt, Snapshot
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.resume import resumed
from statek_sim.agent.run_state import RunDeps
from statek_sim.agent.simulation import Settle, Simulation
from statek_sim.agent.spec import PROFILE, AgentSpec
from statek_sim.agent.tools.registry import Registry
from statek_sim.backends.agent_facts import record_of
from statek_sim.backends.agent_sessions import SOON, Moments, PinnedTurns, Sessions
from statek_sim.backends.agent_setup import (
    People,
    ScriptedTools,
    budget_of,
    choice_of,
    context_settings,
    layers_of,
    plan_of,
    side_model,
    slot_rules,
)
from statek_sim.backends.agent_slots import TOKEN, Desk, SlottedRun
from statek_sim.backends.call_log import CallLog
from statek_sim.backends.deviation_plan import (
    DeviationPlan,
    with_deviations,
    with_moved_events,
    with_other_limits,
)
from statek_sim.backends.driver import check_events
from statek_sim.backends.record import RunError, RunRecord
from statek_sim.backends.setup import AS_WRITTEN, RunOptions, scenario_harness, settings_of
from statek_sim.backends.user_plugins import AgentPlugins
from statek_sim.call_hooks import CallHooks
from statek_sim.clock import VirtualClock
from statek_sim.errors import BadInput, BadScenario, StatekSimError, Untimely
from statek_sim.mcp.client import McpFailure
from statek_sim.providers.network import forbid_network
from statek_sim.providers.protocol import Provider
from statek_sim.providers.wire.format import format_of
from statek_sim.scenario.agent import HarnessText
from statek_sim.scenario.events import Event
from statek_sim.scenario.schema import AgentText, JobText, Scenario
from statek_sim.trace import Trace
from statek_sim.usage.token_usage import TurnUsage
from statek_sim.values import unchanged

if TYPE_CHECKING:
    from statek_sim.agent.guards.guard import Guard


def run_agent_scenario(
    scenario: Scenario,
    profile: str = PROFILE,
    options: RunOptions = AS_WRITTEN,
    *,
    guards: Callable[[Guard], Guard] = unchanged,
    moments: Moments | None = None,
) -> RunRecord:
    """Run a scenario for engine two and return its record; raises `BadInput` for a profile other than `PROFILE`.

    `guards` wraps or replaces each built-in guard. `moments` records the points where the process may die. A
    scenario with deviations runs twice: first without them, to collect its model's answers.
    """
    if profile != PROFILE:
        raise BadInput(f"unknown agent profile {profile!r}; expected {PROFILE}")
    if scenario.deviations and moments is None:
        undisturbed = Moments()
        plain = replace(options, allow_network=False, exchanges=None)
        run_agent_scenario(with_deviations(scenario, ()), profile, plain, guards=guards, moments=undisturbed)
        moments = Moments(DeviationPlan(scenario.deviations), undisturbed.taken)
    return _Run(scenario, options, guards, moments).finish()


class _Run:
    """One run of a scenario; takes the same arguments as `run_agent_scenario`."""

    def __init__(
        self,
        scenario: Scenario,
        options: RunOptions,
        guards: Callable[[Guard], Guard],
        moments: Moments | None,
    ) -> None:
        self.scenario = scenario = with_moved_events(scenario)
        self.options = options
        self.moments = moments
        self.seed = seed = options.seed_of(scenario)
        self.clock = VirtualClock()
        self.trace = Trace(profile=PROFILE, seed=seed)
        settings = settings_of(scenario, preset=options.preset)
        self.default_provider = settings.default_llm_api_provider
        limited = options.harness(scenario_harness(scenario, PROFILE, settings, preset=options.preset))
        self.harness = with_other_limits(limited, scenario.deviations)
        self.envelopes = Envelopes(options.tokenizers, options.client_options)
        self.people = People()
        self.left = [event for event in scenario.events if event.after is not None]
        """Events that are waiting for tool calls that have not been made yet."""
        self.checks: list[Callable[[], None]] = [
            lambda: check_events(self.left),
            self.people.check_answered,
        ]
        self.calls = CallLog(self._provider())
        self.desk = None if scenario.slots is None else Desk(slot_rules(scenario.slots), self.clock)
        dies = moments is not None or any(event.action in ("crash", "restart") for event in scenario.events)
        self.sessions = Sessions() if dies else None
        self.driver = self._simulation()
        self.crashes, self.acts = CallHooks[Event](), CallHooks[Event]()
        """Actions that follow tool calls.

        A crash happens inside the call, after the tool's work; other actions happen after the call.
        """
        self.alive = True
        self.tools = ScriptedTools(scenario)
        self.checks.append(self.tools.check_finished)
        self.runs: dict[str, AgentRun] = {}
        self.unsent: list[Event] = []
        """Messages and answers that arrived while the process was dead."""
        self.restarts = sum(event.action == "restart" for event in self.scenario.events)
        """Number of processes that the scenario itself has yet to start."""
        self.specs = {role: self._spec(role, text) for role, text in scenario.agents.items()}
        self.parts = {
            role: AgentPlugins(
                scenario,
                role,
                text.harness,
                context=self._context(role, text.harness),
                judges=lambda name: side_model(self.specs[name], ""),
                guards=guards,
                find=self.specs[role].registry.get,
                model=self.specs[role].model,
            )
            for role, text in scenario.agents.items()
        }

    def _simulation(self) -> Simulation:
        """Return the driver for the runs. Where the process may die, the driver also reports commits and receipts."""
        dies = self.sessions is not None
        if self.moments is not None:
            self.moments.harness = self.harness
        return Simulation(
            self.calls,
            clock=self.clock,
            person=self._asked,
            committed=self._committed if dies else None,
            receipted=self._receipted if dies else None,
            tool_worked=self._tool_worked if dies else None,
            after_tool=self._tool_ended,
            choose=None if self.moments is None else self._choose,
        )

    def _choose(self, names: Sequence[str]) -> int:
        assert self.moments is not None, "only an explored run has moments"
        return self.moments.plan.choose(names, self.trace.events)

    def _provider(self) -> Provider:
        llm, check_finished = self.options.llm_of(self.scenario)
        if self.moments is not None and self.options.exchanges is None:
            return PinnedTurns(llm, self.moments)
        self.checks.append(check_finished)
        return llm

    # -- agents ------------------------------------------------------------------------------------------------

    def _spec(self, role: str, text: AgentText) -> AgentSpec:
        provider = str(text.metadata.get("PROVIDER") or self.default_provider)
        harness_text = text.harness
        try:
            return AgentSpec(
                role=role,
                model=text.model,
                provider=provider,
                wire=format_of(provider).NAME,
                temperature=text.temperature,
                layers=layers_of(text),
                registry=self._registry(text),
                choice=choice_of(text),
                plan=plan_of(text.workflow),
                budget=budget_of(harness_text.budget),
                max_iterations=harness_text.max_iterations,
                nudges=harness_text.nudges,
                nudges_in_all=harness_text.nudges_in_all,
                tool_timeout=harness_text.tool_timeout,
                retry_provider=harness_text.retry_provider,
            )
        except BadScenario:
            raise
        except (BadInput, McpFailure, ValueError) as error:
            raise BadScenario(f"{self.scenario.place}: agents.{role}: {error}") from error

    def _registry(self, text: AgentText) -> Registry:
        registry = Registry(task_types=self.scenario.task_types)
        for tool in self.tools.tools:
            registry.register(tool)
        for name in text.tools:
            if ":" in name:
                registry.register(self.tools.function(name))
        for source in self.tools.sources():
            registry.follow(source)
        return registry

    def _context(self, role: str, harness_text: HarnessText) -> ContextManager | None:
        text, spec = harness_text.context, self.specs[role]
        if text is None:
            return None
        meter = self.envelopes.meter(spec.model)
        return ContextManager(
            context_settings(text, None if text.summary == "rule" else self.specs[text.summary]),
            lambda message: meter.measure(message)[1],
            wire=spec.wire,
        )

    # -- jobs and events ---------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        started = {event.start for event in self.scenario.events if event.action == "start"}
        for event in self.scenario.events:
            if event.after is None:
                self.driver.at(event.at, partial(self._act, event))
                continue
            hooks = self.crashes if event.action == "crash" else self.acts
            hooks.add(event, tool=event.after.tool, call=event.after.call, job=event.after.job)
        for name, text in self.scenario.jobs.items():
            if name not in started:
                self.driver.at(text.at, partial(self._start, name, text))

    def _start(self, name: str, text: JobText) -> None:
        spec, deps = self._deps(text)
        run = self.runs[name] = self._maker(name, text)(name, spec, deps, text.message or "")
        if self.alive:
            self.driver.start(run)

    def _maker(self, name: str, text: JobText) -> Callable[..., AgentRun]:
        if self.desk is None:
            return AgentRun
        return partial(SlottedRun, desk=self.desk, priority=text.priority, submitter=text.submitter or name)

    def _asked(self, question: Question, answered: Settle) -> None:
        if self.desk is not None and question.token.startswith(TOKEN):
            self.desk.asked(question, answered)
        else:
            self.people.asked(question, answered)

    def _deps(self, text: JobText) -> tuple[AgentSpec, RunDeps]:
        role = text.agent or next(iter(self.specs))
        deps = RunDeps(
            clock=self.clock,
            trace=self.trace,
            harness=self.harness,
            envelopes=self.envelopes,
            parts=self.parts[role].made(),
        )
        return self.specs[role], deps

    # -- processes ---------------------------------------------------------------------------------------------

    def _kill(self) -> None:
        self.trace.add(events.ProcessKilled(self.clock.now(), ""))
        self._stop()
        self.people.forget()
        if self.scenario.slots is not None:
            # Only the process knows which runs have slots, and which are waiting for one.
            self.desk = Desk(slot_rules(self.scenario.slots), self.clock)

    def _end(self) -> None:
        """End the process.

        The trace is sealed first, because Python may finalize unfinished runs later, and their events must
        not become part of the trace.
        """
        self.trace.seal()
        self._stop()

    def _stop(self) -> None:
        self.alive = False
        self.driver.kill()
        if self.desk is not None:
            self.desk.die()

    def _own_crash(self) -> None:
        """Perform one of the scenario's crashes; do nothing if an explorer has already killed the process."""
        if self.moments is not None:
            self.moments.crashes += 1
            if not self.alive:
                return
        self._kill()
        if self.moments is not None and not self.restarts:
            # One of the explorer's deviations delayed the crash until after the scenario's own restart.
            self.driver.at(self.clock.now() + SOON, self._restart_after_kill)

    def _moment(self, what: str, job: str) -> bool:
        """Record a point where the process may die; return whether the process is alive afterwards."""
        if self.moments is None or not self.alive:
            return self.alive
        kill = self.moments.reached(self.trace, self.clock.now(), what, job)
        if kill is not None:
            self._kill()
            if kill.restart is not None:
                self.driver.at(self.clock.now() + kill.restart, self._restart_after_kill)
        return self.alive

    def _lasts(self) -> None:
        if self.moments is not None:
            self.moments.durable += 1

    def _committed(self, snapshot: Snapshot) -> None:
        assert self.sessions is not None, "only a run with sessions commits"
        what = f"commit {snapshot.point}"
        if self._moment(f"before {what}", snapshot.job):
            self.sessions.committed(snapshot)
            self._lasts()
            self._moment(what, snapshot.job)

    def _receipted(self, receipt: Receipt) -> None:
        assert self.sessions is not None, "only a run with sessions has receipts"
        if self._moment(f"before receipt {receipt.status}", receipt.job):
            self.sessions.receipted(receipt)
            self._lasts()
            self._moment(f"receipt {receipt.status}", receipt.job)

    def _restart(self) -> None:
        """Start a new process. Each run resumes from its last commit, or starts over if it has none."""
        if self.alive or self.sessions is None:
            raise BadScenario(
                f"{self.scenario.place}: the worker is restarted while still running; add a crash before that"
            )
        self.alive = True
        for name in list(self.runs):
            text = self.scenario.jobs[name]
            spec, deps = self._deps(text)
            answered = self.runs[name].counters.turns
            kept = self.sessions.kept(name)
            if kept is None:
                self._lost(name, answered)
                self._start(name, text)
                continue
            run = self.runs[name] = resumed(name, spec, deps, **saved_run(kept), made=self._maker(name, text))
            self._lost(name, answered[len(run.counters.turns) :])
            if run.status != "DONE" or run.inbox:
                self.driver.start(run)
        unsent, self.unsent = self.unsent, []
        for event in unsent:
            # After the runs have resumed and asked their questions again.
            self.driver.at(self.clock.now(), partial(self._act_on_run, event))

    def _restart_after_kill(self) -> None:
        # The scenario itself may have started a new process in the meantime.
        if not self.alive:
            self._restart()

    def _lost(self, job: str, turns: Sequence[TurnUsage]) -> None:
        if self.moments is not None:
            self.moments.lost += [(job, turn) for turn in turns]

    def _tool_worked(self, run: AgentRun, tool: str) -> None:
        """Kill the process if it is due to die in this call, after the tool's work and before the receipt."""
        crashes = self._following(self.crashes, run, tool)
        if self.moments is not None:
            self.moments.worked.append((run.job, tool))
            if not self._moment(f"{tool} worked", run.job):
                return
        for _ in crashes:
            self._own_crash()

    def _tool_ended(self, run: AgentRun, tool: str) -> None:
        """Execute the scenario's events that follow this tool call."""
        for event in self._following(self.acts, run, tool):
            self._act(event)

    def _following(self, hooks: CallHooks[Event], run: AgentRun, tool: str) -> list[Event]:
        following = hooks.returned(tool, run.job)
        self.left = [event for event in self.left if not any(event is one for one in following)]
        return following

    def _act(self, event: Event) -> None:
        match event.action:
            case "start":
                self._start(event.start, self.scenario.jobs[event.start])
            case "crash":
                self._own_crash()
            case "restart":
                self.restarts -= 1
                if self.moments is None or not self.alive:
                    # A process started by an explorer is already alive.
                    self._restart()
            case _:
                self._act_on_run(event)

    def _act_on_run(self, event: Event) -> None:
        run = self.runs.get(event.target)
        if run is None:
            what = "sends a message to" if event.action == "push" else "answers"
            raise Untimely(
                f"{self.scenario.place}: job {event.target!r} does not exist yet when the event {what} it"
            )
        if not self.alive and self.moments is not None:
            # After an explorer's crash, a message is repeated until a process is alive.
            self.unsent.append(event)
        elif event.action != "push":
            self.people.act(event, at=self.clock.now())
        elif not self.alive:
            raise BadScenario(
                f"{self.scenario.place}: cannot deliver the message to {event.target!r}: the worker is dead"
            )
        elif run.push(event.message):
            self.driver.start(run)

    # -- running -----------------------------------------------------------------------------------------------

    def finish(self) -> RunRecord:
        """Run to the end and return the record."""
        error: RunError | None = None
        settled = False
        with ExitStack() as stack:
            guard = None if self.options.allow_network else stack.enter_context(forbid_network())
            try:
                self._schedule()
                self._moment("nothing yet", "")
                settled = self.driver.run(self.scenario.until)
                for check in self.checks:
                    check()
            except BadScenario:
                raise
            except BadInput as problem:
                raise BadScenario(f"{self.scenario.place}: {problem}") from problem
            except StatekSimError as failure:
                error = RunError(type=type(failure).__name__, message=str(failure))
            finally:
                self._end()
        if guard is not None and guard.attempts and error is None:
            tried = f"a real connection was attempted: {guard.attempts[0]}"
            error = RunError(type="NetworkForbidden", message=tried)
        record = record_of(self.scenario, self.runs, self.trace, error, settled=settled)
        calls = (
            call
            for run in self.runs.values()
            for call in self.calls.answered_of(run.job, run.counters.turns, run.spec.provider.upper())
        )
        return replace(record, calls=tuple(calls))
