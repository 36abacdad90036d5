"""The services shared by every job step in a runtime."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.clock import Clock
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.protocol import Provider
from statek_sim.providers.wire.format import format_of
from statek_sim.providers.wire.request import PLAIN, ClientOptions, FormatName
from statek_sim.runtime.agents.agent import Agent, JobDef
from statek_sim.runtime.execution.job_queue import WaitingRoom
from statek_sim.runtime.execution.model_name import (
    check_reasoning,
    model_for_provider,
    model_provider,
    models_by_difficulty,
)
from statek_sim.runtime.execution.toolbox import Toolbox, init_shared_context, own_tool, system_tools
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.futures import FutureError
from statek_sim.runtime.state.pyenv import Categories, KnownCategories
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.tools.spec import select_tools, system_tool, tool_spec
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.policy import SandboxPolicy
from statek_sim.semantics import Profile
from statek_sim.trace import Trace
from statek_sim.usage.conversation import MessageMeter, shared_meter
from statek_sim.usage.messages import envelope_size, tools_tokens
from statek_sim.usage.tokenizers import ModelTokenizer, TokenizerRegistry, tokenizer_for_model
from statek_sim.values import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The constant part of a job's requests: model, tools and temperature, with their sizes.

    `size` is the size in bytes of a request body without messages. It applies to OpenAI's format, the only
    format in which messages are measured one by one.
    """

    provider: str
    wire: FormatName
    model: str
    tools: tuple[ToolSpec, ...]
    temperature: float | None
    size: int
    tools_tokens: int
    tokenizer: ModelTokenizer
    meter: MessageMeter


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """An application's tools and classes, for use by the runtime.

    `registered` returns the application's tools. System tools among them belong to every agent, hidden tools
    to none. `job` and `job_def` are the job and definition classes. `categories` returns the categories of
    shared names.
    """

    registered: Callable[[], Sequence[Callable[..., Any]]] = lambda: (init_shared_context,)
    job: type[Job] = Job
    job_def: type[JobDef] = JobDef
    categories: Callable[[], Categories] = KnownCategories


NOTHING_BROUGHT: Final = Brought()


