"""What Python's code says of a tool: the function that its author wrote, and the parameter for the context."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, Final, Union, get_args, get_origin

from statek_sim.agent.effects import ToolContext

CONTEXT: Final = "context"
"""A parameter of this name is given the `ToolContext` where none has it for its hint."""


def written(function: Callable[..., Any]) -> Any:
    """Return the function with the hints and the docstring: that in a `partial`, or the `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type) or hasattr(function, "__wrapped__"):
        return function
    return getattr(function, "__call__", function)  # noqa: B004  # the method itself, not whether there is one


def docstring_of(function: Callable[..., Any]) -> str:
    """Return what a function says of itself; of an object, what its `__call__` does, or else its class."""
    code = written(function)
    if inspect.ismethod(code) and code.__name__ == "__call__" and not code.__doc__:
        # Its inherited docstring is Python's own, and says nothing.
        return inspect.getdoc(type(code.__self__)) or ""
    return inspect.getdoc(code) or ""


def context_parameter(function: Callable[..., Any], names: Iterable[str]) -> str | None:
    """Return which of a function's parameters takes the `ToolContext`: by its hint, else by the name `context`."""
    code = written(function)
    hints = _annotations(code)
    names = tuple(names)
    hinted = next((name for name in names if name in hints and _is_context(hints[name], code)), None)
    return hinted or (CONTEXT if CONTEXT in names else None)


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return dict(getattr(function, "__annotations__", {}))
    except NameError:  # they are evaluated when they are looked at from Python 3.14 on
        return {}


def _is_context(hint: Any, function: Callable[..., Any]) -> bool:
    if not isinstance(hint, str):
        arms = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        return ToolContext in arms
    known = getattr(inspect.unwrap(function), "__globals__", {})
    return any(_names_context(arm.strip(" '\""), known) for arm in hint.split("|"))


def _names_context(word: str, known: dict[str, Any]) -> bool:
    """Return whether a hint that is a text names the class; what is imported for type checkers only is believed."""
    own = ToolContext.__name__
    module, _, last = word.rpartition(".")
    if module:
        return last == own and getattr(known.get(module), own, ToolContext) is ToolContext
    return known.get(word, ToolContext if word == own else None) is ToolContext
