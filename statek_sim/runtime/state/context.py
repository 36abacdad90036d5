"""The currently executing job, and replacements for `print` and `exit` that write to its console.

STATEK replaces `builtins.print` and `exit` process-wide while code runs, so an async tool's output may go to
another job (behaviour 3). Here, the replacements find the destination in a context variable, which asyncio
copies into every task. `printing_to` overrides the destination where a STATEK release sends the output
elsewhere.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from statek_sim.clock import Clock
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.pyenv import Categories, PyEnv
from statek_sim.runtime.state.status import WorkerKilled
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.runtime.stored.storable_types import with_full_names
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.semantics import Profile
from statek_sim.trace import Trace

T = TypeVar("T")


@dataclass(slots=True)
class Execution:
    """One run of a block or tool call for a job."""

    job: CurrentJob
    write: Callable[[str], None]
    exit: Callable[[object], None]
    namespace: dict[str, object]
    budget: ExecutionBudget | None = None
    """The budget charged for tool calls and output lines; None for a tool call requested by the model."""
    passed: Mapping[str, object] = field(default_factory=dict)
    """The names that tools receive as `_local_context`."""
    killed: str | None = None
    """Why the worker process died during this run, if it did.

    After that, the run's code must have no further effect.
    """


_EXECUTION: ContextVar[Execution | None] = ContextVar("statek_sim_execution", default=None)
_CONTEXT: ContextVar[dict[str, Any] | None] = ContextVar("statek_sim_context", default=None)
"""The current values, keyed by name: `job`, `agent`, and values set by an application. None outside a job."""

set_execution = _EXECUTION.set
reset_execution = _EXECUTION.reset
current_execution = _EXECUTION.get
current_context = _CONTEXT.get
set_context = _CONTEXT.set
reset_context = _CONTEXT.reset


def current(key: str) -> Any:
    """Return the current value for `key`, such as `job` or `agent`, or None."""
    context = _CONTEXT.get()
    return None if context is None else context.get(key)


def traced_job() -> CurrentJob | None:
    """Return the current job if it belongs to a runtime, else None (a test may have set some other object)."""
    job: CurrentJob | None = current("job")
    return job if hasattr(job, "host") else None


def get_current_agent_name() -> str | None:
    """Return the class name of the executing job's agent, or None if called outside a job."""
    agent = current("agent")
    return None if agent is None else type(agent).__name__


@contextmanager
def bound_context(context: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Use `context` as the current values inside the `with` statement."""
    token = _CONTEXT.set(context)
    try:
        yield context
    finally:
        _CONTEXT.reset(token)


_PRINTING_TO: list[Execution | Literal[False] | None] = [None]
"""A stack of overrides for the destination of tool output; see `printing_to`."""


@contextmanager
def printing_to(execution: Execution | Literal[False] | None) -> Iterator[None]:
    """Send tool output inside the `with` statement to `execution`.

    None sends each tool's output to its own job; False sends it to the original `print`.
    """
    _PRINTING_TO.append(execution)
    try:
        yield
    finally:
        _PRINTING_TO.pop()


def _printing_execution() -> Execution | None:
    """Return the execution to which a tool's `print` and `exit` apply, or None for the original functions."""
    sink = _PRINTING_TO[-1]
    execution = _EXECUTION.get() if sink is None else (sink or None)
    if execution is not None:
        require_alive(execution)
    return execution


def require_alive(execution: Execution | None) -> None:
    """Raise `WorkerKilled` if the worker process running `execution` died, so that its code has no further effect."""
    if execution is not None and execution.killed is not None:
        raise WorkerKilled(execution.killed)


@contextmanager
def captured_builtins(format_argument: Callable[[object], str]) -> Iterator[None]:
    """Replace `builtins.print` and `exit` with functions for the executing job; restore both on exit."""
    original_print, original_exit = builtins.print, builtins.exit

    def job_print(*args: Any, sep: Any = " ", end: Any = "\n", **options: Any) -> None:
        execution = _printing_execution()
        if execution is None:
            original_print(*args, sep=sep, end=end, **options)
            return
        write_line(execution, args, sep, end, format_argument)

    def job_exit(status: object = None) -> None:
        execution = _printing_execution()
        if execution is None:
            raise SystemExit(status)
        execution.exit(status)

    builtins.print = job_print
    builtins.exit = job_exit  # type: ignore[assignment]  # the site module's Quitter object is callable too
    try:
        yield
    finally:
        builtins.print = original_print
        builtins.exit = original_exit


def write_line(
    execution: Execution,
    args: tuple[object, ...],
    sep: str,
    end: str,
    format_argument: Callable[[object], str],
) -> None:
    """Write a `print` call as one console entry, regardless of `end`, as STATEK does (behaviour 3).

    Raises AttributeError if `sep` is None, and TypeError if `end` is None, although Python's `print` accepts both.
    """
    shown: list[Any] = [format_argument(arg) for arg in args]
    if execution.budget is not None and isinstance(sep, str | None):
        # The `__llm_repr__` of an object may return another type than a string.
        characters = sum(len(text) for text in shown if isinstance(text, str))
        execution.budget.write(characters + len(sep or "") * len(shown) + len(end or ""))
    try:
        text = sep.join(shown)
    except TypeError as error:
        raise with_full_names(error) from None
    execution.write((text + end).rstrip("\n"))


class Host(Protocol):
    """A runtime's interface for its jobs."""

    trace: Trace
    profile: Profile
    default_chat_style: ChatStyle | None
    console_tag: str | None
    default_difficulty: str
    categories: Callable[[], Categories]
    why_not: Callable[[object], str | None] | None
    """A function that returns why the runtime's store cannot store a value, or None if it can.

    The attribute is None if the runtime has no store.
    """

    @property
    def runtime(self) -> object:
        """The runtime, for module-level functions called by agent code."""

    @property
    def clock(self) -> Clock:
        """The clock that keeps virtual time."""

    def job_changed(self, job: Any) -> None:
        """Record that `job` may have become runnable, or is no longer runnable."""

    def tools_of(self, job: Any) -> frozenset[str]:
        """Return the names of all tools that `job` can call."""

    def tool_returned(self, job: Any, name: str) -> None:
        """Record that the tool `name`, called by `job`, has done its work; called before the result is used."""

    def finish(self, job: Any, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of `job`'s async tool; virtual time passes until it finishes."""

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Running:
        """Start a coroutine awaited by a job's step."""

    def block(self, seconds: float) -> None:
        """Advance virtual time while the process is blocked."""

    def timestamp(self) -> datetime:
        """Return the wall-clock time for log items."""


class CurrentJob(Protocol):
    """The job interface that tools and error handlers use; implemented by `runtime.jobs.job.Job`."""

    host: Host
    id: str
    py_env: PyEnv
    tool_via: str

    def spend(self, seconds: float) -> None:
        """Advance virtual time while a tool blocks the process."""

    def add_error_handler(self, error_handler: Callable[..., object], context: object) -> None:
        """Register a cleanup handler that runs if the job dies."""
