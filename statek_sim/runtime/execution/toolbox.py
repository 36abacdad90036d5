"""What code of one agent can reach: tools, helpers and builtins, ready to be copied into a namespace.

Beside a job's workspace are kept names of tools and agent code, for a step or for good. Each block has limits of its
own; the data of many blocks add up, and are counted here.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from types import FrameType
from typing import Any, Final

from statek_sim.clock import Clock
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.access import FULL, reset_access, set_access
from statek_sim.runtime.state.context import Execution, current, current_context, require_alive, write_line
from statek_sim.runtime.state.futures import FutureError, FutureResult
from statek_sim.runtime.state.pyenv import PERMANENT, PyEnv
from statek_sim.runtime.tools.declaration import injected
from statek_sim.runtime.tools.future_calls import resolve, smart_call
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.compile import CALL
from statek_sim.sandbox.helpers import build_helpers, sandbox_builtins
from statek_sim.sandbox.llm_repr import StoredCollection, format_print_arg
from statek_sim.sandbox.modules import sandbox_modules
from statek_sim.sandbox.policy import SandboxPolicy


class Toolbox:
    """Built once per agent, of its tools and the system tools.

    `context` is asked for each block: agents add to it, or make another. What it raises ends the block in silence.
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
        """Return a fresh namespace for one block: shared names, then the job's own, which win."""
        namespace = {**job.py_env.global_state, **self._context(), **self._base}
        namespace["print"] = print_function(execution, self.budget)
        namespace["exit"] = exit_function(execution)
        namespace.update(job.py_env.local_state)
        return namespace

    @property
    def restricted(self) -> bool:
        """Whether agent code is restricted at all."""
        return self._policy.restricted

    def policy(self, *, hidden_allowed: bool) -> SandboxPolicy:
        """Return the policy for a block; a hidden warmup block may call hidden tools."""
        return _allowing_hidden(self._policy) if hidden_allowed else self._policy

    def find(self, job: Job, name: str) -> Callable[..., Any] | None:
        """Return what a requested tool call named `name` would run, or None."""
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
    """Return what STATEK's own rewriting of code refers to, which code can call by these names, too."""
    return {
        "_smart_call": _helpers(budget)[CALL],
        "_wrap_param": resolve,
        "_fmt_fstring_arg": format_print_arg,
    }


@lru_cache(maxsize=8)
def _helpers(budget: ExecutionBudget) -> Mapping[str, object]:
    """Return what compiled code refers to; it depends on the budget it charges and on nothing else."""
    return build_helpers(budget, resolve=resolve, call=smart_call)


@lru_cache(maxsize=256)
def _allowing_hidden(policy: SandboxPolicy) -> SandboxPolicy:
    return replace(policy, allowed_tools=policy.allowed_tools | policy.blocked_tools)


def exit_function(execution: Execution) -> Callable[..., None]:
    """Return the `exit` that agent code sees."""

    def job_exit(status: object = None) -> None:
        execution.exit(status)

    return _as_a_lambda(job_exit)


