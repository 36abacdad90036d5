"""A runtime's jobs, their shared definitions, and the runtime's interface for jobs (behaviour 9, 10)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from statek_sim import trace as events
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput, NotAnAgent
from statek_sim.harness.settings import StatekSettings
from statek_sim.runtime.agents.agent import Agent, DialogAgent, JobDef
from statek_sim.runtime.agents.history import HistoryProjection
from statek_sim.runtime.agents.warmup_source import WarmupSource, parse_warmup
from statek_sim.runtime.execution.model_name import models_by_difficulty
from statek_sim.runtime.execution.scheduler import Scheduler
from statek_sim.runtime.execution.services import Services
from statek_sim.runtime.execution.tool_calls import AfterCalls
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.post_processing import PostProcessor, identity, normalised, post_processors
from statek_sim.runtime.state.access import attribute
from statek_sim.runtime.state.chat_log import CallSpec, CodeBlock
from statek_sim.runtime.state.chat_style import ChatStyle, parse_chat_style
from statek_sim.runtime.state.context import Host
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.runtime.stored.containers import StoreKills
from statek_sim.usage.token_usage import UsageTotals
from statek_sim.values import IdSource
from statek_sim.virtual_loop import VirtualLoop, run_in

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


class JobBook:
    """Creates a runtime's jobs, and stores them by id in creation order."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._ids = IdSource()
        self._definitions = JobDefs(services.brought.job_def, stores=services.profile.storage == "dbzero")
        self.jobs: dict[str, Job] = {}

    def check_free(self, name: str | None) -> None:
        """Raise `BadInput` if the id `name` is already taken."""
        if name in self.jobs:
            raise BadInput(f"job {name!r} already exists; job names must be unique within a runtime")

    def make(
        self,
        host: Host,
        name: str | None,
        definition: JobDef,
        parent: Job | None,
        shared_vars: Mapping[str, object],
    ) -> Job:
        """Create a READY job with the id `name`, or with a generated id."""
        services, agent = self._services, definition.agent
        before = self._ids.saved()
        job_id, model = name or self._next_id(), str(agent.metadata["MODEL"])
        services.register(agent)
        job = services.brought.job(host, job_id, definition, HistoryProjection(services.meter(model)), parent)
        try:
            job.py_env.update_locals(**shared_vars)
        except Exception:
            # No job was created; the next job gets the name.
            self._ids.resume(before)
            raise
        self.jobs[job_id] = job
        parent_id = None if parent is None else parent.id
        services.trace.add(events.JobCreated(services.clock.now(), job_id, agent.role, model, parent_id))
        job.keeping.predict_losses({}, job.py_env.local_state)
        job.keeping.drop()
        if parent is not None:
            job.add_error_handlers_from(parent)
        return job

    def _next_id(self) -> str:
        """Return the next generated id that is not taken."""
        while (job_id := self._ids.next("job")) in self.jobs:
            pass
        return job_id

    def named(self, name: str) -> Job:
        """Return the job with this id; raises `BadInput` for an unknown id."""
        try:
            return self.jobs[name]
        except KeyError:
            known = ", ".join(self.jobs) or "none"
            raise BadInput(f"there is no job {name!r}; jobs: {known}") from None

    def saved(self) -> dict[str, object]:
        """Return the state for `resume` in a new process: jobs, definitions and the id counter."""
        return {
            "jobs": [*self.jobs.values()],
            "definitions": self._definitions.saved(),
            "ids": self._ids.saved(),
        }

    def resume(self, saved: Mapping[str, Any]) -> None:
        """Restore the state saved by another process."""
        self.jobs.update((job.id, job) for job in saved["jobs"])
        self._definitions.resume(saved["definitions"])
        self._ids.resume(saved["ids"])
        for job in self.jobs.values():
            job.history.measure_with(self._services.meter(str(job.agent.metadata["MODEL"])))

    def know(self, definition: JobDef, chat_style: ChatStyle | None) -> None:
        """Share a definition that an application created."""
        self._definitions.know(definition, chat_style)

    def usage(self) -> UsageTotals:
        """Return the total usage across all jobs."""
        totals = UsageTotals()
        for job in self.jobs.values():
            for turn in job.usage.turns:
                totals.add(turn)
        return totals

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
        only: WarmupSource = None,
    ) -> JobDef:
        """Return the existing definition for the same work, or a new one.

        With `shared=False`, the definition is always new. `only` replaces the agent's warmup code. Raises
        SyntaxError or ValueError for invalid warmup code, and `BadModelName` for an invalid model.
        """
        # The job's warmup code runs before the agent's; each is split and numbered separately (behaviour
        # 7.1).
        own, agents = (
            parse_warmup(source, bind_assignments=self._services.profile.as_tool_binds_assignment)
            for source in (warmup_code, agent.warmup if only is None else only)
        )
        # STATEK reads the models when it creates a definition, so an invalid name raises here (behaviour 11).
        models_by_difficulty(agent.metadata["MODEL"])
        # To copy the caller's variables, STATEK parses the original text of the job's warmup code, including
        # separators and tool call lines. The agent's warmup code is only parsed when it runs.
        for text in (warmup_code,) if isinstance(warmup_code, str) else [block.code or "" for block in own]:
            ast.parse(text)
        style = _style_of(agent, chat_style)
        explicit = post_processing is not None
        processors = normalised(post_processing) if explicit else post_processors(agent.metadata)
        work = Work(agent, (*own, *agents), style, locale, job_params, processors, len(own))
        # STATEK's `create_new_job` only shares definitions without a style, except for dialog agents.
        if not shared or (style is not None and not isinstance(agent, DialogAgent)):
            return self._definitions.make(work)
        return self._definitions.get(work)


