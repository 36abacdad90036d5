"""Runs a workload on our reference runtime: `python -m bench.ours WORKLOAD SIZE`.

Prints one line of JSON, a `Measurement`. Metering, including the tokenizer, and the trace are on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Final

from bench import workload
from bench.memory import resident_bytes
from bench.workload import Measurement
from statek_sim.harness.settings import StatekSettings
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.futures import FutureError, FutureResult, Signal, temporal
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.tools.declaration import tool
from statek_sim.usage.tokenizers import tokenizer_for_model

MOST_WAKES: Final = 200
"""Jobs woken one by one to time a wake-up; the median is used."""


class ListedReplies:
    """A provider that answers turn n of every job with the n-th body, or job n from its own list."""

    def __init__(self, bodies: Sequence[bytes], own: Mapping[str, Sequence[bytes]] | None = None) -> None:
        self._replies = [RawReply(body) for body in bodies]
        self._own = {job_id: [RawReply(body) for body in listed] for job_id, listed in (own or {}).items()}

    def complete(self, request: ChatRequest) -> RawReply:
        """Return the reply to the request's turn."""
        return self._own.get(request.job_id, self._replies)[request.turn - 1]


class StampedReplies(ListedReplies):
    """The same, but records when each request arrives."""

    def __init__(self, bodies: Sequence[bytes]) -> None:
        super().__init__(bodies)
        self.stamps: list[float] = []

    def complete(self, request: ChatRequest) -> RawReply:
        """Record the time and return the reply to the request's turn."""
        self.stamps.append(perf_counter())
        return super().complete(request)


@tool
def price_of(item: str, **kwargs: object) -> int:
    """Return the price of an item."""
    return workload.PRICES[item]


class Gates:
    """The gates that jobs wait for: job n waits for gate n, in the order of their first requests."""

    def __init__(self, size: int) -> None:
        self.signals = [Signal() for _ in range(size)]
        self.is_open = [False] * size
        self._asked = 0

    def next_number(self) -> int:
        """Return the number of the next gate that nobody waits for yet."""
        number = self._asked
        self._asked += 1
        return number

    def open(self, number: int) -> None:
        """Open a gate and wake the job waiting there."""
        self.is_open[number] = True
        self.signals[number].fire()


class TicketFuture(FutureResult):
    """Ready once its gate is open."""

    def __init__(self, gates: Gates, number: int) -> None:
        super().__init__(deps=gates.signals[number])
        self.gates = gates
        self.number = number


def _is_open(future: TicketFuture) -> bool:
    return future.gates.is_open[future.number]


def _ticket(future: TicketFuture) -> str:
    if not _is_open(future):
        raise FutureError(future)
    return f"ticket {future.number}"


def _ticket_tool(gates: Gates) -> Callable[..., FutureResult]:
    @temporal(complement=_ticket, condition=_is_open)
    @tool
    def next_ticket(**kwargs: object) -> FutureResult:
        """Wait for a ticket."""
        return TicketFuture(gates, gates.next_number())

    return next_ticket


def _bodies(replies: Sequence[str]) -> list[bytes]:
    return [workload.reply_body(reply) for reply in replies]


def _start(llm: ListedReplies, gates: Gates) -> tuple[Runtime, Agent]:
    """Return a runtime with unreachable limits and a loaded tokenizer, and its only agent."""
    limit = workload.UNLIMITED
    settings = StatekSettings(
        max_turns=limit, max_exceptions=limit, max_consecutive_exceptions=limit, max_token_usage=limit
    )
    agent = Agent(
        workload.ROLE,
        workload.SYSTEM_PROMPT,
        tools=[price_of, _ticket_tool(gates)],
        model=workload.MODEL,
        metadata={"PROVIDER": "BENCH"},
    )
    tokenizer_for_model(workload.MODEL).tokenizer.count("loaded")
    # The peer makes the same name known with `add_provider`.
    runtime = Runtime(llm, profile=workload.PROFILE, settings=settings, custom_providers=("BENCH",))
    return runtime, agent


def _measure(name: str, size: int, runtime: Runtime, goal: JobStatus) -> Measurement:
    started = perf_counter()
    runtime.run()
    seconds = perf_counter() - started
    first = runtime.jobs[0]
    if any(job.status is not goal or job.error for job in runtime.jobs):
        raise SystemExit(
            f"{name}: not every job ended {goal}; the first one's console: {first.py_env.console}"
        )
    usage = [job.usage for job in runtime.jobs]
    return Measurement(
        workload=name,
        size=size,
        seconds=seconds,
        jobs=len(runtime.jobs),
        steps=sum(job.steps for job in runtime.jobs),
        bytes_sent=sum(use.total_bytes_sent for use in usage),
        bytes_received=sum(use.total_bytes_received for use in usage),
        transcript=_transcript(first),
        extra={},
    )


