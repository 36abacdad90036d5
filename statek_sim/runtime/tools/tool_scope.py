"""LLM_TOOLS_SCOPE: which tools a request offers, and what a text names for a tool that takes something else (6.6).

STATEK looks for a variable of that name in 40 frames of Python's stack, the inner ones first. So the variables of
functions count, some of STATEK's own hide those of agent code, and code that runs while another job waits for an async
tool, on top of its call, sees that job's variables too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, Final, TypeVar

from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.context import Execution
from statek_sim.runtime.tools.future_calls import smart_call
from statek_sim.sandbox.compile import FILENAME

_Tool = TypeVar("_Tool")

_CATEGORIES: Final = ("SYSTEM", "APPLICATION", "ALL")
_MARKER: Final = re.compile(r"([+-])")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsScope:
    """A parsed scope. `category` is None when the text has none; names keep the order written."""

    category: str | None = None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@lru_cache(maxsize=256)
def parse_tools_scope(text: str) -> ToolsScope:
    """Parse `[SYSTEM|APPLICATION|ALL] (+name,... | -name,...)*`; `ValueError` with STATEK's texts."""
    head, *lists = _MARKER.split(text.strip())
    added: list[str] = []
    removed: list[str] = []
    category = _category(head)
    for marker, names in zip(lists[::2], lists[1::2], strict=True):
        (added if marker == "+" else removed).extend(_names(names))
    return ToolsScope(category=category, added=tuple(added), removed=tuple(removed))


def _category(text: str) -> str | None:
    """Return the category before the first list."""
    written = text.strip()
    if not written:
        return None
    if written.upper() not in _CATEGORIES:
        raise ValueError(f"Invalid LLM_TOOLS_SCOPE category: {written!r}")
    return written.upper()


def _names(text: str) -> list[str]:
    """Return the tool names of one comma-separated list."""
    names = [name.strip() for name in text.split(",")]
    if not all(_NAME.fullmatch(name) for name in names):
        raise ValueError(f"Invalid LLM_TOOLS_SCOPE tool list: {text!r}")
    return names


def select_tools(
    scope_text: str | None,
    available: Sequence[_Tool],
    system_tools: Sequence[_Tool],
    chat_style: ChatStyle | None,
) -> tuple[_Tool, ...]:
    """Return the tools a request offers, in order; empty when no `tools` key is sent.

    `available` are the agent's own tools, `system_tools` the registered ones. A tool is any object with
    `__name__` and, optionally, `tool_system`, `tool_target` (a style, a collection of styles, or None for
    all) and `tool_hidden`. Without a chat style no tool is filtered by style.
    Raises `ValueError`, which ends the job, for unknown, unfitting or unselected names.
    """
    if not scope_text:
        return ()
    scope = parse_tools_scope(scope_text)
    own = [tool for tool in available if not getattr(tool, "tool_hidden", False)]
    registered = [tool for tool in system_tools if not getattr(tool, "tool_hidden", False)]
    selected = _by_category(scope.category, own, registered, chat_style)
    selected += [_resolve(name, own, registered, chat_style) for name in scope.added]
    unique = _unique(selected)
    _check_removals(scope.removed, unique, [*own, *registered], chat_style)
    return tuple(tool for tool in unique if _name(tool) not in scope.removed)


def _by_category(
    category: str | None, own: Sequence[_Tool], registered: Sequence[_Tool], chat_style: ChatStyle | None
) -> list[_Tool]:
    """Return the tools of a category that fit the style; SYSTEM and ALL bring in the registered ones."""
    if category is None:
        return []
    if category == "ALL":
        pool = [*own, *registered]
    elif category == "SYSTEM":
        pool = [*(tool for tool in own if getattr(tool, "tool_system", False)), *registered]
    else:
        pool = [tool for tool in own if not getattr(tool, "tool_system", False)]
    return [tool for tool in pool if fits(tool, chat_style)]


def _check_removals(
    removed: Sequence[str], selected: Sequence[_Tool], known: Sequence[_Tool], chat_style: ChatStyle | None
) -> None:
    """Raise for a removal that names no tool, an unfitting tool or a tool that was not selected."""
    names = [_name(tool) for tool in selected]
    for name in removed:
        _resolve(name, known, (), chat_style)
        if name not in names:
            raise ValueError(f"LLM_TOOLS_SCOPE removal references unselected tool: {name!r}")


