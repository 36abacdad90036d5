"""What code of one agent can reach: tools, helpers and builtins, ready to be copied into a namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from statek_sim.clock import Clock
from statek_sim.runtime.execution.workspace_data import perm_ctx_set, statek_ctx_get
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.access import FULL, reset_access, set_access
from statek_sim.runtime.state.context import Execution, require_alive, write_line
from statek_sim.runtime.tools.declaration import injected
from statek_sim.runtime.tools.future_calls import resolve, smart_call
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.helpers import build_helpers, sandbox_builtins
from statek_sim.sandbox.llm_repr import format_print_arg
from statek_sim.sandbox.modules import SandboxModule, sandbox_modules
from statek_sim.sandbox.policy import SandboxPolicy
from statek_sim.sandbox.transform import CALL


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
            "__builtins__": sandbox_builtins(policy, _ModulesOnDemand(clock, budget), budget),
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


class _ModulesOnDemand(Mapping[str, SandboxModule]):
    """The importable modules, made when code first imports one; most code imports none."""

    def __init__(self, clock: Clock, budget: ExecutionBudget) -> None:
        self._clock = clock
        self._budget = budget
        self._made: Mapping[str, SandboxModule] | None = None

    def _modules(self) -> Mapping[str, SandboxModule]:
        if self._made is None:
            self._made = sandbox_modules(self._clock, self._budget)
        return self._made

    def __getitem__(self, name: str) -> SandboxModule:
        return self._modules()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules())

    def __len__(self) -> int:
        return len(self._modules())


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