def _transcript(job: Job) -> tuple[str, ...]:
    return (*(job.py_env.console or ()), str(job.py_env.exit_status))


def jobs(size: int) -> Measurement:
    """Run `size` jobs with three turns each, all with the same replies."""
    runtime, agent = _start(ListedReplies(_bodies(workload.JOB_REPLIES)), Gates(0))
    for _ in range(size):
        runtime.create_job(agent)
    return _measure("jobs", size, runtime, JobStatus.DONE)


def varied_jobs(size: int) -> Measurement:
    """Run `size` jobs with three turns each, with different source text for every job."""
    own = {str(number): _bodies(workload.varied_replies(number)) for number in range(size)}
    runtime, agent = _start(ListedReplies((), own), Gates(0))
    for job_id in own:
        runtime.create_job(agent, name=job_id)
    return _measure("varied_jobs", size, runtime, JobStatus.DONE)


def long_job(size: int) -> Measurement:
    """Run one job of `size` turns."""
    runtime, agent = _start(ListedReplies(_bodies(workload.long_replies(size))), Gates(0))
    runtime.create_job(agent)
    return _measure("long_job", size, runtime, JobStatus.DONE)


def turn_cost(size: int) -> Measurement:
    """Run one job with `size` turns; `extra` contains the seconds per turn in its `first` and `last` fifth."""
    llm = StampedReplies(_bodies(workload.long_replies(size)))
    runtime, agent = _start(llm, Gates(0))
    runtime.create_job(agent)
    measured = _measure("turn_cost", size, runtime, JobStatus.DONE)
    fifth, stamps = size // 5, llm.stamps
    measured.extra.update(
        first=(stamps[fifth] - stamps[0]) / fifth, last=(stamps[-1] - stamps[-1 - fifth]) / fifth
    )
    return measured


def suspend(size: int) -> Measurement:
    """Bring `size` jobs to SUSPENDED, look for work while nothing is ready, then wake one of them.

    `extra`, in seconds: `sweep` is a run that finds nothing to do, `wake` opens one gate and runs
    until its job is DONE. The transcript is that job's.
    """
    gates = Gates(size)
    runtime, agent = _start(ListedReplies(_bodies(workload.WAIT_REPLIES)), gates)
    for _ in range(size):
        runtime.create_job(agent)
    measured = _measure("suspend", size, runtime, JobStatus.SUSPENDED)
    started = perf_counter()
    runtime.run()
    swept = perf_counter()
    gates.open(size // 2)
    runtime.run()
    measured.extra.update(sweep=swept - started, wake=perf_counter() - swept)
    return replace(measured, transcript=_transcript(runtime.jobs[size // 2]))


def waiting(size: int) -> Measurement:
    """Suspend `size` jobs and wake some of them, one by one.

    `extra`: `bytes_per_job` is the resident memory that creating and suspending a job takes; `wake` is
    the median of the seconds from opening a gate until its job is DONE.
    """
    gates = Gates(size)
    runtime, agent = _start(ListedReplies(_bodies(workload.WAIT_REPLIES)), gates)
    before = resident_bytes()
    for _ in range(size):
        runtime.create_job(agent)
    measured = _measure("waiting", size, runtime, JobStatus.SUSPENDED)
    held = resident_bytes() - before
    wakes = [_wake(runtime, gates, number) for number in range(0, size, max(1, size // MOST_WAKES))]
    measured.extra.update(bytes_per_job=held / size, wake=median(wakes))
    return measured


def _wake(runtime: Runtime, gates: Gates, number: int) -> float:
    started = perf_counter()
    gates.open(number)
    runtime.run()
    return perf_counter() - started


WORKLOADS: Final = {run.__name__: run for run in (jobs, varied_jobs, long_job, turn_cost, suspend, waiting)}


def main() -> None:
    """Run one workload and print its measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench.ours", description=__doc__)
    parser.add_argument("workload", choices=sorted(WORKLOADS))
    parser.add_argument("size", type=int)
    arguments = parser.parse_args()
    print(WORKLOADS[arguments.workload](arguments.size).to_line())


if __name__ == "__main__":
    main()
