"""Tools that come with the runtime: the system tools that it reproduces, `get_any`/`get_all`, delegation.

Every system tool that a STATEK release registers is offered to models with its own wire text
(`runtime.tools.spec`), because that text is part of the byte budget. Those that need STATEK's document and
example folders are offered but not reproduced: calling one says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from statek_sim.runtime.jobs.job import Job, get_current_job
from statek_sim.runtime.jobs.subtask import SubTaskHandler, find_handler
from statek_sim.runtime.state.futures import CombinedFutureResult, get_all_future, get_any_future
from statek_sim.runtime.state.pyenv import tell
from statek_sim.runtime.tools.declaration import injected, tool
from statek_sim.runtime.tools.documentation import brief, docstr
from statek_sim.runtime.tools.spec import SystemToolSpec, stands_for, system_tool_specs


def _require_job(name: str) -> Job:
    job = get_current_job()
    if job is None:
        raise RuntimeError(f"{name} requires a current job")
    return job


@tool(system=True)
def get_pending_notifications(**kwargs: Any) -> list[Any]:
    """Return the current job's notifications that are not in its history yet."""
    return list(_require_job("get_pending_notifications").inbox.pending)


@tool(system=True)
def find_sub_task_handler(id: str | None = None, **kwargs: Any) -> SubTaskHandler | None:  # noqa: A002
    """Return the handler of a completed subtask, the newest when no id is given."""
    job = get_current_job()
    return None if job is None else find_handler(job, id)


@tool(system=True)
def panic(**kwargs: Any) -> None:
    """Move the current job to a more capable model."""
    job = _require_job("panic()")
    job.panic()
    print(f"# Difficulty increased to {job.difficulty.lower()}. Continue with the harder task.")


@tool(system=True)
def print_locals(category: str, *args: Any, **kwargs: Any) -> None:
    """Print the variables of a category in the current job's shared context."""
    job = _require_job("print_locals")
    tell(category, args, job.host.categories(), job.shared_names, print)


@tool(system=True)
def shared_context_set_var(category: Any, key: str, value: Any, description: str, **kwargs: Any) -> None:
    """Store a variable in the current job's shared context, if it has one."""
    shared = _require_job("shared_context_set_var").shared_names
    if shared is not None:
        shared.set_var(category, key, value, description)


@tool(system=True, hidden=True)
def init_shared_context(*args: Any, read_only: bool = False, **kwargs: Any) -> None:
    """Stand for STATEK's tool of this name where no application brings its stored objects along."""
    raise NotImplementedError(
        "init_shared_context binds stored objects: it runs in an application (statek_app)"
    )


@tool(system=True)
def python_cli(code: str, **kwargs: Any) -> None:
    """Do nothing when called from code; requested as a tool call it runs `code` (`runtime.execution.tool_calls`)."""


@tool(system=True)
def send_notification_to(target: SubTaskHandler | Job, message: str, **kwargs: Any) -> None:
    """Send plain text to another job, which sees it at its next safe boundary."""
    job = target.job if isinstance(target, SubTaskHandler) else target
    if not isinstance(job, Job):
        raise TypeError("target must be a Job or SubTaskHandler")
    job.send_notification(message)


@tool
def get_any(*args: Any, **kwargs: Any) -> CombinedFutureResult:
    """Waits until evaluation of given values completes and returns the first available result.

    The sentence is part of requests, byte for byte. As in STATEK, agent code never gets an answer from it:
    arguments without a type hint are waited for, all of them, before the call, and their plain values are no
    futures (behaviour 7.5). Tools use `get_any_future`.
    """
    return get_any_future(*args)


@tool
def get_all(*args: Any, **kwargs: Any) -> CombinedFutureResult:
    """Waits until evaluation of all given values completes and combines the results.

    The sentence is part of requests, byte for byte. In agent code it ends like `get_any`.
    """
    return get_all_future(*args)


_REPRODUCED: Final[Mapping[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
        get_pending_notifications,
        find_sub_task_handler,
        panic,
        python_cli,
        print_locals,
        shared_context_set_var,
        docstr,
        brief,
        send_notification_to,
    )
}


for _tool, _parameter, _hint in (
    (find_sub_task_handler, "id", Any | None),
    (send_notification_to, "target", SubTaskHandler | Job),
):
    # STATEK's hints, which this module keeps as text: a model's text for such a parameter may name a variable.
    _function: Any = _tool
    _function.__wrapped__.__annotations__[_parameter] = _hint


def own_spec(function: Callable[..., Any], version: str) -> Any:
    """Return what a release says about one of its system tools when an agent has it as a tool of its own."""
    if _REPRODUCED.get(getattr(function, "__name__", "")) is not function:
        return None
    return next((e.spec for e in system_tool_specs(version) if e.name == function.__name__), None)


@cache
def system_tools(version: str) -> tuple[Callable[..., Any], ...]:
    """Return the callables of a release's system tools, in its order; `tools.spec.system_tool` knows each."""
    found = []
    for entry in system_tool_specs(version):
        # Made once for all runs, so agent code can be given it as it is.
        # What agent code puts into the store comes back without what is injected, and is the same tool.
        own = _wrapped(entry, _REPRODUCED.get(entry.name) or _missing(entry.name))
        function = injected(own)
        for alike in (own, function):
            stands_for(alike, entry)
        found.append(function)
    return tuple(found)


def _missing(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"system tool {name!r} is offered, but this runtime does not reproduce it")

    return call


def _wrapped(entry: SystemToolSpec, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a separate callable per release, so that its attributes belong to that release."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    marked: Any = call
    marked.__name__ = marked.__qualname__ = entry.name
    # In STATEK's order, which agents see.
    marked.__wrapped__ = function
    marked.tool_system, marked.tool_target, marked.tool_hidden = True, entry.target, False
    return call