def check_arguments(agent: Agent, name: str | None, job_params: Mapping[str, object]) -> None:
    """Raise `BadInput` if `agent` is not an agent, the name is empty, or an argument is misspelt."""
    if not isinstance(agent, Agent):
        raise NotAnAgent(f"create_job expects an Agent as its first argument, got {agent!r}")
    if name == "":
        raise BadInput("the job name must not be empty; omit it to have one generated")
    for param in job_params:
        if hint := suggestion(param, _CREATE_JOB_ARGUMENTS):
            raise BadInput(f"create_job: unknown argument {param!r}.{hint}")


def _style_of(agent: Agent, chosen: ChatStyle | str | None) -> ChatStyle | None:
    """Return a definition's chat style: the chosen style, else the agent's.

    A dialog agent falls back to CHAT_STYLE in its metadata, and then to MD_DIALOG. Raises RuntimeError for an
    unknown style in the metadata.
    """
    given = chosen if chosen is not None else agent.chat_style
    if given is not None:
        return parse_chat_style(str(given))
    if not isinstance(agent, DialogAgent):
        return None
    style = agent.metadata.get("CHAT_STYLE", ChatStyle.MD_DIALOG.name)
    if style not in ChatStyle.__members__:
        # Looked up in STATEK's stored enum, so the message is the store's; a setting may be in any letter case.
        raise RuntimeError(f"Enum value not found: {style}\n")
    return ChatStyle[style]


def inherited_locale(locale: str | None, parent: Job | None) -> str | None:
    """Return a new job's locale: `locale`, or the parent job's if `locale` is None."""
    return locale if locale is not None or parent is None else parent.job_def.locale