def print_function(execution: Execution, budget: ExecutionBudget) -> Callable[..., None]:
    """Return the `print` that agent code sees; what it prints is charged to `budget`."""

    def formatted(value: object) -> str:
        return format_print_arg(value, budget)

    def job_print(*args: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        require_alive(execution)
        # STATEK's own function: what it reads of objects is its own business.
        token = set_access(FULL)
        try:
            write_line(execution, args, sep, end, formatted)
        finally:
            reset_access(token)

    return _as_a_lambda(job_print)


def _as_a_lambda(function: Callable[..., None]) -> Callable[..., None]:
    """Give a function the name that STATEK's own has: agents read it in errors, and the store refuses lambdas."""
    function.__name__, function.__qualname__ = "<lambda>", "_setup_execution_context.<locals>.<lambda>"
    function.__module__ = "statek.executors.utils"
    return function


_MOST_FRAMES: Final = 40


# -- names beside a job -------------------------------------------------------------------------------------------


def statek_ctx_set(**values: Any) -> None:
    """Put names beside the current job, for as long as it is current; without a context it is a RuntimeError."""
    context = current_context()
    if context is None:
        raise RuntimeError("Statek execution context not found")
    context.update(values)


def statek_ctx_get(*key_and_default: Any) -> Any:
    """Return what is beside the current job under a name, or the default; without one its lack is an error."""
    _one_or_two("statek_ctx_get", key_and_default)
    return _looked_up(current_context(), key_and_default, "Statek execution context not found")


def perm_ctx_set(**values: Any) -> None:
    """Keep names with the current job, over its steps; without a job it is a RuntimeError."""
    _permanent().update(values)


def perm_ctx_set_unique(key: str, value: Any) -> str:
    """Keep a value with the current job under `key`, or `key_1` and so on when that is taken; return the name."""
    kept = _permanent()
    taken = {*_names_around(inspect.currentframe()), *kept}
    name, number = key, 0
    while name in taken:
        number += 1
        name = f"{key}_{number}"
    kept[name] = value
    return name


def perm_ctx_get(*key_and_default: Any) -> Any:
    """Return what is kept with the current job under a name, or the default; without one its lack is an error."""
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
    return env.local_state.setdefault(PERMANENT, {})


# -- variables ----------------------------------------------------------------------------------------------------


def find_locals(
    var_type: type | None = None,
    var_name: str | None = None,
    ext_scan: bool = True,
) -> Iterator[Any]:
    """Yield variables of the callers, agent code included, by type or by name; then those kept with the job."""
    job: Any = current("job")
    kept = getattr(getattr(job, "py_env", None), "perm_ctx", None) if ext_scan else None
    yield from matching(_names_around(inspect.currentframe()), var_type, var_name, kept)


def matching(
    names: Mapping[str, Any], var_type: type | None, var_name: str | None, kept: Mapping[str, Any] | None
) -> Iterator[Any]:
    """Yield the values that fit, futures by their values; one that is not ready is passed over, by name waited for."""
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
    """Return the variables of the callers, inner ones last, and of the agent code that called a tool among them."""
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


STEPS_KEPT: Final = 4
"""A job may keep as much as four blocks may build."""

_OBJECT: Final = 56
_WIDE: Final = 4
_SEQUENCES: Final = (list, tuple, set, frozenset, deque, StoredCollection)

# What a job keeps is whatever its code has made.
Value = Any


def check_kept(env: PyEnv, budget: ExecutionBudget) -> None:
    """Stop the code of a job whose names hold too much, before it adds to it."""
    limit = STEPS_KEPT * budget.allocation
    if weight(env.local_state, limit) > limit:
        budget.stop(
            f"the job keeps more than {limit:,} bytes of data from turn to turn; the likely cause is a list or text "
            "that every turn makes longer"
        )


def weight(names: Mapping[str, Value], limit: int) -> int:
    """Return how many bytes the values of `names` hold, each counted once, or something above `limit`.

    Reckoned, not measured, so that it is the same everywhere.
    """
    total = 0
    met: set[int] = set()
    pending: list[Value] = list(names.values())
    while pending and total <= limit:
        value = pending.pop()
        if id(value) in met:
            continue
        met.add(id(value))
        total += _OBJECT + _own_bytes(value)
        pending += _inside(value)
    return total


def _own_bytes(value: Value) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else _WIDE * len(value)
    if isinstance(value, bytes):
        return len(value)
    if type(value) is int:
        return value.bit_length() >> 3
    if isinstance(value, dict):
        return 64 * len(value)
    return 8 * len(value) if isinstance(value, _SEQUENCES) else 0


def _inside(value: Value) -> Iterable[Value]:
    if isinstance(value, StoredCollection):
        # Those shown as a dict have the methods of one.
        stored: Value = value
        try:
            return [*stored, *stored.values()] if issubclass(value.shown_as, dict) else list(stored)
        except Exception:  # noqa: BLE001  # the code that reads it hears what the store has against it
            return ()
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, set):
        return list(set.__iter__(value))
    if isinstance(value, frozenset):
        return list(frozenset.__iter__(value))
    return value if isinstance(value, _SEQUENCES) else ()
