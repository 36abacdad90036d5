"""The reference runtime: agents, jobs and a scheduler in one deterministic, in-memory process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from statek_sim.clock import FOREVER, VirtualClock
from statek_sim.errors import BadInput
from statek_sim.harness.current import get_llm_harness
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import MOST_STEPS, ExtensionRule, HarnessLimits
from statek_sim.harness.settings import StatekSettings
from statek_sim.providers.protocol import Provider
from statek_sim.providers.wire.request import PLAIN, ClientOptions
from statek_sim.runtime.agents.agent import Agent, JobDef
from statek_sim.runtime.agents.warmup_source import WarmupSource
from statek_sim.runtime.execution.agenda import MOST_IDLE_POLLS, AgentLoop
from statek_sim.runtime.execution.job_queue import Order, WaitingRoom
from statek_sim.runtime.execution.job_registry import (
    JobBook,
    JobHost,
    check_arguments,
    inherited_locale,
)
from statek_sim.runtime.execution.scheduler import Scheduler
from statek_sim.runtime.execution.services import NOTHING_BROUGHT, Brought, Services
from statek_sim.runtime.execution.tool_calls import AfterCalls
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.post_processing import PostProcessor
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.context import captured_builtins, traced_job
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.llm_repr import format_print_arg
from statek_sim.sandbox.policy import SandboxPolicy
from statek_sim.semantics import DOCS, Profile, profile_named
from statek_sim.trace import Event, Trace
from statek_sim.usage.token_usage import UsageTotals
from statek_sim.usage.tokenizers import TokenizerRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The state at the end of a run. `settled` is False if the run stopped at the time limit `until`."""

    at: float
    settled: bool
    worker_alive: bool
    _room: WaitingRoom = field(repr=False)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The ids of the jobs waiting when this property is read, longest wait first."""
        return tuple(job.id for job in self._room.jobs())


class Runtime:
    """A STATEK process without dbzero, network or wall clock.

    `profile` is a name or a `Profile`; `harness` overrides the limits in `settings`; `llm` answers every
    request. All randomness comes from `seed`, and all times are virtual seconds. `custom_providers` are names
    that the application registered with STATEK's `add_provider`; they use OpenAI's format. While nothing else
    happens, futures that need polling are polled every 0.3 s, at most `idle_polls` times. `client_options`
    are STATEK's request settings. `brought` holds the tools and classes of an application that imports the
    shim as `statek`.
    """

    def __init__(
        self,
        llm: Provider,
        *,
        profile: Profile | str = DOCS,
        settings: StatekSettings | None = None,
        harness: LLM_Harness | None = None,
        clock: VirtualClock | None = None,
        seed: int = 0,
        order: Order = "fifo",
        max_concurrency: int = 100,
        max_steps: int = MOST_STEPS,
        budget: ExecutionBudget | None = None,
        tokenizers: TokenizerRegistry | None = None,
        idle_polls: int = MOST_IDLE_POLLS,
        custom_providers: Collection[str] = (),
        client_options: ClientOptions = PLAIN,
        brought: Brought = NOTHING_BROUGHT,
    ) -> None:
        if not callable(getattr(llm, "complete", None)):
            raise BadInput(f"llm={llm!r} has no method 'complete'; wrap a plain callable in FunctionLLM")
        self.profile = profile_named(profile) if isinstance(profile, str) else profile
        self.settings = settings or StatekSettings()
        self.clock = clock or VirtualClock()
        self.trace = Trace(profile=self.profile.name, seed=seed)
        harness = harness or LLM_Harness.from_limits(self.settings.harness_limits(), rule=None)
        self._loops: list[AgentLoop] = []
        self._provider: str | None = None
        self.services = Services(
            provider=llm,
            harness=harness.under(ExtensionRule(self.profile.limit_extension)),
            profile=self.profile,
            clock=self.clock,
            trace=self.trace,
            budget=budget or ExecutionBudget(),
            policy=policy_of(self.settings),
            tokenizers=tokenizers,
            default_provider=self.settings.default_llm_api_provider,
            custom_providers=custom_providers,
            client_options=client_options,
            brought=brought,
        )
        """The services shared by all steps."""
        self.book = JobBook(self.services)
        self._after_calls = AfterCalls(self.services.budget, lambda action: self.at(self.clock.now(), action))
        self.on_tool_returned = self._after_calls.watchers
        """Called with the job id and tool name after a tool's work. Raising `WorkerKilled` kills the worker."""
        self._max_steps = max_steps
        self._scheduler = Scheduler(
            self.services,
            self.clock.advance_to,
            order=order,
            max_concurrency=max_concurrency,
            seed=seed,
            max_steps=max_steps,
            idle_polls=idle_polls,
        )
        self.host = JobHost(self, self.settings, self.services, self._scheduler, self._after_calls)
        """The runtime's interface for its jobs."""

    def use(self, settings: StatekSettings) -> None:
        """Use other settings for later steps and definitions; the limits stay as they are."""
        self.settings = settings
        self.services.policy = policy_of(settings)
        self.services.default_provider = self._provider or settings.default_llm_api_provider
        self.host.use(settings)

    # -- jobs --------------------------------------------------------------------------------------------------

    def create_job(
        self,
        agent: Agent,
        *,
        shared_vars: Mapping[str, object] | None = None,
        parent_job: Job | None = None,
        warmup_code: WarmupSource = None,
        chat_style: ChatStyle | str | None = None,
        locale: str | None = None,
        message: object = None,
        name: str | None = None,
        post_processing: PostProcessor | Iterable[PostProcessor] | None = None,
        prompt_params: Mapping[str, object] | None = None,
        **job_params: object,
    ) -> Job:
        """Create a READY job with `shared_vars` as variables and with the parent job's locale and error handlers.

        `message` is the first user message. `name` becomes the job's id and must be unique. Invalid warmup
        code raises SyntaxError or ValueError here, before the job exists (behaviour 7.1). `post_processing`
        overrides the agent's POST_PROCESSORS metadata. `prompt_params` are additional prompt parameters,
        which may have the same names as this method's arguments.
        """
        check_arguments(agent, name, job_params)
        self.book.check_free(name)
        locale = inherited_locale(locale, parent_job)
        params = {**job_params, **(prompt_params or {})}
        definition = self.book.define(agent, warmup_code, chat_style, locale, params, post_processing)
        job = self.book.make(self.host, name, definition, parent_job, shared_vars or {})
        if message is not None:
            job.push_user_message(message)
        self._scheduler.enter(job)
        return job

    def start(self, definition: JobDef, parent_job: Job | None = None) -> Job:
        """Create a READY job from a definition, without the parent job's locale and error handlers."""
        job = self.book.make(self.host, None, definition, None, {})
        job.parent_job = parent_job
        self._scheduler.enter(job)
        return job

    @property
    def jobs(self) -> list[Job]:
        """All jobs, in creation order."""
        return list(self.book.jobs.values())

    def job(self, name: str) -> Job:
        """Return the job with this id; raises `BadInput` for an unknown id."""
        return self.book.named(name)

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, until: float = FOREVER) -> RunOutcome:
        """Run until no job can continue, because every job is DONE or waiting for an event that is not scheduled.

        The run stops early at virtual second `until`. Raises `BadInput` if `until` has passed, and
        `StoppedInTool` if a job is awaiting an async tool at that time.
        """
        if not until >= self.clock.now():
            raise BadInput(
                f"until={until!r}: the clock is already at {self.clock.now():g} s; expected a later virtual second"
            )
        with ExitStack() as stack:
            stack.enter_context(captured_builtins(format_print_arg))
            stack.enter_context(active(self))
            stack.enter_context(get_llm_harness.simulated(self.services.harness))
            settled = self._scheduler.run(until)
        return self.outcome(settled=settled)

    def outcome(self, *, settled: bool) -> RunOutcome:
        """Return the outcome so far."""
        return RunOutcome(
            at=self.clock.now(),
            settled=settled,
            worker_alive=self._scheduler.alive,
            _room=self.services.waiting,
        )

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Call `action` at virtual second `when`, as an external event."""
        self._scheduler.at(when, action)

    def add_loop(
        self, agent: Agent, queue_size: Callable[[], int], *, warmup_code: WarmupSource = None
    ) -> None:
        """Add a loop that keeps one `agent` job waiting to start for each item in the queue (behaviour 10).

        `warmup_code` replaces the agent's. An error on the job definition ends the loop and the worker
        (STATEK's circuit breaker).
        """
        definition = self.book.define(agent, None, None, None, {}, only=warmup_code)
        loop = AgentLoop(
            agent,
            warmup_code,
            definition,
            queue_size,
            jobs=self.book.jobs,
            create=self.start,
            clock=self.clock,
            most_at_once=self._max_steps,
        )
        self._loops.append(loop)
        self.services.register(agent)
        self._scheduler.on_pass.append(loop.start_jobs)

    def before_loops(self, hook: Callable[[int], None]) -> None:
        """Call `hook` in each pass before loops create jobs, with the number of jobs that may still start."""
        if hook not in self._scheduler.on_pass:
            self._scheduler.on_pass.insert(0, hook)

    def set_worker(self, *, max_concurrency: int, provider: str | None) -> None:
        """Set the maximum number of concurrent steps, and the default provider (None: the one in the settings)."""
        self._scheduler.limit(max_concurrency)
        self._provider = provider
        self.use(self.settings)

    def raise_loop_error(self) -> None:
        """Raise the error that ended the worker's loop, if any, and start a new worker without agents' loops."""
        error = self._scheduler.loop_error
        if error is not None:
            started = [loop.start_jobs for loop in self._loops]
            self._scheduler.on_pass[:] = [hook for hook in self._scheduler.on_pass if hook not in started]
            self._loops.clear()
            self.restart_worker()
            raise error

    def choose_by(self, choose: Callable[[Sequence[Job]], int]) -> None:
        """Set the function that chooses the next job. The function takes the ready jobs and returns an index."""
        self._scheduler.choose_by(choose)

    # -- the worker process ------------------------------------------------------------------------------------

    @property
    def limits(self) -> HarnessLimits:
        """The harness limits, before any extension."""
        return self.services.harness.limits

    @property
    def worker_alive(self) -> bool:
        """Whether the worker process is alive."""
        return self._scheduler.alive

    @property
    def between_steps(self) -> bool:
        """Whether the worker is between steps, where it wakes up waiting jobs and lets loops create jobs."""
        return self._scheduler.passing

    def end_code(self, death: WorkerKilled) -> NoReturn:
        """Raise `death` in the job code that is running; the code cannot catch it."""
        self.services.budget.end(death)

    def end_tools(self, death: WorkerKilled) -> None:
        """Stop all async tools, because the worker died in one of them."""
        self._scheduler.tools.die(str(death))

    def crash_worker(self, reason: str = "killed") -> None:
        """Kill the worker process. Steps in flight are lost, but the jobs' stored state is kept."""
        self._scheduler.die(reason)

    def crash_worker_in_tool(self, name: str, call: int = 1, *, job: str | None = None) -> None:
        """Kill the worker when the `call`-th call to tool `name` has done its work but not returned.

        Calls are counted across all jobs, or only for the job with the id `job`.
        """
        self._after_calls.kill(name, call, job)

    def after_tool(
        self, name: str, call: int, action: Callable[[], object], *, job: str | None = None
    ) -> None:
        """Call `action` after the `call`-th call to tool `name`; calls are counted as in `crash_worker_in_tool`.

        Actions registered for the same call run in registration order.
        """
        self._after_calls.do(action, name, call, job)

    def restart_worker(self) -> None:
        """Start a new worker process on the same state, and clear the errors on all loops' definitions.

        If STATEK no longer finds a loop's definition, the loop creates a new definition, and the old
        definition keeps its errors.
        """
        for loop in self._loops:
            loop.begin_anew(self.book.define(loop.agent, None, None, None, {}, only=loop.warmup_code))
        self._scheduler.restart(self.jobs)

    def saved(self) -> dict[str, object]:
        """Return the state for `resume` in a new process: jobs, time, waits and loops, without steps in flight."""
        return {
            "now": self.clock.now(),
            "agents": [*self.services.agents],
            "book": self.book.saved(),
            "waiting": self.services.waiting.saved(),
            "scheduler": self._scheduler.saved(),
            "loops": [loop.saved() for loop in self._loops],
        }

    def resume(self, saved: Mapping[str, Any], trace: Iterable[Event]) -> None:
        """Restore the state saved by another process, which had recorded the events `trace`.

        The loops must already have been added.
        """
        self.clock.advance_to(saved["now"])
        self.trace.resume(trace)
        self.services.resume_agents(saved["agents"])
        self.book.resume(saved["book"])
        self.services.waiting.resume(saved["waiting"], self.book.jobs)
        self._scheduler.resume(saved["scheduler"], self.book.jobs)
        for loop, state in zip(self._loops, saved["loops"], strict=True):
            loop.resume(state)

    def close(self) -> None:
        """Release async tools that were interrupted by a kill or by a run's time limit, and end the trace.

        Python runs the tools' `finally` blocks at this point, so read the run's effects before calling this method.
        """
        self.trace.seal()
        self._scheduler.close()

    def usage(self) -> UsageTotals:
        """Return the total usage across all jobs."""
        return self.book.usage()


def policy_of(settings: StatekSettings) -> SandboxPolicy:
    """Return the policy for model-written code under `settings`."""
    return SandboxPolicy(
        max_source_bytes=settings.python_sandbox_max_source_bytes,
        max_ast_nodes=settings.python_sandbox_max_ast_nodes,
        allowed_imports=_words(settings.python_sandbox_allowed_imports),
        allowed_tools=_words(settings.python_sandbox_allowed_tools),
        restricted=settings.python_sandbox_mode.lower() != "off",
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


# -- which runtime module-level functions belong to ----------------------------------------------------------------

_ACTIVE: ContextVar[Runtime | None] = ContextVar("statek_sim_runtime", default=None)


@contextmanager
def active(runtime: Runtime) -> Iterator[None]:
    """Let module-level functions such as `create_new_job` use `runtime` inside the block."""
    token = _ACTIVE.set(runtime)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def current_runtime() -> Runtime:
    """Return the executing job's runtime, or else the active runtime; raises `BadInput` if there is neither."""
    job = traced_job()
    if job is not None:
        return cast("Runtime", job.host.runtime)  # wherever jobs are created, the host's runtime is a Runtime
    runtime = _ACTIVE.get()
    if runtime is None:
        raise BadInput(
            "no runtime is active; create jobs with Runtime.create_job, or inside `with active(runtime)`"
        )
    return runtime
