"""A small runtime for tests of the sandbox: what executes code there is the sandbox's own, the rest is plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from statek_sim.clock import VirtualClock
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.compile import compile_block
from statek_sim.sandbox.helpers import build_helpers, sandbox_builtins
from statek_sim.sandbox.llm_repr import format_print_arg
from statek_sim.sandbox.modules import sandbox_modules
from statek_sim.sandbox.policy import SandboxPolicy
from statek_sim.sandbox.time_limit import limited


def retrying_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call as STATEK does: once more after a ValueError or TypeError (behaviour 7.3)."""
    try:
        return function(*args, **kwargs)
    except (ValueError, TypeError):
        pass
    return function(*args, **kwargs)


class Session:
    """One namespace, one console."""

    def __init__(
        self,
        policy: SandboxPolicy | None = None,
        budget: ExecutionBudget | None = None,
        clock: VirtualClock | None = None,
    ) -> None:
        self.policy = policy or SandboxPolicy()
        self.budget = budget or ExecutionBudget()
        self.clock = clock or VirtualClock()
        self.console: list[str] = []
        modules = sandbox_modules(self.clock, self.budget)
        self.names: dict[str, Any] = {
            **build_helpers(self.budget, resolve=lambda value: value, call=retrying_call),
            "__builtins__": sandbox_builtins(self.policy, lambda: modules, self.budget),
            "print": self._print,
        }

    def run(self, code: str) -> list[str]:
        """Execute `code` as one step and return its console. Errors of the code propagate."""
        self.budget.reset()
        self.console.clear()
        limited(self.budget, code, lambda: self._run(code))
        return list(self.console)

    def _run(self, code: str) -> None:
        for statement in compile_block(code, self.policy).statements:
            exec(statement.code, self.names)
            if statement.is_expression:
                result = self.names.pop("_statek_result")
                if result is not None or not statement.is_print:
                    text = format_print_arg(result, self.budget)
                    self.budget.allocate(len(text))
                    self.console.append(text)
            self.budget.check()

    def shown(self, code: str) -> list[str]:
        """Execute `code` and return its console, with the error that ended it as the last entry."""
        try:
            return self.run(code)
        except Exception as error:  # noqa: BLE001  # model-written code raises what it likes
            return [*self.console, f"{type(error).__name__}: {error}"]

    def _print(self, *args: Any, sep: str = " ", end: str = "\n", **_: Any) -> None:
        self.budget.write(sum(len(arg) if isinstance(arg, str) else 0 for arg in args))
        shown = [format_print_arg(arg, self.budget) for arg in args]
        self.console.append((sep.join(shown) + end).rstrip("\n"))
