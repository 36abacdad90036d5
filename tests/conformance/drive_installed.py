"""Run the jobs on the installed statek package and write what came out: run by that package's interpreter.

`python -m tests.conformance.drive_installed OUTPUT.json [JOB ...]`, from `record.py`, which gives it a clean
environment. Nothing sleeps and nothing touches the network: the HTTP client's transport is a function, and pauses
between attempts return at once. A job takes its steps in the order in which jobs became able to run.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

# The shared tools ask which package is loaded, so this one comes first.
import dbzero as db0  # noqa: E402
import httpx  # noqa: E402
import statek  # noqa: E402
from statek.agents import DialogAgent  # noqa: E402
from statek.agents.agent import SupervisedAgent  # noqa: E402
from statek.chat_style import ChatStyle  # noqa: E402
from statek.executors.job import Job, JobStatus  # noqa: E402
from statek.executors.utils import job_worker, unsuspend_jobs  # noqa: E402
from statek.llm_api import LLM_API  # noqa: E402
from statek.llm_harness import get_llm_harness  # noqa: E402
from statek.prompt_config import make_system_prompt  # noqa: E402
from statek.settings import StatekSettings, get_provider_settings  # noqa: E402
from statek.task import create_new_job, start_dialog  # noqa: E402

from tests.conformance import tools  # noqa: E402
from tests.conformance.facts import Facts, Script, case_facts, job_facts, limit_named, reply_body  # noqa: E402
from tests.conformance.job import MAIN, ConformanceJob, Happening, Limits, Refusal, Reply  # noqa: E402
from tests.conformance.jobs import JOBS  # noqa: E402
from tests.conformance.world import WORLD, happen  # noqa: E402

URL = "https://llm.invalid/v1/chat/completions"
MOST_STEPS = 200
"""Steps of one case; more mean that it never comes to rest."""

_pause = asyncio.sleep
_client = httpx.AsyncClient


class BadCase(Exception):
    """A case cannot be recorded."""


class Case:
    """One job on the real package."""

    def __init__(self, plan: ConformanceJob) -> None:
        self.plan = plan
        self.script = Script({role: plan.plan(role) for role in plan.roles()})
        self.names: dict[str, str] = {}
        self.jobs: dict[str, Job] = {}
        self.queue: list[str] = []
        self.rested: set[str] = set()
        self.stops: dict[str, str | None] = {}
        self.refused: list[str] = []
        self.loop_died: str | None = None

    # -- setting the stage -----------------------------------------------------------------------------------------

    def run(self) -> Facts:
        WORLD.start_over()
        _configure(self.plan.limits, self.plan.settings)
        for role in self.plan.roles():
            WORLD.agents[role] = self._agent(role)
        httpx.AsyncClient = lambda **options: _client(
            **{**options, "transport": httpx.MockTransport(self._answer)}
        )
        try:
            asyncio.run(self._drive())
        finally:
            httpx.AsyncClient = _client
        if self.script.problem is not None:
            raise BadCase(self.script.problem)
        self._check_sizes()
        jobs = {
            name: job_facts(
                job, [error.error_message for error in job.job_def.get_errors() or ()], self.stops.get(name)
            )
            for name, job in self.jobs.items()
        }
        return case_facts(self.script, jobs, self.refused, self.loop_died)

    def _agent(self, role: str) -> Any:
        plan = self.plan.plan(role)
        metadata = {"MODEL": "gpt-4o", "PROVIDER": "OPENAI", **plan.metadata}
        own = [getattr(tools, name) for name in plan.tools]
        if plan.dialog:
            agent = DialogAgent(
                tools.send, tools=own, role=role, add_answer_tool=plan.answer_tool, _metadata=metadata
            )
            if plan.prompt:
                agent._system_prompt = make_system_prompt(plan.prompt)
        else:
            prompt = make_system_prompt(plan.prompt) if plan.prompt else None
            agent = SupervisedAgent(role=role, _system_prompt=prompt, _tools=own, _metadata=metadata)
        if plan.reminder is not None:
            agent.set_new_reminder(plan.reminder[0], min_dialog_len=plan.reminder[1])
        if plan.warns:
            agent.context["critical_error_handler"] = tools.warn
        return agent

    def _first_job(self) -> None:
        _agent, _plan = WORLD.agents[MAIN], self.plan
        if _plan.agent.dialog:
            start_dialog(_agent, _plan.message, _plan.warmup, shared_vars=deepcopy(dict(_plan.shared)))
            return
        _job = create_new_job(_agent, deepcopy(dict(_plan.shared)), warmup_code=_plan.warmup)
        if _plan.style is not None:
            _job.job_def.set_chat_style(ChatStyle[_plan.style])

    # -- the provider ----------------------------------------------------------------------------------------------

    def _answer(self, request: httpx.Request) -> httpx.Response:
        job = statek.get_current_job()
        turn = self.script.next(job.agent.role, self.names[db0.uuid(job)], json.loads(request.content))
        if isinstance(turn, Refusal):
            if turn.status is None:
                raise httpx.ReadTimeout("", request=request)
            return httpx.Response(turn.status)
        if isinstance(turn, Reply):
            for happening in turn.meanwhile:
                self._happen(happening)
        return httpx.Response(200, content=reply_body(turn))

    # -- the loop --------------------------------------------------------------------------------------------------

    async def _drive(self) -> None:
        try:
            self._first_job()
        except Exception as error:  # noqa: BLE001  # whatever the package raises is what is recorded
            self.refused.append(f"{type(error).__name__}: {error}")
            return
        happenings = list(self.plan.happens)
        gate = asyncio.Semaphore(1)
        steps = 0
        while self._review():
            if not self.queue:
                if not happenings:
                    return
                self.rested.clear()
                self._happen(happenings.pop(0))
                continue
            this_round, self.queue = self.queue, []
            while this_round:
                name = this_round.pop(0)
                steps += 1
                if steps > MOST_STEPS:
                    raise BadCase(f"more than {MOST_STEPS} steps")
                await self._step(gate, self.jobs[name], name)
                if self._waits_in_warmup(name):
                    self.rested.add(name)
                self._offer_all(last=name, running=this_round)

    async def _step(self, gate: asyncio.Semaphore, job: Any, name: str) -> None:
        """Take one step and find out why the unit ended, if it did: the package itself does not say."""
        errors = len(list(job.job_def.get_errors() or ()))
        length = len(job.py_env.console or ())
        await job_worker(gate, job)
        if job.status != JobStatus.DONE:
            self.stops[name] = None
            return
        new_lines = [str(line) for line in job.py_env.console or ()][length:]
        exit_status = job.py_env.exit_status
        if job.error is not None and any(
            line.startswith("Job ") and "failed with" in line for line in new_lines
        ):
            self.stops[name] = "crash"
        elif len(list(job.job_def.get_errors() or ())) > errors:
            self.stops[name] = "warmup"
        elif exit_status is None:
            self.stops[name] = "final"
        else:
            self.stops[name] = limit_named(str(exit_status)) or "exit"

    def _review(self) -> bool:
        """Begin a pass; return whether the worker loop is alive."""
        try:
            unsuspend_jobs()
        except Exception as error:  # noqa: BLE001  # whatever the package raises is what is recorded
            self.loop_died = f"{type(error).__name__}: {error}"
            return False
        self._offer_all()
        return True

    def _offer_all(self, *, last: str | None = None, running: Sequence[str] = ()) -> None:
        """Queue every job that can run: first those that the last step woke or started, then its own job.

        `running` are the jobs whose turn in this round is still to come.
        """
        self._meet()
        for name in sorted(self.jobs, key=lambda name: name == last):
            if name not in self.queue and name not in running and self._can_run(name):
                self.queue.append(name)

    def _meet(self) -> None:
        """Name new jobs: by role, numbered from the second of a role on."""
        newcomers = [job for job in db0.find(Job) if db0.uuid(job) not in self.names]
        for job in sorted(newcomers, key=lambda job: job.created_at):
            role = job.agent.role
            number = sum(name.partition("#")[0] == role for name in self.jobs) + 1
            name = role if number == 1 else f"{role}#{number}"
            self.names[db0.uuid(job)] = name
            self.jobs[name] = job

    def _can_run(self, name: str) -> bool:
        """Before 1.3.2 a job that waits in warmup can always run: here once per happening, to come to rest."""
        runnable = (JobStatus.READY, JobStatus.WARMING_UP, JobStatus.STARTED)
        return self.jobs[name].status in runnable and name not in self.rested

    def _waits_in_warmup(self, name: str) -> bool:
        job = self.jobs[name]
        return job.status == JobStatus.WARMING_UP and job.awaited_result is not None

    def _happen(self, happening: Happening) -> None:
        self._meet()
        try:
            happen(happening, self.jobs.__getitem__)
        except Exception as error:  # noqa: BLE001  # whatever the package raises is what is recorded
            self.refused.append(f"{type(happening).__name__}: {type(error).__name__}: {error}")

    def _check_sizes(self) -> None:
        """Sizes are taken from the bodies as sent; the package must have counted the same."""
        for name, job in self.jobs.items():
            counted, sent = job.usage.total_bytes_sent, self.script.raw_sizes.get(name, 0)
            if counted != sent and job.error is None:
                raise BadCase(f"{name} counted {counted} bytes, its requests have {sent}")


def _configure(limits: Limits, settings: Mapping[str, str]) -> None:
    statek.init(
        StatekSettings(
            max_turns=limits.turns,
            max_exceptions=limits.exceptions,
            max_consecutive_exceptions=limits.streak,
            max_token_usage=limits.tokens,
            limit_extension_per_completion=limits.extension,
            **settings,
        )
    )
    for cached in (get_llm_harness, get_provider_settings, LLM_API.get):
        cached.cache_clear()


def main() -> None:
    """Run the named jobs, or all, and write the record."""
    output, wanted = Path(sys.argv[1]), set(sys.argv[2:])
    asyncio.sleep = lambda seconds, result=None: _pause(0, result)
    # Its commits in the background can deadlock with a long run of short jobs; nothing is read back from disk.
    db0.init(tempfile.mkdtemp(prefix="conformance-"), read_write=True, autocommit=False)
    facts: dict[str, Facts] = {}
    problems: list[str] = []
    for number, plan in enumerate(JOBS.values()):
        if wanted and plan.name not in wanted:
            continue
        # Jobs of one case do not see those of another: each case has a store of its own.
        db0.open(f"case-{number}", "rw")
        try:
            facts[plan.name] = Case(plan).run()
        except BadCase as problem:
            problems.append(f"{plan.name}: {problem}")
    if problems:
        raise SystemExit("\n".join(problems))
    header = {
        "about": "What the jobs of tests/conformance/subjects do on the real package. Do not edit: made by "
        "`python -m tests.conformance.record`.",
        "statek": importlib.metadata.version("statek"),
        "dbzero": importlib.metadata.version("dbzero"),
        "httpx": importlib.metadata.version("httpx"),
        "python": ".".join(map(str, sys.version_info[:2])),
    }
    output.write_text(json.dumps({"header": header, "jobs": facts}), encoding="utf-8")


if __name__ == "__main__":
    main()
