"""A method of a stored object as agent code has it: to be called, and nothing else (dbzero 0.7.0, restricted).

Python cannot read its signature, so a call that fails is made once, where one of a plain function is made twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class RestrictedMethod:
    """Calls a method, and refuses every attribute."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        object.__setattr__(self, "_call", call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method."""
        return _CALL(self)(*args, **kwargs)

    def __getattribute__(self, name: str) -> Any:
        """Refuse an attribute; Python looks up what it does with the object by its class."""
        if name.startswith("__"):
            return object.__getattribute__(self, name)
        raise AttributeError(f"Restricted method attribute access denied: {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse to be changed."""
        raise AttributeError(f"'RestrictedMethod' object has no attribute {name!r}")

    def __repr__(self) -> str:
        return "<RestrictedMethod object at 0x...>"


_CALL: Any = vars(RestrictedMethod)["_call"].__get__
