"""Runs a workload on the real statek package: `python -m bench.peer WORKLOAD SIZE` in the peer's interpreter.

Prints one line of JSON, a `Measurement`. Does not use the network: the provider builds requests
and counts their bytes like statek, and answers from a list.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Final

import dbzero as db0
import statek
from statek import StatekSettings, add_provider, tool
from statek.agents import Agent
from statek.exceptions import FutureError
from statek.executors.job import Job, JobDef, JobStatus
from statek.executors.utils import job_worker, unsuspend_jobs
from statek.future import FutureResult, temporal
from statek.llm_api import DefaultLLM_API_Impl, LLM_Response, LLM_Stats, LLM_StepData
from statek.prompt_config import make_system_prompt

from bench import workload
from bench.workload import Measurement

Script = Callable[[int], tuple[bytes, str]]
"""The raw body and the text of the reply to a job's turn, counted from 0."""

MESSAGES_PER_TURN: Final = 2
"""The system prompt comes first; every turn adds the assistant's code and its console output."""


class ScriptedAPI(DefaultLLM_API_Impl):
    """statek's own request building and byte counting, with the HTTP call replaced by a list."""

    script: Script

    async def _process_request(self, **request: Any) -> LLM_Response:
        payload = self._build_request_payload(**request)
        bytes_sent = len(json.dumps(payload).encode("utf-8"))
        body, text = self.script(len(payload["messages"]) // MESSAGES_PER_TURN)
        usage = json.loads(body)["usage"]
        return LLM_Response(
            step_data=LLM_StepData(text, None),
            stats=LLM_Stats(
                bytes_sent, len(body), None, usage["prompt_tokens"], usage["completion_tokens"], 0
            ),
        )


@tool
def price_of(item: str, **kwargs: Any) -> int:
    """Return the price of an item."""
    return workload.PRICES[item]


@db0.memo
class Gate:
    """What a waiting job waits for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_open = False


def _is_open(future: FutureResult) -> bool:
    return bool(future.deps.is_open)


def _ticket(future: FutureResult) -> str:
    if not future.deps.is_open:
        raise FutureError(future)
    return f"ticket {future.deps.number}"


_gates: list[Gate] = []
"""Created before the clock starts; job n requests a ticket once per run of its statement."""
_tickets_asked: list[int] = []


@temporal(complement=_ticket, condition=_is_open)
@tool
def next_ticket(**kwargs: Any) -> FutureResult:
    """Wait for a ticket."""
    number = len(_tickets_asked)
    _tickets_asked.append(number)
    return FutureResult(deps=_gates[number], state_num=0)


def _same_for_all(replies: Sequence[str]) -> Script:
    answers = [(workload.reply_body(reply), reply) for reply in replies]
    return answers.__getitem__


def _start(script: Script) -> JobDef:
    """Start statek on an empty store with unreachable limits, and define the only agent."""
    db0.init(tempfile.mkdtemp(prefix="bench-peer-"), read_write=True)
    db0.open("bench", "rw")
    limit = workload.UNLIMITED
    statek.init(
        StatekSettings(
            max_turns=limit, max_exceptions=limit, max_consecutive_exceptions=limit, max_token_usage=limit
        )
    )
    ScriptedAPI.script = staticmethod(script)
    add_provider("BENCH", llm_api_impl=ScriptedAPI, api_url="http://bench.invalid", api_key="none")
    agent = Agent(
        role=workload.ROLE,
        _system_prompt=make_system_prompt(workload.SYSTEM_PROMPT),
        _tools=[price_of, next_ticket],
        _metadata={"MODEL": workload.MODEL, "PROVIDER": "BENCH"},
    )
    return JobDef(agent=agent)


async def _run_rounds(jobs: Sequence[Job], goal: Any) -> int:
    """Step every job once per round until all are idle; return the number of steps."""
    semaphore = asyncio.Semaphore(1)
    resting = {goal, JobStatus.DONE}
    active, steps = list(jobs), 0
    while active:
        for job in active:
            await job_worker(semaphore, job)
        steps += len(active)
        active = [job for job in active if job.status not in resting]
    return steps


def _measure(name: str, size: int, jobs: Sequence[Job], goal: Any) -> Measurement:
    started = perf_counter()
    steps = asyncio.run(_run_rounds(jobs, goal))
    seconds = perf_counter() - started
    first = jobs[0]
    if any(job.status != goal or job.error for job in jobs):
        raise SystemExit(
            f"{name}: not every job ended {goal}; the first one's console: {first.py_env.console}"
        )
    return Measurement(
        workload=name,
        size=size,
        seconds=seconds,
        jobs=len(jobs),
        steps=steps,
        bytes_sent=sum(job.usage.total_bytes_sent for job in jobs),
        bytes_received=sum(job.usage.total_bytes_received for job in jobs),
        transcript=_transcript(first),
        extra={},
    )


def jobs(size: int) -> Measurement:
    """Run `size` jobs with three turns each, all with the same replies."""
    job_def = _start(_same_for_all(workload.JOB_REPLIES))
    return _measure("jobs", size, [Job(job_def=job_def) for _ in range(size)], JobStatus.DONE)


def varied_jobs(size: int) -> Measurement:
    """Run `size` jobs with three turns each, with different source text for every job."""
    texts = [workload.varied_replies(number) for number in range(size)]
    answers = [[(workload.reply_body(text), text) for text in replies] for replies in texts]
    requests = [0] * len(workload.JOB_REPLIES)

    def script(turn: int) -> tuple[bytes, str]:
        number = requests[turn]
        requests[turn] += 1
        return answers[number][turn]

    job_def = _start(script)
    return _measure("varied_jobs", size, [Job(job_def=job_def) for _ in range(size)], JobStatus.DONE)


def long_job(size: int) -> Measurement:
    """Run one job of `size` turns."""
    job_def = _start(_same_for_all(workload.long_replies(size)))
    return _measure("long_job", size, [Job(job_def=job_def)], JobStatus.DONE)


def suspend(size: int) -> Measurement:
    """Bring `size` jobs to SUSPENDED, review them all while nothing is ready, then wake one of them.

    `extra`, in seconds: `sweep` is a review of all waiting jobs, `wake` is a review that finds one
    ready, and that job's steps until it is DONE. The transcript is its.
    """
    job_def = _start(_same_for_all(workload.WAIT_REPLIES))
    _gates.extend(Gate(number) for number in range(size))
    waiting = [Job(job_def=job_def) for _ in range(size)]
    measured = _measure("suspend", size, waiting, JobStatus.SUSPENDED)
    chosen = size // 2
    started = perf_counter()
    unsuspend_jobs()
    swept = perf_counter()
    _gates[chosen].is_open = True
    unsuspend_jobs()
    asyncio.run(_run_rounds(waiting[chosen : chosen + 1], JobStatus.DONE))
    measured.extra.update(sweep=swept - started, wake=perf_counter() - swept)
    return replace(measured, transcript=_transcript(waiting[chosen]))


def _transcript(job: Job) -> tuple[str, ...]:
    return (*(str(line) for line in job.py_env.console or ()), str(job.py_env.exit_status))


WORKLOADS: Final = {run.__name__: run for run in (jobs, varied_jobs, long_job, suspend)}


def main() -> None:
    """Run one workload and print its measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench.peer", description=__doc__)
    parser.add_argument("workload", choices=sorted(WORKLOADS))
    parser.add_argument("size", type=int)
    arguments = parser.parse_args()
    print(WORKLOADS[arguments.workload](arguments.size).to_line())


if __name__ == "__main__":
    main()
