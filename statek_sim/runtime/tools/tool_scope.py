"""LLM_TOOLS_SCOPE: which tools a request offers (6.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from statek_sim.runtime.state.chat_style import ChatStyle

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