@dataclass(slots=True, kw_only=True, eq=False)
class Services:
    """The objects used by job steps; each runtime has one instance."""

    provider: Provider
    harness: LLM_Harness
    profile: Profile
    clock: Clock
    trace: Trace
    budget: ExecutionBudget
    policy: SandboxPolicy
    tokenizers: TokenizerRegistry | None = None
    default_provider: str = "OPENROUTER"
    custom_providers: Collection[str] = ()
    client_options: ClientOptions = PLAIN
    brought: Brought = NOTHING_BROUGHT
    waiting: WaitingRoom = field(default_factory=WaitingRoom)
    _meters: dict[str, MessageMeter] = field(default_factory=dict)
    _agents: list[Agent] = field(default_factory=list)
    _toolboxes: dict[Agent, tuple[object, Toolbox]] = field(default_factory=dict)
    _envelopes: dict[object, Envelope] = field(default_factory=dict)

    # -- agents ------------------------------------------------------------------------------------------------

    def register(self, agent: Agent) -> None:
        """Register an agent, so that no agent's code can call its hidden tools (behaviour 3)."""
        if agent in self._agents:
            return
        self._agents.append(agent)
        self._toolboxes.clear()

    @property
    def agents(self) -> tuple[Agent, ...]:
        """The registered agents, in registration order."""
        return tuple(self._agents)

    def resume_agents(self, agents: Iterable[Agent]) -> None:
        """Replace the registered agents by `agents`."""
        self._agents = list(agents)
        self._toolboxes.clear()

    def toolbox(self, job: Job) -> Toolbox:
        """Return the names available to a job's code, cached until the tools change."""
        agent = job.agent
        state = self._tools_of(agent)
        known = self._toolboxes.get(agent)
        if known is None or known[0] != state:
            known = self._toolboxes[agent] = (state, self._make_toolbox(agent))
        return known[1]

    def _tools_of(self, agent: Agent) -> tuple[tuple[Callable[..., Any], ...], int]:
        """Return a key that changes when the agent or the application gets a new tool."""
        return tuple(agent.all_tools), len(self.brought.registered())

    def _system_tools(self) -> list[Callable[..., Any]]:
        """Return the system tools, which every agent has: STATEK's, then the application's."""
        own = [tool for tool in self.brought.registered() if getattr(tool, "tool_system", False)]
        return [*system_tools(self.profile.system_tools), *own]

    def _make_toolbox(self, agent: Agent) -> Toolbox:
        tools = [function for known in self._agents for function in known.all_tools]
        tools += self.brought.registered()
        hidden = frozenset(f.__name__ for f in tools if getattr(f, "tool_hidden", False))
        return Toolbox(
            context=lambda: agent.context,
            tools=agent.all_tools,
            system_tools=self._system_tools(),
            policy=replace(self.policy, blocked_tools=hidden),
            budget=self.budget,
            clock=self.clock,
        )

    # -- requests ----------------------------------------------------------------------------------------------

    def meter(self, model: str) -> MessageMeter:
        """Return a model's message meter; models with the same tokenizer share a meter."""
        tokenizer = tokenizer_for_model(model, self.tokenizers)
        meter = self._meters.get(tokenizer.label)
        if meter is None:
            meter = self._meters[tokenizer.label] = shared_meter(tokenizer)
        return meter

    def envelope(self, job: Job) -> Envelope:
        """Return the constant part of a job's requests; raises STATEK's error for invalid metadata."""
        level = job.difficulty if ":" in job.job_def.metadata["MODEL"] else ""
        key = (job.job_def, level, job.chat_style, self._tools_of(job.agent), self.default_provider)
        envelope = self._envelopes.get(key)
        if envelope is None:
            envelope = self._envelopes[key] = self._make_envelope(job)
        job.history.measure_with(envelope.meter)
        job.history.read_by(envelope.provider, plain=envelope.wire != "openai")
        return envelope

    def wire_of(self, job: Job) -> FormatName:
        """Return the wire format used by a job's provider; raises STATEK's error for an invalid model or provider."""
        provider, _ = upstream(job, self.default_provider)
        return self._wire(provider)

    def _make_envelope(self, job: Job) -> Envelope:
        metadata = job.job_def.metadata
        provider, model = upstream(job, self.default_provider)
        wire = self._wire(provider)
        tools = self._offered_tools(job)
        temperature = parse_temperature(metadata.get("TEMPERATURE"))
        meter = self.meter(model)
        return Envelope(
            provider=provider,
            wire=wire,
            model=model,
            tools=tools,
            temperature=temperature,
            size=envelope_size(model, tools, temperature),
            tools_tokens=tools_tokens(tools, meter.model_tokenizer.tokenizer),
            tokenizer=meter.model_tokenizer,
            meter=meter,
        )

    def _wire(self, provider: str) -> FormatName:
        """Return a provider's wire format; raises STATEK's ValueError for an unknown provider."""
        try:
            return format_of(provider, custom=frozenset(name.upper() for name in self.custom_providers)).NAME
        except ValueError:
            if self.profile.settings_before_names:
                raise ValueError(f"No settings found for {provider.upper()} provider.") from None
            raise

    def _offered_tools(self, job: Job) -> tuple[ToolSpec, ...]:
        agent = job.agent
        own: tuple[Callable[..., Any], ...] = tuple(
            agent.all_tools if self.profile.internal_tools_offered else agent.tools
        )
        scope = job.job_def.metadata.get("LLM_TOOLS_SCOPE")
        offered = select_tools(scope, own, self._system_tools(), job.chat_style)
        return tuple(map(self._spec, offered))

    def _spec(self, function: Callable[..., Any]) -> ToolSpec:
        if (own := system_tool(function)) is not None:
            return own.spec
        recorded = own_tool(function, self.profile.system_tools)
        if recorded is not None:
            return recorded.spec
        return tool_spec(function, union_hints=self.profile.union_hints_in_schema)

    # -- waiting -----------------------------------------------------------------------------------------------

    def wait(self, job: Job, waiting: FutureError) -> None:
        """Suspend `job` until the future in `waiting` is ready ("Jobs", Suspended Jobs)."""
        job.awaited_result = waiting.future_result
        job.next_instr_num = waiting.instr_num  # type: ignore[assignment]  # set by the workspace, or by unpacking
        if job.life.status is JobStatus.STARTED:
            job.life.move_to(JobStatus.SUSPENDED)
        self.trace.add(events.Waiting(self.clock.now(), job.id, str(waiting.instr_num)))
        self.waiting.add(job)

    def release(self, job: Job) -> None:
        """End the wait of a job whose future is ready, so that it can continue."""
        self.waiting.remove(job)
        self.waiting.forget(job)
        if self.profile.waiting_job_is_dormant:
            job.awaited_result = None
        self.trace.add(events.Released(self.clock.now(), job.id))
        if job.life.status is JobStatus.SUSPENDED:
            job.life.move_to(JobStatus.STARTED)


def upstream(job: Job, default_provider: str) -> tuple[str, str]:
    """Return the provider and the model id for a job's requests (behaviour 11)."""
    metadata = job.job_def.metadata
    text = metadata["MODEL"]
    if ":" in text:
        by_level = {level.upper(): name for level, name in models_by_difficulty(text).items()}
        text = by_level[job.difficulty]
    check_reasoning(text)
    provider = model_provider(text) or metadata.get("PROVIDER") or default_provider
    return provider, model_for_provider(text, provider)


def parse_temperature(text: str | None) -> float | None:
    """Parse TEMPERATURE metadata; raises ValueError for values outside 0 to 1, as STATEK does."""
    if text is None:
        return None
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"TEMPERATURE must be between 0.0 and 1.0, got {value}")
    return value
