"""STATEK's functions for starting the worker, applied to the current test's reference runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from statek_sim.runtime.agents.agent import JobDef
from statek_sim.runtime.agents.warmup_source import WarmupSource
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.context import bound_context
from statek_sim.runtime.state.counters import LLM_Usage
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.state.tool_loop import in_event_loop
from statek_sim.runtime.task import submit_new_job, submit_new_jobs_batch
from statek_sim.shim.agents import Agent, Metadata, SupervisedAgent, update_warmup_defs
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.jobs import (
    AppJob,
    AppJobDef,
    AppPyEnv,
    AppUsage,
    StatekLocale,
    resolve_locale,
    set_model_pricing,
)
from statek_sim.shim.memo import stored_names
from statek_sim.shim.prompts import update_prompt_config
from statek_sim.shim.push_queue import serve_queues
from statek_sim.shim.queries import Tag, find
from statek_sim.shim.settings import get_statek_settings, use_settings
from statek_sim.shim.store import current_store, get_current_prefix
from statek_sim.shim.tools import registered
from statek_sim.usage.pricing import load_prices


def init(settings: Any = None, restricted: bool = True) -> None:
    """Use `settings`, except for their limits, and load their prices; the test has already created the runtime.

    Raises `NotCovered` for `restricted=False`, and for settings that the reference runtime does not support.
    """
    current_store()
    if not restricted:
        raise NotCovered("statek.init(restricted=False)")
    used = settings or get_statek_settings()
    use_settings(used)
    if used.statek_model_info_dir:
        for price in load_prices(Path(used.statek_model_info_dir)).prices:
            set_model_pricing(
                price.provider, price.model, price.input, price.output, price.cached, price.family
            )


def _start(
    agents: Sequence[Agent] | None = None,
    push_queues: Sequence[Any] | None = None,
    settings: Any = None,
    max_concurrency: int = 100,
    provider: str | None = None,
    task_queue_size_funcs: Mapping[Agent, Callable[[], int]] | None = None,
) -> None:
    used, sizes = settings or get_statek_settings(), task_queue_size_funcs or {}
    active: Sequence[Any] = [*find(Agent)] if agents is None else [*dict.fromkeys(agents)]
    init(used)
    update_prompt_config(used.prompt_defs, active)
    if used.warmup_defs_dir:
        supervised = [agent for agent in active if isinstance(agent, SupervisedAgent)]
        update_warmup_defs(Path(used.warmup_defs_dir), supervised)
    loops = [AgentLoopDef(agent, agent.warmup, sizes.get(agent, lambda: 0)) for agent in active]
    queues = [get_current_prefix().name] if push_queues is None or push_queues else []
    run_loops(loops, queues, max_concurrency, provider)


@wraps(_start, assigned=())
def start_statek(*args: Any, **options: Any) -> None:
    """Run jobs until no work is left; the real function never returns.

    Jobs are created for agents with a queue size, and all existing jobs run. The test's limits apply.
    """
    if in_event_loop():
        raise RuntimeError(
            "start_statek() cannot run inside an active event loop; use await start_statek_async(...) instead"
        )
    _start(*args, **options)


@wraps(_start, assigned=())
async def start_statek_async(*args: Any, **options: Any) -> None:
    """Run jobs until no work is left; the real function never returns."""
    _start(*args, **options)


@dataclass(frozen=True, slots=True)
class AgentLoopDef:
    """Defines an agent's loop."""

    agent: Agent
    warmup_code: WarmupSource
    task_queue_size_func: Callable[[], int]


async def run_agentic_loop(
    agent: Agent,
    warmup_code: WarmupSource,
    task_queue_size_func: Callable[[], int],
    queue_prefixes: Sequence[Any],
    max_concurrency: int = 100,
    provider: str | None = None,
    auto_terminate: bool = False,
) -> None:
    """Run one agent's loop until no work is left."""
    loop = AgentLoopDef(agent, warmup_code, task_queue_size_func)
    run_loops([loop], queue_prefixes, max_concurrency, provider)


async def run_agentic_fleet(
    agent_loop_defs: Sequence[AgentLoopDef],
    queue_prefixes: Sequence[Any],
    max_concurrency: int = 100,
    provider: str | None = None,
    auto_terminate: bool = False,
) -> None:
    """Run several agents' loops until no work is left."""
    run_loops(agent_loop_defs, queue_prefixes, max_concurrency, provider)


def run_loops(
    loops: Iterable[AgentLoopDef], queue_prefixes: Iterable[Any], max_concurrency: int, provider: str | None
) -> None:
    """Create jobs for the items in each loop's queue, serve push queues, and run all jobs until no work is left.

    Raises the error that ends the worker's loop, for example because a definition has errors.
    """
    runtime = current_runtime()
    runtime.set_worker(max_concurrency=max_concurrency, provider=provider)
    serve_queues(queue_prefixes)
    for loop in loops:
        # In STATEK, a loop's jobs run the loop's warmup code instead of the agent's.
        code = () if loop.warmup_code is None else loop.warmup_code
        runtime.add_loop(loop.agent, loop.task_queue_size_func, warmup_code=code)
    runtime.run()
    runtime.raise_loop_error()


class StatekClientAPI:
    """Replaces STATEK's client, which other processes use; this one creates jobs in the same process."""

    def submit_new_job(
        self,
        agent: Agent,
        shared_vars: Mapping[str, Any] | None = None,
        locale: StatekLocale | str | None = None,
        **kwargs: Any,
    ) -> Job:
        """Create a job."""
        return submit_new_job(agent, shared_vars, _resolved(locale), **kwargs)

    def submit_new_jobs_batch(
        self,
        agent: Agent,
        shared_vars_batch: Sequence[Mapping[str, Any] | None],
        locale: StatekLocale | str | None = None,
        **kwargs: Any,
    ) -> list[Job]:
        """Create one job per entry."""
        return submit_new_jobs_batch(agent, shared_vars_batch, _resolved(locale), **kwargs)


def _resolved(locale: StatekLocale | str | None) -> StatekLocale | None:
    return resolve_locale(locale) if isinstance(locale, str) else locale


@contextmanager
def statek_context(job: Any = None, agent: Any = None) -> Iterator[dict[str, Any]]:
    """Make `job` and `agent` current inside the `with` statement; `agent` defaults to the job's agent."""
    context: dict[str, Any] = {} if job is None else {"job": job}
    own = getattr(getattr(job, "job_def", None), "agent", None)
    if agent is not None or own is not None:
        context["agent"] = own if agent is None else agent
    with bound_context(context):
        yield context


class StoredObjects:
    """The shim's objects for a run store; see `Beside`. Singletons are restored into the existing objects."""

    in_place_of: Mapping[type, type] = {Job: AppJob, JobDef: AppJobDef, PyEnv: AppPyEnv, LLM_Usage: AppUsage}

    def named(self) -> Iterable[tuple[str, object]]:
        """Return `(name, object)` pairs for the stored classes and enums."""
        return [("app:Metadata", Metadata), *stored_names()]

    def tools(self) -> Iterable[Callable[..., Any]]:
        """Return all registered tools."""
        return registered()

    def saved(self) -> Mapping[str, object]:
        """Return the singletons, tags and member names."""
        return current_store().saved()

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Restore the singletons, tags and member names saved by another process."""
        current_store().resume(saved, Tag)
