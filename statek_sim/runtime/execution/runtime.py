"""The reference runtime: agents, jobs and a scheduler in one deterministic, in-memory process."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, cast

from statek_sim import trace as events
from statek_sim.call_hooks import CallHooks
from statek_sim.clock import FOREVER, VirtualClock
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.harness.current import get_llm_harness
from statek_sim.harness.harness import LLM_Harness, harness_of
from statek_sim.harness.limits import MOST_STEPS, ExtensionRule
from statek_sim.harness.settings import StatekSettings
from statek_sim.ids import IdSource
from statek_sim.metering.tokenizers import TokenizerRegistry
from statek_sim.metering.usage import UsageTotals
from statek_sim.providers.protocol import Provider
from statek_sim.providers.wire.request import PLAIN, ClientOptions
from statek_sim.runtime.agents.agent import Agent, DialogAgent
from statek_sim.runtime.agents.job_def import JobDef
from statek_sim.runtime.agents.warmup_source import WarmupSource, parse_warmup
from statek_sim.runtime.dialogs.history import HistoryProjection
from statek_sim.runtime.execution.agent_loop import AgentLoop
from statek_sim.runtime.execution.model_name import models_by_difficulty
from statek_sim.runtime.execution.rounds import Order
from statek_sim.runtime.execution.scheduler import MOST_IDLE_POLLS, Scheduler
from statek_sim.runtime.execution.services import NOTHING_BROUGHT, Brought, Services
from statek_sim.runtime.execution.waiting import WaitingRoom
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.job_defs import JobDefs
from statek_sim.runtime.jobs.post_processing import PostProcessor, normalised, post_processors
from statek_sim.runtime.state.chat_style import ChatStyle, parse_chat_style
from statek_sim.runtime.state.containment import WorkerKilled
from statek_sim.runtime.state.context import captured_builtins, traced_job
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.runtime.stored.block_end import FORESEEN_RELEASE, foresee
from statek_sim.runtime.tools.async_tools import run_virtual
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.llm_repr import format_print_arg
from statek_sim.sandbox.policy import SandboxPolicy
from statek_sim.semantics import DOCS, Profile, profile_named
from statek_sim.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended. `settled` is False when time ran out."""

    at: float
    settled: bool
    worker_alive: bool
    _room: WaitingRoom = field(repr=False)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The jobs that wait now, oldest wait first; listed when asked, because there may be very many."""
        return tuple(job.id for job in self._room.jobs())


class Runtime:
    """A STATEK process without dbzero, network or wall clock.

    `profile` is a name or a `Profile`; `harness` overrides the limits of `settings`; `llm` answers every
    request. All randomness comes from `seed`, all times are virtual seconds. `custom_providers` are names that
    the application gave to STATEK's `add_provider`: they speak OpenAI's format. `idle_polls`: how often, every 0.3 s,
    futures that can only be asked are asked while nothing else happens.
    `client_options` is what STATEK's settings say about requests beside the conversation. `brought`: what an
    application brings that runs behind the import alias.
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
        self.default_chat_style = _default_style(self.settings.chat_style)
        self.console_tag = self.settings.xml_box_console or None
        self.default_difficulty = str(self.settings.statek_default_difficulty)
        self._ids = IdSource()
        self._jobs: dict[str, Job] = {}
        self._loops: list[AgentLoop] = []
        self._after_tools: CallHooks[Callable[[], object]] = CallHooks()
        self._tool_kills: CallHooks[str] = CallHooks()
        self.on_tool_returned: list[Callable[[str, str], object]] = []
        """Called with job and tool when a call has done its work and not returned; WorkerKilled kills the worker."""
        self._brought = brought
        self._definitions = JobDefs(brought.job_def)
        self._services = Services(
            provider=llm,
            harness=(harness or harness_of(self.settings)).under(ExtensionRule(self.profile.limit_extension)),
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
        self._max_steps = max_steps
        self._scheduler = Scheduler(
            self._services,
            self.clock.advance_to,
            order=order,
            max_concurrency=max_concurrency,
            seed=seed,
            max_steps=max_steps,
            idle_polls=idle_polls,
        )

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
        """Create a READY job: shared locals, the parent's locale and a copy of its error handlers.

        `message` is the first user message. `name` becomes the job's id (it must be new). Warmup that cannot be
        read raises its SyntaxError or ValueError here, before any job exists (behaviour 7.1).
        `post_processing` replaces what the agent's POST_PROCESSORS metadata say. `prompt_params` are further parameters
        of the prompt, for names that are taken here.
        """
        _check_arguments(agent, name, job_params)
        if name in self._jobs:
            raise BadInput(f"job {name!r} exists already; names of jobs are unique within a runtime")
        locale = _inherited(locale, parent_job)
        params = {**job_params, **(prompt_params or {})}
        definition = self.define(agent, warmup_code, chat_style, locale, params, post_processing)
        job_id = self._free_id() if name is None else name
        self._services.register(agent)
        meter = self._services.meter(str(agent.metadata["MODEL"]))
        job = self._brought.job(self, job_id, definition, HistoryProjection(meter), parent_job)
        job.py_env.update_locals(**(shared_vars or {}))
        self._jobs[job_id] = job
        parent_id = None if parent_job is None else parent_job.id
        self.trace.add(
            events.JobCreated(self.clock.now(), job_id, agent.role, str(agent.metadata["MODEL"]), parent_id)
        )
        if not job.py_env.stores:
            job.remark(foresee({}, job.py_env.local_state), FORESEEN_RELEASE)
        if parent_job is not None:
            job.add_error_handlers_from(parent_job)
        if message is not None:
            job.push_user_message(message)
        self._scheduler.enter(job)
        return job

    def _free_id(self) -> str:
        """Return the next id that no job was named after."""
        while (job_id := self._ids.next("job")) in self._jobs:
            pass
        return job_id

    def define(
        self,
        agent: Agent,
        warmup_code: WarmupSource,
        chat_style: ChatStyle | str | None,
        locale: str | None,
        job_params: Mapping[str, object],
        post_processing: PostProcessor | Iterable[PostProcessor] | None = None,
        *,
        shared: bool = True,
    ) -> JobDef:
        """Return the definition of such jobs: the one that there is, or a new one that no job has."""
        # The job's own warmup comes before its agent's, each numbered and cut by itself (behaviour 7.1).
        own, agents = (
            parse_warmup(source, bind_assignments=self.profile.as_tool_binds_assignment)
            for source in (warmup_code, agent.warmup)
        )
        # A definition is made with its models read, so a name that cannot be read means no job (behaviour 11).
        models_by_difficulty(agent.metadata["MODEL"])
        # STATEK reads the names in it, to copy the caller's variables: in one text as it was written, separators and
        # lines for tool calls included. The agent's warmup fails when it runs.
        for text in (warmup_code,) if isinstance(warmup_code, str) else [block.code for block in own]:
            ast.parse(text)
        parsed = (*own, *agents)
        style = _chat_style(agent, chat_style)
        explicit = post_processing is not None
        processors = normalised(post_processing) if explicit else post_processors(agent.metadata)
        if not shared:
            return self._definitions.make(agent, parsed, style, locale, job_params, processors)
        return self._definitions.get(
            agent, parsed, style, locale, job_params, processors, own_blocks=len(own)
        )

    @property
    def jobs(self) -> list[Job]:
        """Every job, in the order of creation."""
        return list(self._jobs.values())

    def job(self, name: str) -> Job:
        """Return the job with this id; an unknown one is `BadInput`."""
        try:
            return self._jobs[name]
        except KeyError:
            known = ", ".join(self._jobs) or "none"
            raise BadInput(f"there is no job {name!r}; jobs: {known}") from None

    # -- running -----------------------------------------------------------------------------------------------

    def run(self, until: float = FOREVER) -> RunOutcome:
        """Run until every job is DONE or waits for something that nothing scheduled can bring."""
        with ExitStack() as stack:
            stack.enter_context(captured_builtins(format_print_arg))
            stack.enter_context(active(self))
            stack.enter_context(get_llm_harness.simulated(self._services.harness))
            settled = self._scheduler.run(until)
        return RunOutcome(
            at=self.clock.now(),
            settled=settled,
            worker_alive=self._scheduler.alive,
            _room=self._services.waiting,
        )

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Do `action` at virtual second `when`: an external event."""
        self._scheduler.at(when, lambda: _ignore(action()))

    def add_loop(
        self, agent: Agent, queue_size: Callable[[], int], *, warmup_code: WarmupSource = None
    ) -> None:
        """Keep as many jobs of `agent` waiting to start as the queue has items (behaviour 10).

        The loop dies, and the worker with it, once the job definition has errors: STATEK's circuit breaker.
        """
        definition = self.define(agent, warmup_code, None, None, {})
        loop = AgentLoop(
            agent,
            warmup_code,
            definition,
            queue_size,
            jobs=self._jobs,
            create=self.create_job,
            clock=self.clock,
            most_at_once=self._max_steps,
        )
        self._loops.append(loop)
        self._services.register(agent)
        self._scheduler.on_pass.append(loop.start_jobs)

    # -- the worker process ------------------------------------------------------------------------------------

    def crash_worker(self, reason: str = "killed") -> None:
        """Kill the worker process: steps in flight are lost, jobs and the world stay as they are."""
        self._scheduler.die(reason)

    def crash_worker_in_tool(self, name: str, call: int = 1, *, job: str | None = None) -> None:
        """Kill the worker when the `call`-th call of tool `name` has done its work but not returned.

        Calls are counted over all jobs, or over the one named `job`.
        """
        self._tool_kills.add(f"killed in call {call} of {name}", tool=name, call=call, job=job)

    def after_tool(
        self, name: str, call: int, action: Callable[[], object], *, job: str | None = None
    ) -> None:
        """Do `action` as soon as the `call`-th call of tool `name` has ended; counted like `crash_worker_in_tool`.

        Several actions after one call are done in the order in which they were asked for.
        """
        self._after_tools.add(action, tool=name, call=call, job=job)

    def restart_worker(self) -> None:
        """Start a new worker process on the same state; only a loop that begins anew clears its definition's errors.

        A loop whose definition STATEK does not find again makes a new one, and the old one keeps its errors.
        """
        for loop in self._loops:
            loop.begin_anew(self.define(loop.agent, loop.warmup_code, None, None, {}))
        self._scheduler.restart(self.jobs)

    def close(self) -> None:
        """Give up async tools that a kill, or the end of a run in time (`until`), left in the middle.

        Python lets them clean up then, so this comes after everything that looks at what they did. The trace ends here.
        """
        self.trace.seal()
        self._scheduler.close()

    # -- what jobs need (runtime.host.Host) --------------------------------------------------------------------

    def job_changed(self, job: Job) -> None:
        """Queue a job that became runnable."""
        self._scheduler.offer(job)

    def tool_returned(self, job: Job, name: str) -> None:
        """Let happen what was asked to follow this tool call: the worker's death comes last, and within the call."""
        kills = self._tool_kills.returned(name, job.id)
        for action in self._after_tools.returned(name, job.id):
            self.at(self.clock.now(), action)
        try:
            for told in self.on_tool_returned:
                told(job.id, name)
        except WorkerKilled as death:
            self._services.budget.end(death)
        if kills:
            self._services.budget.end(WorkerKilled(kills[0]))

    def finish(self, job: Job, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return what an async tool of `job` comes to: other jobs' steps and time's passing come before that."""
        if not self._scheduler.running:
            # Called by a test: there is no run whose time could pass.
            return run_virtual(coroutine)
        return self._scheduler.finish(job, coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Running:
        """Begin to run what a step of a job awaits."""
        return self._scheduler.start(coroutine)

    def block(self, seconds: float) -> None:
        """Let the process stand still for so many virtual seconds, while it runs."""
        if self._scheduler.running:
            self._scheduler.block(seconds)

    def timestamp(self) -> datetime:
        """Return the wall time for log items."""
        return self.clock.wall()

    # -- results -----------------------------------------------------------------------------------------------

    def usage(self) -> UsageTotals:
        """Return the usage of all jobs together."""
        totals = UsageTotals()
        for turn in self._turns():
            totals.add(turn)
        return totals

    def _turns(self) -> Iterator[Any]:
        for job in self._jobs.values():
            yield from job.usage.turns


def _check_arguments(agent: Agent, name: str | None, job_params: Mapping[str, object]) -> None:
    """Refuse what would only fail later, or vanish: no agent, an empty name, a misspelt argument."""
    if not isinstance(agent, Agent):
        raise BadInput(f"create_job wants an Agent first, got {agent!r}")
    if name == "":
        raise BadInput("a job's name is not empty; leave it out to have one made")
    for param in job_params:
        if hint := suggestion(param, _CREATE_JOB_ARGUMENTS):
            raise BadInput(f"create_job: {param!r} would be a prompt parameter.{hint}")


_CREATE_JOB_ARGUMENTS: Final = (
    "shared_vars",
    "parent_job",
    "warmup_code",
    "chat_style",
    "locale",
    "message",
    "name",
    "post_processing",
)


def policy_of(settings: StatekSettings) -> SandboxPolicy:
    """Return the restricted-code policy that `settings` describe."""
    return SandboxPolicy(
        max_source_bytes=settings.python_sandbox_max_source_bytes,
        max_ast_nodes=settings.python_sandbox_max_ast_nodes,
        allowed_imports=_words(settings.python_sandbox_allowed_imports),
        allowed_tools=_words(settings.python_sandbox_allowed_tools),
        restricted=settings.python_sandbox_mode.lower() != "off",
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split(",") if word.strip())


def _default_style(style: object) -> ChatStyle | None:
    return None if style is None else parse_chat_style(str(style))


def _chat_style(agent: Agent, chosen: ChatStyle | str | None) -> ChatStyle | None:
    """Return a definition's style: the job's, the agent's; a dialog's metadata has one too, else it is MD_DIALOG."""
    given = chosen if chosen is not None else agent.chat_style
    if given is not None:
        return parse_chat_style(str(given))
    if not isinstance(agent, DialogAgent):
        return None
    said = agent.metadata.get("CHAT_STYLE", ChatStyle.MD_DIALOG.name)
    if said not in ChatStyle.__members__:
        # A member of STATEK's stored enumeration, in the store's words; a setting may be in any letter case.
        raise RuntimeError(f"Enum value not found: {said}\n")
    return ChatStyle[said]


def _inherited(locale: str | None, parent: Job | None) -> str | None:
    return locale if locale is not None or parent is None else parent.job_def.locale


def _ignore(_: object) -> None:
    """Turn a returning action into one that returns nothing."""


# -- which runtime module-level functions belong to ----------------------------------------------------------------

_ACTIVE: ContextVar[Runtime | None] = ContextVar("statek_sim_runtime", default=None)


@contextmanager
def active(runtime: Runtime) -> Iterator[None]:
    """Make `runtime` the one that module-level functions such as `create_new_job` use inside the block."""
    token = _ACTIVE.set(runtime)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def current_runtime() -> Runtime:
    """Return the runtime of the executing job, else the active one; without either it is `BadInput`."""
    job = traced_job()
    if job is not None:
        return cast("Runtime", job.host)  # a job's host is a Runtime wherever jobs are created
    runtime = _ACTIVE.get()
    if runtime is None:
        raise BadInput(
            "no runtime is active; create jobs with Runtime.create_job, or inside `with active(runtime)`"
        )
    return runtime
