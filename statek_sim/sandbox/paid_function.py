"""Functions written in Python that model code sees as built-in ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final


@final
class PaidFunction:
    """Stands for a built-in function: same calls, but they are paid for. Prints like the original.

    `inspect.signature` finds the original's signature, or that it has none:
    see `runtime.tools.future_calls.smart_call`.
    """

    __slots__ = ("__weakref__", "__wrapped__", "_statek_function", "_statek_name")

    def __init__(self, name: str, function: Callable[..., Any], original: Callable[..., Any]) -> None:
        self._statek_name = name
        self._statek_function = function
        self.__wrapped__ = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Pay, then do what the original does."""
        return self._statek_function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<built-in function {self._statek_name}>"