def _resolve(
    name: str, own: Sequence[_Tool], registered: Sequence[_Tool], chat_style: ChatStyle | None
) -> _Tool:
    """Return the tool that a list names: the agent's own before a registered one."""
    for tool in (*own, *registered):
        if _name(tool) == name:
            break
    else:
        raise ValueError(f"LLM_TOOLS_SCOPE references unknown tool: {name!r}")
    if chat_style is not None and not fits(tool, chat_style):
        style = f"<EnumValue ChatStyle.{chat_style.name}>"
        raise ValueError(f"LLM_TOOLS_SCOPE tool {name!r} is not compatible with chat_style {style}")
    return tool


def fits(tool: object, chat_style: ChatStyle | None) -> bool:
    """Tell whether a tool is meant for the style."""
    target: object = getattr(tool, "tool_target", None)
    if chat_style is None or target is None:
        return True
    if isinstance(target, (list, tuple, set, frozenset)):
        return chat_style in target
    return target == chat_style


def _unique(tools: Iterable[_Tool]) -> list[_Tool]:
    """Return the tools with the first of each name."""
    first: dict[str, _Tool] = {}
    for tool in tools:
        first.setdefault(_name(tool), tool)
    return list(first.values())


def _name(tool: object) -> str:
    """Return the name the model sees."""
    name: str = getattr(tool, "__name__", "")
    return name


F = TypeVar("F", bound=Callable[..., Any])

NOTHING: Final = object()
"""No variable has the name."""

_REACH: Final = 40
"""Frames that STATEK looks at. It counts those of its own code, too: the numbers below stand for them.

They are those of Python 3.11, whatever runs this, so that a trace is the same everywhere. Newer ones take a frame more
for a step of asyncio's: there STATEK sees one call less far.
"""
_FINDING: Final = 2
"""Frames of the search itself, inside of the tool's."""
_TOOL: Final = 2
"""Frames of a tool."""
_CODE, _CALL = 6, 4
"""Frames beneath agent code, or beneath a tool that the model requested, down to the worker that runs the job."""

_Names = tuple[Mapping[str, object], bool]
"""Variables, and whether they are those of a job and not of a function."""

_SMART_CALL: Final = smart_call.__code__
"""Between agent code and what it calls."""

_CALLS: Final[set[CodeType]] = set()


def runs_a_call(function: F) -> F:
    """Mark the function that runs a call which the model requested: its `execution` holds the names."""
    _CALLS.add(function.__code__)
    return function


def named(text: str, parameter: str, execution: Execution, *, changed: bool) -> object:
    """Return the variable that `text` names, or NOTHING.

    `parameter` takes the text, and `changed` says whether another argument has named something before it.
    """
    wait = execution.job.host.profile.frames_of_a_wait
    if not wait:
        return execution.namespace.get(text, NOTHING)
    inside: Mapping[str, object] = {"name": parameter, "value": text, "parsed": None, "changed": changed}
    if text in inside:
        return inside[text]
    seen = False
    for names, is_base in _around(wait):
        if text in names:
            return names[text]
        seen = seen or is_base
    return NOTHING if seen else execution.namespace.get(text, NOTHING)


def _around(wait: int) -> Iterator[_Names]:
    """Yield the variables of the calls that STATEK would reach, the inner ones first."""
    at, frame = _FINDING + _TOOL, sys._getframe()
    inner: CodeType | None = None
    while at - _TOOL < _REACH and frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
        if code in _CALLS:
            # The tool itself is told of them.
            yield frame.f_locals["execution"].namespace, True
            at += _CALL + wait + _TOOL
        elif code is _SMART_CALL:
            at += 1
        elif code.co_filename != FILENAME:
            continue
        elif at >= _REACH:
            return
        elif code.co_name == "<module>":
            yield frame.f_globals, True
            at += 1 + _CODE + wait + _TOOL
        elif inner is not None and inner in code.co_consts:
            # What compilation put around a lambda.
            inner = None
        else:
            yield frame.f_locals, False
            inner = code if code.co_name == "<lambda>" else None
            at += 1
