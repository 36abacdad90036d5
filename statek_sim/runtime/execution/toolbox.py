"""The names that an agent's code can use (tools, helpers and builtins), and the implementation of the system tools.

Tools and agent code can also store names outside a job's variables, for the duration of a step or
permanently. Models are offered every system tool in a STATEK release with its original specification
(`runtime.tools.spec`), because the specification's size counts towards the token limit. System tools that
read STATEK's document and example folders are offered but not implemented; if the folder is set, calling them
raises an error.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from types import FrameType
from typing import Any, Final

from statek_sim.clock import Clock
from statek_sim.runtime.jobs.job import Job, get_current_job
from statek_sim.runtime.jobs.subtask import SubTaskHandler, find_handler
from statek_sim.runtime.state.access import FULL, reset_access, set_access
from statek_sim.runtime.state.context import Execution, current, current_context, require_alive, write_line
from statek_sim.runtime.state.futures import (
    CombinedFutureResult,
    FutureError,
    FutureResult,
    get_all_future,
    get_any_future,
)
from statek_sim.runtime.state.pyenv import PERMANENT, print_category
from statek_sim.runtime.stored.containers import Dict
from statek_sim.runtime.tools.declaration import injected, tool
from statek_sim.runtime.tools.documentation import brief, docstr
from statek_sim.runtime.tools.future_calls import resolve, smart_call
from statek_sim.runtime.tools.spec import SystemToolSpec, stands_for, system_tool_specs, with_statek_docstring
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.compile import CALL
from statek_sim.sandbox.helpers import build_helpers, sandbox_builtins
from statek_sim.sandbox.llm_repr import format_print_arg
from statek_sim.sandbox.modules import sandbox_modules
from statek_sim.sandbox.policy import SandboxPolicy


class Toolbox:
    """The names available to an agent's code, created once per agent from its tools and the system tools.

    `context` returns additional names. It is called for each block, because an agent may change its context.
    If it raises an exception, the block ends silently.
    """

    def __init__(
        self,
        *,
        context: Callable[[], Mapping[str, object]],
        tools: Iterable[Callable[..., Any]],
        system_tools: Iterable[Callable[..., Any]],
        policy: SandboxPolicy,
        budget: ExecutionBudget,
        clock: Clock,
    ) -> None:
        self.budget = budget
        self._context = context
        self._policy = policy
        self.tools: dict[str, Callable[..., Any]] = {}
        for function in (*tools, *system_tools):
            self.tools.setdefault(function.__name__, injected(function))
        self._base: dict[str, object] = {
            **self.tools,
            "statek_ctx_get": statek_ctx_get,
            "perm_ctx_set": perm_ctx_set,
            **_helpers(budget),
            **_of_statek(budget),
            "__builtins__": sandbox_builtins(policy, cache(partial(sandbox_modules, clock, budget)), budget),
        }

    def namespace(self, job: Job, execution: Execution) -> dict[str, object]:
        """Return a new namespace for one block; the job's variables take precedence over all other names."""
        shared = {**job.py_env.global_state, **self._context(), **self._base}
        shared["print"] = print_function(execution, self.budget)
        shared["exit"] = exit_function(execution)
        names = {**shared, **job.py_env.local_state}
        # STATEK executes restricted code with a copy of the names that it passes to tools, so tools do not
        # get the variables.
        execution.passed = shared if self.restricted and execution.budget is not None else names
        return names

    @property
    def restricted(self) -> bool:
        """Whether the agent's code runs in restricted mode."""
        return self._policy.restricted

    def policy(self, *, hidden_allowed: bool) -> SandboxPolicy:
        """Return the policy for a block; with `hidden_allowed`, the block may call hidden tools."""
        return _allowing_hidden(self._policy) if hidden_allowed else self._policy

    def find(self, job: Job, name: str) -> Callable[..., Any] | None:
        """Return the callable for a tool call that requests `name`, or None."""
        shared = self.tools.get(name) or self._base.get(name) or self._context().get(name)
        found = shared or job.py_env.local_state.get(name)
        return found if callable(found) else None

    def is_blocked(self, name: str) -> bool:
        """Return whether `name` is hidden from the model and not allowed by the settings."""
        function = self.tools.get(name)
        hidden = (
            bool(getattr(function, "tool_hidden", False)) if function else name in self._policy.blocked_tools
        )
        return self._policy.restricted and hidden and name not in self._policy.allowed_tools


