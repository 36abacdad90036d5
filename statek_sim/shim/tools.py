"""`@tool`, `@subtask` and the lookup of tools in STATEK's process-wide registry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from statek_sim.errors import BadTool
from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.execution.toolbox import get_all, get_any, system_tools
from statek_sim.runtime.jobs import subtask as subtasks
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.tools import declaration as tools
from statek_sim.runtime.tools.spec import fits

Tool = Callable[..., Any]

_REGISTRY: Final[list[Tool]] = []
"""The application's tools in creation order; system tools among them belong to every agent."""


def registered() -> tuple[Tool, ...]:
    """Return the application's tools, oldest first."""
    return tuple(_REGISTRY)


@contextmanager
def registry_restored() -> Iterator[None]:
    """When the `with` statement ends, remove the tools that were registered inside it."""
    before = list(_REGISTRY)
    try:
        yield
    finally:
        _REGISTRY[:] = before


def tool(f: Any = None, **options: Any) -> Any:
    """Mark a function as a tool and register it; the options are the same as for `statek_sim.tool`."""
    return _registering(tools.tool(**options), f)


def subtask(f: Any = None, **options: Any) -> Any:
    """Mark a function that starts delegated work, and register it."""
    return _registering(subtasks.subtask(**options), f)


def _registering(mark: Callable[[Any], Any], f: Any) -> Any:
    def decorate(function: Any) -> Any:
        try:
            made = mark(function)
        except BadTool as problem:
            raise _as_statek_says(problem) from None
        _REGISTRY.append(made)
        return made

    return decorate if f is None else decorate(f)


def _as_statek_says(problem: BadTool) -> TypeError:
    """Return STATEK's error for a function that cannot be a tool.

    If the problem is the handler, a note describes it.
    """
    text = str(problem)
    if not text.startswith("error_handler "):
        return TypeError(text)
    error = TypeError(
        "error_handler passed to @tool must be decorated with @error_handler and satisfy the error-handler protocol: "
        "name starting with '_', accepting (context, error=None)."
    )
    error.add_note(text)
    return error


def find_tools(
    scope: str | None = None,
    chat_style: ChatStyle | None = None,
    include_hidden: bool = False,
) -> list[Tool]:
    """Return the registered tools in a scope (SYSTEM, APPLICATION, or None for all) that match a chat style.

    If several tools have the same name, the first is returned. Hidden tools require `include_hidden`.
    """
    own = system_tools(current_runtime().profile.system_tools)
    found: dict[str, Tool] = {}
    for found_tool in _selected([*own, get_any, get_all, *_REGISTRY], scope, chat_style):
        if include_hidden or not getattr(found_tool, "tool_hidden", False):
            found.setdefault(found_tool.__name__, found_tool)
    return list(found.values())


def select_tools(tools: Iterable[Tool], scope: str | None, chat_style: ChatStyle | None = None) -> list[Tool]:
    """Return those `tools` in a scope (SYSTEM, APPLICATION, or None for all) that match a chat style.

    Hidden tools are omitted.
    """
    return [
        found for found in _selected(tools, scope, chat_style) if not getattr(found, "tool_hidden", False)
    ]


def _selected(tools: Iterable[Tool], scope: str | None, chat_style: ChatStyle | None) -> Iterator[Tool]:
    for found in tools:
        system = bool(getattr(found, "tool_system", False))
        if (scope == "SYSTEM" and not system) or (scope == "APPLICATION" and system):
            continue
        if fits(found, chat_style):
            yield found


def create_tool(
    tool_name: str,
    callable: Tool,  # noqa: A002  # STATEK's own name
    docstring: str,
    context: dict[str, Any],
    *args: Any,
    **kwargs: Any,
) -> Tool:
    """Add a tool to `context` that calls `callable` with `args` and `kwargs`, ignoring the agent's arguments.

    Raises ValueError if the context already has the name.
    """
    if tool_name in context:
        raise ValueError(f"tool {tool_name} already exists within the context")

    def tool_func(*_args: Any, **_kwargs: Any) -> Any:
        return callable(*args, **kwargs)

    tool_func.__name__ = tool_name
    tool_func.__doc__ = docstring
    tool_func.__annotations__ = {}
    made: Tool = tool(tool_func)
    context[tool_name] = made
    return made
