"""Running a scenario on the reference runtime."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cache, partial

from statek_sim import trace as events
from statek_sim.backends.call_log import AnsweredCall, CallLog
from statek_sim.backends.deviation_plan import (
    DeviationPlan,
    undeviating,
    with_moved_events,
    with_other_limits,
)
from statek_sim.backends.deviations import Deviations, Exploring
from statek_sim.backends.driver import Driver, Refused
from statek_sim.backends.facts import record_of
from statek_sim.backends.pinned_replies import FirstRun, PinnedReplies
from statek_sim.backends.record import RunError, RunRecord
from statek_sim.backends.reference_runtime import ReferenceSide, agents_of
from statek_sim.backends.setup import AS_WRITTEN, RunOptions, harness_for, job_settings, script_of, world_for
from statek_sim.clock import VirtualClock
from statek_sim.errors import BadInput, BadScenario, StatekSimError
from statek_sim.providers.http_provider import Exchanges, HttpLLM, access_from, client_options
from statek_sim.providers.network import forbid_network
from statek_sim.providers.protocol import Provider
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.request import PLAIN
from statek_sim.runtime.execution.measuring import measured
from statek_sim.runtime.execution.runtime import RunOutcome, Runtime
from statek_sim.runtime.jobs.job import get_current_job
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.scenario.schema import Scenario
from statek_sim.semantics import Profile, profile_named
from statek_sim.usage.tokenizers import TokenizerRegistry
from statek_sim.wall_clock import frozen_wall_clock


def run_reference_scenario(scenario: Scenario, profile: str | Profile, options: RunOptions) -> RunRecord:
    """Run one scenario under one profile, a known one by its name, and return what it left behind.

    A failure of the run itself (the script does not fit, a real connection was tried) is part of the record; bad input
    raises `BadInput`.
    """
    exploring: Exploring | None = None
    if scenario.deviations:
        if options.exchanges is not None:
            raise BadScenario(
                f"{scenario.path}:{scenario.line}: scenario {scenario.id!r}: deviations: they depart from a scripted "
                "run, not from a recorded one"
            )
        undisturbed = ReferenceRun(undeviating(scenario), profile, options, exploring=Exploring())
        with closing(undisturbed.runtime):
            undisturbed.play(allow_network=True)
        exploring = Exploring(first_run=undisturbed.first_run)
    run = ReferenceRun(scenario, profile, options, exploring=exploring)
    with closing(run.runtime):
        return run.finish(allow_network=options.allow_network)


def _llm(
    scenario: Scenario, tokenizers: TokenizerRegistry | None, exchanges: Exchanges | None
) -> tuple[Provider, Callable[[], None]]:
    """Return what answers the requests of a run, and what to ask when it is over."""
    if exchanges is not None:
        llm = HttpLLM(exchanges.transport, partial(access_from, exchanges.environment))
        return llm, exchanges.check_finished
    script = ScriptedLLM(script_of(scenario), measure=partial(measured, tokenizers=tokenizers))
    return script, script.check_finished


class ReferenceRun:
    """One run in the making: `finish` plays it and collects the facts, `play` leaves it to be looked at."""

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
        self.seed = seed = scenario.seed if options.seed is None else options.seed
        exchanges, tokenizers = options.exchanges, options.tokenizers
        llm, self.check_finished = _llm(scenario, tokenizers, exchanges)
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
            tokenizers=tokenizers,
            client_options=PLAIN if exchanges is None else client_options(exchanges.environment),
        )
        self.deviations: Deviations | None = None
        self.world = world_for(scenario.world, self._world_changed, self._may_change)
        self.agents = agents_of(scenario, self.world)
        self.driver = Driver(scenario, ReferenceSide(self.runtime, self.world, self.agents))
        self.go_on: Callable[[Driver], None] = lambda _driver: None
        """Lets the driver of a durable run go on where the process before ended, before anything is planned."""
        self.planned: Callable[[], None] = lambda: None
        """Called once everything is planned."""
        self.resumed = False
        """Whether an earlier process began it."""
        self.begun = False
        """Whether everything that the scenario's application plans is on the agenda."""
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
        """The replies of a run that is explored."""
        assert self._replies is not None, "it was not made with `exploring`"
        return self._replies

    @property
    def first_run(self) -> FirstRun:
        """What the jobs of an undisturbed run were answered."""
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
        if driver.follows_calls:
            self.runtime.on_tool_returned.append(driver.tool_returned)
        self.go_on(driver)
        if self.deviations is not None and not self.resumed:
            self.deviations.begin()
        driver.begin()
        self.begun = True
        self.planned()

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
                self._begin()
                outcome = self.runtime.run(self.scenario.until)
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