@lru_cache(maxsize=8)
def _of_statek(budget: ExecutionBudget) -> Mapping[str, object]:
    """Return the functions that STATEK's rewritten code calls; agent code can also call them."""
    return {
        "_smart_call": _helpers(budget)[CALL],
        "_wrap_param": resolve,
        "_fmt_fstring_arg": format_print_arg,
    }


@lru_cache(maxsize=8)
def _helpers(budget: ExecutionBudget) -> Mapping[str, object]:
    """Return the helpers for compiled code; they are cached per budget."""
    return build_helpers(budget, resolve=resolve, call=smart_call)


@lru_cache(maxsize=256)
def _allowing_hidden(policy: SandboxPolicy) -> SandboxPolicy:
    return replace(policy, allowed_tools=policy.allowed_tools | policy.blocked_tools)


def exit_function(execution: Execution) -> Callable[..., None]:
    """Return the `exit` function for agent code in an execution."""

    def job_exit(status: object = None) -> None:
        execution.exit(status)

    return _as_a_lambda(job_exit)


def print_function(execution: Execution, budget: ExecutionBudget) -> Callable[..., None]:
    """Return the `print` function for agent code in an execution; it charges its output to `budget`."""

    def formatted(value: object) -> str:
        return format_print_arg(value, budget)

    def job_print(*args: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        require_alive(execution)
        # STATEK's function may read any attribute of an object.
        token = set_access(FULL)
        try:
            write_line(execution, args, sep, end, formatted)
        finally:
            reset_access(token)

    return _as_a_lambda(job_print)


def _as_a_lambda(function: Callable[..., None]) -> Callable[..., None]:
    """Give `function` the name of STATEK's lambda, which appears in errors and makes the store reject it."""
    function.__name__, function.__qualname__ = "<lambda>", "_setup_execution_context.<locals>.<lambda>"
    function.__module__ = "statek.executors.utils"
    return function


_MOST_FRAMES: Final = 40


# -- names of a job -----------------------------------------------------------------------------------------------


def statek_ctx_set(**values: Any) -> None:
    """Set names for the current job, for as long as it is current; raises RuntimeError without a context."""
    context = current_context()
    if context is None:
        raise RuntimeError("Statek execution context not found")
    context.update(values)


def statek_ctx_get(*key_and_default: Any) -> Any:
    """Return the current job's value for a name, or the default.

    Raises an error if the name is missing and there is no default.
    """
    _one_or_two("statek_ctx_get", key_and_default)
    return _looked_up(current_context(), key_and_default, "Statek execution context not found")


def perm_ctx_set(**values: Any) -> None:
    """Store names with the current job, across its steps; raises RuntimeError without a job."""
    _permanent().update(values)


def perm_ctx_set_unique(key: str, value: Any) -> str:
    """Store a value with the current job under `key`, or `key_1` and so on if that is taken; return the name."""
    kept = _permanent()
    taken = {*_names_around(inspect.currentframe()), *kept}
    name, number = key, 0
    while name in taken:
        number += 1
        name = f"{key}_{number}"
    kept[name] = value
    return name


def perm_ctx_get(*key_and_default: Any) -> Any:
    """Return the value stored with the current job under a name, or the default.

    Raises an error if the name is missing and there is no default.
    """
    _one_or_two("perm_ctx_get", key_and_default)
    job: Any = current("job")
    if job is None:
        return _looked_up(None, key_and_default, "Statek job context not found")
    kept = (job.py_env.local_state or {}).get(PERMANENT)
    return _looked_up(kept, key_and_default, f"{PERMANENT} not found in Statek job context")


def _one_or_two(name: str, arguments: tuple[Any, ...]) -> None:
    if not arguments or len(arguments) > 2:
        raise TypeError(f"{name} expected 1 or 2 arguments, got {len(arguments)}")


def _looked_up(names: Mapping[str, Any] | None, key_and_default: tuple[Any, ...], lack: str) -> Any:
    if names is not None:
        return names.get(*key_and_default) if len(key_and_default) == 2 else names[key_and_default[0]]
    if len(key_and_default) == 2:
        return key_and_default[1]
    raise RuntimeError(lack)


def _permanent() -> Any:
    job: Any = current("job")
    if job is None:
        raise RuntimeError("Statek job context not found")
    env = job.py_env
    if env.local_state is None:
        env.local_state = {}
    return env.local_state.setdefault(PERMANENT, Dict() if getattr(env, "stores", False) else {})


# -- variables ----------------------------------------------------------------------------------------------------


def find_locals(
    var_type: type | None = None,
    var_name: str | None = None,
    ext_scan: bool = True,
) -> Iterator[Any]:
    """Yield the callers' variables (including agent code's) by type or name, then the values stored with the job."""
    job: Any = current("job")
    kept = getattr(getattr(job, "py_env", None), "perm_ctx", None) if ext_scan else None
    yield from matching(_names_around(inspect.currentframe()), var_type, var_name, kept)


def matching(
    names: Mapping[str, Any], var_type: type | None, var_name: str | None, kept: Mapping[str, Any] | None
) -> Iterator[Any]:
    """Yield the values in `names` and `kept` that match a type or a name; a future is replaced by its value.

    A search by type skips futures that are not ready. A search by name raises such a future's FutureError.
    """
    if var_name is None:
        for value in {**(kept or {}), **names}.values():
            yield from _fitting(value, var_type, named=False)
    elif var_name in names:
        yield from _fitting(names[var_name], var_type, named=True)
    elif kept and var_name in kept:
        yield from _fitting(kept[var_name], var_type, named=True)


def _fitting(value: Any, wanted: type | None, *, named: bool) -> Iterator[Any]:
    if isinstance(value, FutureResult) and (named or wanted is not None):
        try:
            value = value.value
        except FutureError:
            if named:
                raise
            return
    if wanted is None or isinstance(value, wanted):
        yield value


def _names_around(frame: FrameType | None) -> dict[str, Any]:
    """Return the variables of `frame`'s callers, including agent code; inner frames take precedence."""
    frames: list[FrameType] = []
    frame = None if frame is None else frame.f_back
    while frame is not None and len(frames) < _MOST_FRAMES:
        frames.append(frame)
        frame = frame.f_back
    names: dict[str, Any] = {}
    for one in reversed(frames):
        found = dict(one.f_locals)
        for holder in (found, found.get("kwargs")):
            given = holder.get("_local_context") if isinstance(holder, dict) else None
            if isinstance(given, dict):
                names.update(given)
        names.update(found)
    return names


# -- system tools -------------------------------------------------------------------------------------------------


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
    job = get_current_job()
    if job is None:
        raise RuntimeError("panic() requires a current Statek job context")
    job.panic()
    print(f"# Difficulty increased to {job.difficulty.lower()}. Continue with the harder task.")


@tool(system=True)
def print_locals(category: str, *args: Any, **kwargs: Any) -> None:
    """Print the variables of a category in the current job's shared context."""
    job = _require_job("print_locals")
    print_category(category, args, job.host.categories(), job.shared_names, print)


@tool(system=True)
def shared_context_set_var(category: Any, key: str, value: Any, description: str, **kwargs: Any) -> None:
    """Store a variable in the current job's shared context, if it has one."""
    job = get_current_job()
    if job is not None and job.shared_names is not None:
        job.shared_names.set_var(category, key, value, description)


@tool(system=True, hidden=True)
def init_shared_context(*args: Any, read_only: bool = False, **kwargs: Any) -> None:
    """Replace STATEK's tool with this name in runs without an application, where there are no stored objects."""
    raise NotImplementedError(
        "init_shared_context needs stored objects, which only an application has; use the fixture statek_app"
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
@with_statek_docstring
def get_any(*args: Any, **kwargs: Any) -> CombinedFutureResult:
    """Return a future of the first available result.

    As in STATEK, agent code never gets an answer from it: arguments without a type hint are waited for, all of
    them, before the call, and their plain values are no futures (behaviour 7.5). Tools use `get_any_future`.
    """
    return get_any_future(*args)


@tool
@with_statek_docstring
def get_all(*args: Any, **kwargs: Any) -> CombinedFutureResult:
    """Return a future of all results. In agent code, it ends like `get_any`."""
    return get_all_future(*args)


def _found_none(name: str, folder: str) -> None:
    """Print STATEK's text for a missing folder; raises NotImplementedError if the setting `folder` is set."""
    runtime: Any = _require_job(name).host.runtime
    if getattr(runtime.settings, folder):
        raise NotImplementedError(
            f"the reference runtime does not implement the system tool {name!r} with the setting {folder}"
        )
    print("# No examples found" if folder == "examples_dir" else "# No documents found")


@tool(system=True)
def list_of_examples(start_index: int = 0, limit: int = 10, **kwargs: Any) -> None:
    """Print the examples for the current agent."""
    _found_none("list_of_examples", "examples_dir")


@tool(system=True)
def show_example(example_id: int | None = None, **kwargs: Any) -> None:
    """Print an example; without an id, the one in the variable `default_example_id`."""
    if example_id is None and not [*find_locals(var_name="default_example_id")]:
        print("# Example not found")
    else:
        _found_none("show_example", "examples_dir")


@tool(system=True)
def list_of_documents(topic: Any = None, start_index: int = 0, limit: int = 25, **kwargs: Any) -> None:
    """Print the topics, or the documents on a topic."""
    _found_none("list_of_documents", "documents_dir")


@tool(system=True)
def show_document(key: Any, topic: Any = None, start_from: int = 0, limit: int = 50, **kwargs: Any) -> None:
    """Print a document."""
    _found_none("show_document", "documents_dir")


_SYSTEM_TOOLS: Final[Mapping[str, Callable[..., Any]]] = {
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
        list_of_examples,
        show_example,
        list_of_documents,
        show_document,
    )
}


for _tool, _parameter, _hint in (
    (find_sub_task_handler, "id", Any | None),
    (send_notification_to, "target", SubTaskHandler | Job),
):
    # The annotations must be types: only then may a string from a model be the name of a variable.
    _function: Any = _tool
    _function.__wrapped__.__annotations__[_parameter] = _hint


def own_tool(function: Callable[..., Any], version: str) -> SystemToolSpec | None:
    """Return a release's system tool, for an agent that lists it among its own tools."""
    if _SYSTEM_TOOLS.get(getattr(function, "__name__", "")) is not function:
        return None
    return next((tool for tool in system_tool_specs(version) if tool.name == function.__name__), None)


@cache
def system_tools(version: str) -> tuple[Callable[..., Any], ...]:
    """Return the callables for a release's system tools, in order. `tools.spec.system_tool` accepts each of them."""
    found = []
    for entry in system_tool_specs(version):
        # Both callables are the same tool: agent code has the wrapper, which the store reads back as the
        # inner function.
        own = _wrapped(entry, _SYSTEM_TOOLS[entry.name])
        function = injected(own)
        for alike in (own, function):
            stands_for(alike, entry)
        found.append(function)
    return tuple(found)


def _wrapped(entry: SystemToolSpec, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable for a system tool, with the attributes that the tool has in one release."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    marked: Any = call
    marked.__name__ = marked.__qualname__ = entry.name
    # Agents see the attributes in this order, as in STATEK.
    marked.__wrapped__ = function
    marked.tool_system, marked.tool_target, marked.tool_hidden = True, entry.target, False
    return call