class JobHost:
    """A runtime's interface for its jobs; see `runtime.state.context.Host`."""

    def __init__(
        self,
        runtime: object,
        settings: StatekSettings,
        services: Services,
        scheduler: Scheduler,
        after_calls: AfterCalls,
    ) -> None:
        self.runtime = runtime
        self.trace = services.trace
        self.profile = services.profile
        self.clock = services.clock
        self.categories = services.brought.categories
        self.use(settings)
        self.why_not: Callable[[object], str | None] | None = None
        self._services = services
        self._scheduler = scheduler
        self._after_calls = after_calls

    def use(self, settings: StatekSettings) -> None:
        """Use the defaults for jobs in `settings`."""
        self.default_chat_style = default_style(settings)
        self.console_tag = settings.xml_box_console or None
        self.default_difficulty = str(settings.statek_default_difficulty)

    def job_changed(self, job: Job) -> None:
        """Record that `job` may have become runnable."""
        self._scheduler.offer(job)

    def tools_of(self, job: Job) -> frozenset[str]:
        """Return the names of all tools that `job` can call, including callables in its variables."""
        held = [
            value for value in (*job.py_env.global_state.values(), *job.locals.values()) if callable(value)
        ]
        tools = [*self._services.toolbox(job).tools.values(), *self._services.brought.registered(), *held]
        names = (getattr(tool, "__name__", None) for tool in tools)
        return frozenset(name for name in names if isinstance(name, str))

    def tool_returned(self, job: Job, name: str) -> None:
        """Run the actions registered for this tool call."""
        self._after_calls.returned(name, job.id)

    def finish(self, job: Job, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of `job`'s async tool.

        Until the tool finishes, other jobs run their steps and time passes.
        """
        if not self._scheduler.running:
            # A test called the tool outside a run, so virtual time cannot pass.
            return run_in(VirtualLoop(), coroutine)
        return self._scheduler.tools.finish(job, coroutine)

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Running:
        """Start a coroutine awaited by a job's step."""
        return self._scheduler.tools.start(coroutine)

    def block(self, seconds: float) -> None:
        """Advance virtual time while the process is blocked; outside a run, do nothing."""
        if self._scheduler.running:
            self._scheduler.block(seconds)

    def timestamp(self) -> datetime:
        """Return the wall-clock time for log items."""
        return self.clock.wall()


def default_style(settings: StatekSettings) -> ChatStyle | None:
    """Return the chat style from the settings, or None if unset."""
    return None if settings.chat_style is None else parse_chat_style(str(settings.chat_style))


class Work(NamedTuple):
    """The values from which a definition is created.

    The first `own_blocks` blocks in `warmup` are the job's, the others the agent's.
    """

    agent: Agent
    warmup: tuple[CodeBlock, ...]
    chat_style: ChatStyle | None
    locale: str | None
    job_params: Mapping[str, object]
    post_processing: tuple[PostProcessor, ...] = ()
    own_blocks: int = 0


class JobDefs:
    """A runtime's shared job definitions, each for one combination of the values in `Work`."""

    def __init__(self, kind: type[JobDef] = JobDef, *, stores: bool = False) -> None:
        self._kind = kind
        self._stores = stores
        self._known: dict[Agent, dict[object, list[JobDef]]] = {}

    def get(self, work: Work) -> JobDef:
        """Return the shared definition for `work`.

        An error recorded on the definition affects all later jobs with the same work. STATEK compares the
        work with stored definitions, and some stored values never equal themselves (checked with 1.2.5 to
        1.4.2). For work with such values, the definition is always new.
        """
        if not _found_again(work):
            return self.make(work)
        processors = [identity(processor) for processor in work.post_processing]
        key = _key(work.chat_style, work.locale, work.job_params)
        for definition in self._known.get(work.agent, {}).get(key, ()):
            # Parsed blocks are cached by source, so most comparisons are between identical objects.
            same = (
                definition.blocks == work.warmup
                and (definition.job_params or {}) == work.job_params
                and definition.metadata["MODEL"] == work.agent.metadata["MODEL"]
            )
            if same and [identity(processor) for processor in definition.processors] == processors:
                return definition
        definition = self.make(work)
        self.know(definition, work.chat_style)
        return definition

    def saved(self) -> list[JobDef]:
        """Return the shared definitions in order, for `resume` in a new process."""
        return [
            definition for by_key in self._known.values() for alike in by_key.values() for definition in alike
        ]

    def resume(self, definitions: Iterable[JobDef]) -> None:
        """Replace the shared definitions by `definitions`."""
        self._known.clear()
        for one in definitions:
            self.know(one, one.chat_style)

    def know(self, definition: JobDef, chat_style: ChatStyle | None) -> None:
        """Share a definition."""
        key = _key(chat_style, definition.locale, definition.job_params or {})
        self._known.setdefault(definition.agent, {}).setdefault(key, []).append(definition)

    def make(self, work: Work) -> JobDef:
        """Create a definition that is not shared; its parameters are in stored form."""
        params: Mapping[str, object] = dict(work.job_params)
        if self._stores and params:
            found = attribute(params)
            if found.error is not None:
                raise StoreKills("a prompt parameter has a value that dbzero cannot store unchanged")
            params = found.value
        return self._kind(
            work.agent,
            work.agent.metadata,
            work.warmup,
            params,
            work.chat_style,
            work.locale,
            work.post_processing,
        )


def _found_again(work: Work) -> bool:
    """Return whether STATEK finds the definition for `work` in its store.

    It does not find a definition with models by difficulty (stored as a mapping, but compared as a string), a
    string as its locale (compared by identity), or warmup tool calls that do not equal themselves in the
    store.
    """
    if ":" in str(work.agent.metadata["MODEL"]) or isinstance(work.locale, str):
        return False
    own, agents = work.warmup[: work.own_blocks], work.warmup[work.own_blocks :]
    return all(copies_are_equal(call) for block in own for call in block.tool_calls) and all(
        equals_itself(call) for block in agents for call in block.tool_calls
    )


def equals_itself(call: CallSpec) -> bool:
    """Return whether a stored warmup call equals itself.

    A call with keywords does not, because a stored dict never does.
    """
    return not call.kwargs


def copies_are_equal(call: CallSpec) -> bool:
    """Return whether two stored copies of a warmup call are equal.

    They are equal unless the call has keywords, or arguments other than None and numbers: strings and
    collections in two stored lists are never equal.
    """
    return equals_itself(call) and all(value is None or isinstance(value, int | float) for value in call.args)


def _key(chat_style: ChatStyle | None, locale: str | None, job_params: Mapping[str, object]) -> object:
    """Return a dict key that is the same for equal definitions; only the string and number parameters are included."""
    plain = [(name, value) for name, value in job_params.items() if isinstance(value, str | int | float)]
    return (chat_style, id(locale), *sorted(plain, key=lambda pair: pair[0]))
