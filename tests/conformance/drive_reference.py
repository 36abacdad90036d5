"""Run the jobs on our own runtime and read the same facts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from statek_sim import LLM_Harness, Runtime
from statek_sim.clock import FOREVER
from statek_sim.errors import ProviderHTTPError, ProviderTimeout, StoppedInTool
from statek_sim.harness.limits import ExtensionRule
from statek_sim.jobs import StatekSettings
from statek_sim.providers.http_provider import http_error_text
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.runtime.agents.agent import Agent, DialogAgent, RecurringReminder
from statek_sim.runtime.execution.agenda import PASS_SECONDS
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.status import JobStatus
from statek_sim.semantics import profile_named
from statek_sim.trace import WorldChanged
from tests.conformance import tools
from tests.conformance.facts import Facts, Script, case_facts, job_facts, reply_body
from tests.conformance.job import MAIN, ConformanceJob, Happening, Limits, Refusal, Reply
from tests.conformance.world import WORLD, happen

MOST_PASSES = 400
"""Passes of one case; more mean that it never comes to rest."""


def run_case(plan: ConformanceJob, profile: str) -> Facts:
    """Return the facts of one case under `profile`."""
    try:
        return _Case(plan, profile, PASS_SECONDS).run()
    except StoppedInTool:
        assert not plan.happens, "an event happens while a tool is awaited: plan it with `Runtime.at`"
        return _Case(plan, profile, FOREVER).run()


class _Case:
    """One job on our runtime, which runs for `step` seconds at a time; it is also the provider that answers."""

    def __init__(self, plan: ConformanceJob, profile: str, step: float) -> None:
        self.plan = plan
        self._step = step
        self.script = Script({role: plan.plan(role) for role in plan.roles()})
        self.runtime = _runtime(self, plan.limits, plan.settings, profile)
        self.refused: list[str] = []

    def run(self) -> Facts:
        WORLD.start_over()
        for role in self.plan.roles():
            WORLD.agents[role] = self._agent(role)
        self._drive()
        assert self.script.problem is None, self.script.problem
        jobs = {self._name(job): self._facts(job) for job in self.runtime.jobs}
        return case_facts(self.script, jobs, self.refused, self._loop_died())

    def _agent(self, role: str) -> Agent:
        plan = self.plan.plan(role)
        own = [getattr(tools, name) for name in plan.tools]
        metadata = {"PROVIDER": "OPENAI", **plan.metadata}
        context = {"critical_error_handler": tools.warn} if plan.warns else {}
        if not plan.dialog:
            return Agent(role, plan.prompt, tools=own, metadata=metadata, context=context)
        return DialogAgent(
            tools.send,
            role,
            plan.prompt,
            tools=own,
            metadata=metadata,
            context=context,
            add_answer_tool=plan.answer_tool,
            reminder=None if plan.reminder is None else RecurringReminder(*plan.reminder),
        )

    def _first_job(self) -> None:
        self.runtime.create_job(
            WORLD.agents[MAIN],
            shared_vars=deepcopy(dict(self.plan.shared)),
            warmup_code=self.plan.warmup,
            chat_style=self.plan.style,
            message=self.plan.message if self.plan.agent.dialog else None,
        )

    # -- the provider ----------------------------------------------------------------------------------------------

    def complete(self, request: ChatRequest) -> RawReply:
        """Answer one request from the script."""
        job = self.runtime.job(request.job_id)
        turn = self.script.next(request.role, self._name(job), request.body())
        if isinstance(turn, Refusal):
            if turn.status is None:
                raise ProviderTimeout("")
            raise ProviderHTTPError(http_error_text(turn.status), status=turn.status)
        if isinstance(turn, Reply):
            for happening in turn.meanwhile:
                self._happen(happening)
        return RawReply(reply_body(turn))

    # -- the loop --------------------------------------------------------------------------------------------------

    def _drive(self) -> None:
        try:
            self._first_job()
        except Exception as error:  # noqa: BLE001  # whatever it is, the real package must refuse alike
            self.refused.append(f"{type(error).__name__}: {error}")
            return
        happenings = list(self.plan.happens)
        clock, until = self.runtime.clock, 0.0 if self._step < FOREVER else FOREVER
        for _ in range(MOST_PASSES):
            outcome = self.runtime.run(until)
            if not outcome.worker_alive:
                return
            if outcome.settled or self._all_wait():
                if not happenings:
                    return
                self._happen(happenings.pop(0))
            until = clock.now() + self._step
        raise AssertionError(f"{self.plan.name}: more than {MOST_PASSES} passes")

    def _all_wait(self) -> bool:
        """Return whether every job rests: a release that waits in warmup looks busy to the clock."""
        return all(
            job.status is JobStatus.DONE
            or (job.awaited_result is not None and not job.awaited_result.check_condition())
            for job in self.runtime.jobs
        )

    def _happen(self, happening: Happening) -> None:
        try:
            happen(happening, self._job_named)
        except Exception as error:  # noqa: BLE001  # whatever it is, the real package must refuse alike
            self.refused.append(f"{type(happening).__name__}: {type(error).__name__}: {error}")

    # -- facts -----------------------------------------------------------------------------------------------------

    def _name(self, job: Job) -> str:
        """Return the job's name: its role, numbered from the second job of that role on."""
        same_role = [other for other in self.runtime.jobs if other.agent.role == job.agent.role]
        number = same_role.index(job) + 1
        return job.agent.role if number == 1 else f"{job.agent.role}#{number}"

    def _job_named(self, name: str) -> Job:
        return next(job for job in self.runtime.jobs if self._name(job) == name)

    def _facts(self, job: Job) -> Facts:
        name = self._name(job)
        sent = self.script.raw_sizes.get(name, 0)
        assert job.usage.total_bytes_sent == sent or job.error is not None, f"{name}: bytes sent"
        return job_facts(job, [error.error_message for error in job.job_def.get_errors()], job.stop_reason)

    def _loop_died(self) -> str | None:
        deaths = [
            event.change
            for event in self.runtime.trace.events
            if isinstance(event, WorldChanged) and event.subject == "worker"
        ]
        return deaths[-1].removeprefix("the worker loop died of ") if deaths else None


def _runtime(provider: _Case, limits: Limits, settings: Any, profile: str) -> Runtime:
    # The recordings were made by a driver that looks at jobs every 0.3 s, those that wait in warmup included.
    behaviour = replace(profile_named(profile), warmup_wait_pass_seconds=PASS_SECONDS)
    harness = LLM_Harness(
        limits.turns,
        limits.exceptions,
        limits.streak,
        limits.tokens,
        limits.extension,
        rule=ExtensionRule(behaviour.limit_extension),
    )
    return Runtime(provider, profile=behaviour, settings=StatekSettings(**settings), harness=harness)
