"""Functions written in Python that model code sees as built-in ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.sandbox.policy import check_template


@final
class BuiltinShim:
    """Stands for a built-in function: same calls, same text, done by a function of ours.

    `inspect.signature` finds the original's signature, or that it has none:
    see `runtime.tools.future_calls.smart_call`.
    """

    __slots__ = ("__weakref__", "__wrapped__", "_statek_function")

    def __init__(self, function: Callable[..., Any], original: Callable[..., Any]) -> None:
        self._statek_function = function
        self.__wrapped__ = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the original does."""
        return self._statek_function(*args, **kwargs)

    def __repr__(self) -> str:
        return without_addresses(repr(self.__wrapped__))


def format_method(budget: ExecutionBudget, owner: Any, name: str) -> Any:
    """Return `owner.format` or `owner.format_map`, of texts one that reads only what restricted code may read.

    What it makes counts, and shows no memory addresses.
    """
    method = getattr(owner, name)
    if not (isinstance(owner, str) or (isinstance(owner, type) and issubclass(owner, str))):
        return method

    def formatted(*args: Any, **kwargs: Any) -> Any:
        template = owner if isinstance(owner, str) else args[0] if args else ""
        if isinstance(template, str):
            check_template(template)
        text = method(*args, **kwargs)
        budget.allocate(len(text))
        return without_addresses(text)

    return BuiltinShim(formatted, method)
