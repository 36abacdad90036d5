"""The application under test: the interface between tests and a backend, and jobs as tests see them.

A test creates jobs, advances virtual time and reads `AppJob`s. The interface is the same on every backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, Self

from statek_sim.backends.facts import job_record, plain, worker_death
from statek_sim.backends.record import FUTURE, FUTURE_TEXT, JobRecord
from statek_sim.durability.session import KeptRuntime
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.futures import FutureResult
from statek_sim.sandbox.llm_repr import shown
from statek_sim.trace import HandlerRan, require_tool
from statek_sim.values import JSON, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool call. `arguments` is in Python notation; `result` and `error` are None if the call never returned."""

    name: str
    arguments: str
    result: str | None
    error: str | None


class ToolUses(tuple[ToolUse, ...]):
    """A job's tool calls; `known` are the names of all tools that the job could call.

    `known` is not an `AppJob` field, because fields are results, which are compared and displayed.
    """

    known: frozenset[str] = frozenset()

    @classmethod
    def among(cls, uses: Iterable[ToolUse], known: Iterable[str]) -> Self:
        """Wrap the calls `uses`, made by a job that could call the tools `known`."""
        made = cls(uses)
        made.known = frozenset(known)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class AppJob:
    """A job's current state. Fields are named as in `JobRecord`.

    `stop` is why the last unit of work ended (exit, final, the name of a limit, crash, warmup or contained),
    or None while the job continues. `exit` and `locals` hold plain values if possible, otherwise the text
    that an agent would see. `history` is the conversation sent in the last request. Bytes and tokens are
    STATEK's counts.
    """

    name: str
    agent: str
    status: str
    stop: str | None
    exit: JSON
    error: str | None
    definition_errors: tuple[str, ...]
    parent: str | None
    llm_calls: int
    turns: int
    exceptions: int
    streak: int
    completions: int | None
    console: tuple[str, ...]
    locals: Mapping[str, JSON]
    history: tuple[Message, ...]
    tools: tuple[ToolUse, ...]
    handlers: tuple[HandlerRan, ...]
    subtasks: Mapping[str, str]
    bytes_sent: int
    bytes_received: int
    approx_tokens: int

    def tool_calls(self, name: str | None = None) -> tuple[ToolUse, ...]:
        """Return all tool calls, or only the calls to one tool.

        Raises `BadInput` if the job has no tool with that name.
        """
        calls = tuple(use for use in self.tools if name is None or use.name == name)
        if name is not None and not calls and isinstance(self.tools, ToolUses):
            require_tool(name, self.tools.known, f"job {self.name!r}")
        return calls


def app_job(record: JobRecord, *, parent: str | None, tools: Iterable[str]) -> AppJob:
    """Return a job's state from its record; `tools` are the names of all tools that the job could call."""
    own = ("parent", "tools", "bytes_sent", "bytes_received", "approx_tokens")
    same: dict[str, Any] = {
        field.name: getattr(record, field.name) for field in fields(AppJob) if field.name not in own
    }
    return AppJob(
        parent=parent,
        tools=ToolUses.among(map(_tool_use, record.tool_calls), tools),
        bytes_sent=record.usage.bytes_sent,
        bytes_received=record.usage.bytes_received,
        approx_tokens=record.usage.approx_tokens,
        **same,
    )


def _tool_use(call: Mapping[str, Any]) -> ToolUse:
    result = call.get("result")
    return ToolUse(
        name=call["name"],
        arguments=call["arguments"],
        result=FUTURE if FUTURE_TEXT.match(result or "") else result,
        error=call.get("error"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOutcome:
    """The outcome of a run, which ended at virtual second `at`.

    `settled` is whether no work was left. `waiting` lists the names of waiting jobs. `worker` is why the
    worker is dead, or None if it is alive.
    """

    at: float
    settled: bool
    waiting: tuple[str, ...]
    worker: str | None


class Application(Protocol):
    """The interface between a test and its application's runtime. Jobs are the backend's own objects."""

    backend: str
    profile: str

    def create_job(self, agent: Any, **options: Any) -> Any:
        """Create a job as `statek.create_new_job` does; the option `message` is the first user message."""

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Call `action` at virtual second `when`."""

    def run(self, until: float) -> AppOutcome:
        """Run all jobs until no work is left, or until virtual second `until`."""

    def keep_in(self, address: str, *, agents: Sequence[Any], **options: Any) -> bool:
        """Keep all jobs in a store; return whether the store already contained the run.

        Must be called before the first job.
        """

    def now(self) -> float:
        """Return the virtual time in seconds."""

    def jobs(self) -> Mapping[str, Any]:
        """Return all jobs, keyed by name, in creation order, including jobs created by tools."""

    def describe(self, job: Any) -> AppJob:
        """Return a job's current state."""


class ReferenceApplication:
    """An `Application` on the reference runtime. `create` creates a job, `keep` keeps all jobs in a store."""

    backend = "reference"

    def __init__(
        self,
        runtime: Runtime,
        create: Callable[..., Job],
        keep: Callable[..., KeptRuntime],
    ) -> None:
        self.runtime = runtime
        self._keep = keep
        self._create = create
        self.profile = runtime.profile.name

    def create_job(self, agent: Any, **options: Any) -> Job:
        """Create a job with the options of `create`."""
        return self._create(agent, **options)

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Call `action` at virtual second `when`."""
        self.runtime.at(when, action)

    def run(self, until: float) -> AppOutcome:
        """Run until no work is left, or until virtual second `until`."""
        outcome = self.runtime.run(until)
        return AppOutcome(
            at=outcome.at,
            settled=outcome.settled,
            waiting=outcome.waiting,
            worker=None if outcome.worker_alive else worker_death(self.runtime),
        )

    def keep_in(self, address: str, *, agents: Sequence[Any], **options: Any) -> bool:
        """Keep all jobs in a store; return whether the store already contained the run."""
        return self._keep(address, agents=agents, **options).resumed

    def now(self) -> float:
        """Return the virtual time in seconds."""
        return self.runtime.clock.now()

    def jobs(self) -> Mapping[str, Job]:
        """Return all jobs, keyed by name, in creation order."""
        return {job.id: job for job in self.runtime.jobs}

    def describe(self, job: Job) -> AppJob:
        """Return a job's current state."""
        record = job_record(job, (other for other in self.runtime.jobs if other.parent_job is job))
        values = {name: plain(value, _text) for name, value in sorted(job.locals.items())}
        return app_job(
            replace(record, locals=values),
            parent=None if job.parent_job is None else job.parent_job.id,
            tools=job.host.tools_of(job),
        )


def _text(value: object) -> str:
    return FUTURE if isinstance(value, FutureResult) else shown(value)
