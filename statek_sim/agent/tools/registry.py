"""The tool registry (harness document §2): all of an application's tools, and the tools offered in a turn."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final, Protocol

from statek_sim.agent.effects import ToolFunction
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.agent.tools.tool import Tool, code_of, tool_from
from statek_sim.did_you_mean import suggestion, with_suggestion
from statek_sim.errors import BadTool
from statek_sim.values import JSON, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools offered in one turn, in a stable order, with the registry's generation when the offer was made."""

    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    generation: int
    checks: Mapping[str, ArgumentCheck]

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in the order in which they are offered."""
        return tuple(self.tools)

    @property
    def schemas(self) -> dict[str, Mapping[str, JSON]]:
        """The schema of each tool's parameters, keyed by tool name."""
        return {name: tool.parameters for name, tool in self.tools.items()}


class ToolSource(Protocol):
    """A server whose tools are in a registry, which reloads them when the server's list changes."""

    @property
    def name(self) -> str:
        """The server's name in the registry."""

    @property
    def prefix(self) -> str | None:
        """The prefix for its tools' names (None: the server's name; empty: no prefix)."""

    def tools(self) -> Sequence[Tool]:
        """Return the server's current tools, under its own names."""

    def changed(self) -> bool:
        """Return whether the tools changed since this method was last called."""


class Registry:
    """An application's tools, keyed by name, in order of registration.

    `task_types` maps task types to tool names. `generation` grows with every change. `notes` are lines for the trace
    about servers' tools that changed or were left out; the reader removes them.

    Source: the harness document §2.
    """

    def __init__(
        self,
        tools: Iterable[Tool | ToolFunction] = (),
        *,
        task_types: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._tools: dict[str, Tool] = {}
        self._checks: dict[str, ArgumentCheck] = {}
        self._offers: dict[object, Offer] = {}
        for name, listed in (task_types or {}).items():
            if isinstance(listed, str):
                raise BadTool(f"task type {name!r} is {listed!r}; expected a list of tool names")
        self._task_types = {name: tuple(tools) for name, tools in (task_types or {}).items()}
        self._sources: list[ToolSource] = []
        self._vanished: set[str] = set()
        self.notes: list[str] = []
        self.generation = 0
        given: object = tools
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise BadTool(f"tools is {given!r}; expected a list of functions or Tools")
        for tool in tools:
            self.register(tool)

    # -- what there is -----------------------------------------------------------------------------------------

    def register(self, tool: Tool | ToolFunction) -> Tool:
        """Add a tool, or a function as a tool; raises `BadTool` for a duplicate name or an invalid schema."""
        made = tool if isinstance(tool, Tool) else tool_from(tool)
        if made.name in self._tools:
            raise BadTool(
                f"tool {made.name!r} is already registered; expected another name, or unregister it"
            )
        self._checks[made.name] = _check_of(made)
        self._tools[made.name] = made
        self._changed()
        return made

    def follow(self, source: ToolSource) -> None:
        """Register a server's tools, and reload its list when it changes.

        The tools are named `server__tool`; if the source has a prefix, `prefix__tool`, or just `tool` if that prefix is
        empty. A changed list is loaded when the next turn's tools are chosen. A tool with an invalid schema is left out
        and noted. A duplicate name raises `BadTool` now, but if a list changes later, the tool is left out.
        """
        if any(one.name == source.name for one in self._sources):
            raise BadTool(
                f"server {source.name!r} is already registered; expected another name for the second server"
            )
        self._replace(source.name, self._listed(source, collisions_fail=True))
        source.changed()
        self._sources.append(source)

    def _listed(
        self, source: ToolSource, *, collisions_fail: bool = False
    ) -> dict[str, tuple[Tool, ArgumentCheck]]:
        """Return a server's usable tools by their new names, and add a note about every other tool."""
        named: dict[str, tuple[Tool, ArgumentCheck]] = {}
        for tool in source.tools():
            made = self._of_server(source.name, tool, source.prefix)
            other = self._tools.get(made.name)
            if made.name in named or (other is not None and other.server != source.name):
                collision = self._collides(made, other)
                if collisions_fail:
                    raise collision
                self.notes.append(f"left out: {collision}")
                continue
            try:
                named[made.name] = (made, _check_of(made))
            except BadTool as problem:
                self.notes.append(f"left out: {problem}")
        return named

    def _of_server(self, server: str, tool: Tool, prefix: str | None) -> Tool:
        name = server_tool_name(server if prefix is None else prefix, tool.name)
        return replace(tool, name=name, server=server)

    def _collides(self, tool: Tool, other: Tool | None) -> BadTool:
        whose = "is listed twice" if other is None else f"has the same name as {_owner(other)}"
        return BadTool(
            f"tool {tool.name!r} of server {tool.server!r} {whose}; expected a unique name: "
            "give the server a prefix, so that its tools are named PREFIX__NAME"
        )

    def _replace(self, server: str, named: Mapping[str, tuple[Tool, ArgumentCheck]]) -> None:
        """Replace a server's tools, keeping the position of all others for the prompt cache."""
        new = {name: made for name, (made, _) in named.items()}
        tools: dict[str, Tool] = {}
        for name, tool in self._tools.items():
            # The first old tool of the server makes room for all new ones; later ones change nothing.
            tools |= {name: tool} if tool.server != server else new
        tools |= new
        checks = {**self._checks, **{name: check for name, (_, check) in named.items()}}
        self._tools, self._checks = tools, {name: checks[name] for name in tools}
        self._changed()

    def _take_changes(self) -> None:
        """Load the lists that changed since the last turn."""
        for source in self._sources:
            if source.changed():
                self._take_list(source)

    def _take_list(self, source: ToolSource) -> None:
        named = self._listed(source)
        before = {name for name, tool in self._tools.items() if tool.server == source.name}
        added = [f"+{name}" for name in named if name not in before]
        gone = [f"-{name}" for name in self._tools if name in before and name not in named]
        self.notes.append(
            f"the list of server {source.name!r} changed: {' '.join([*added, *gone]) or 'definitions only'}"
        )
        self._vanished = (self._vanished | {name[1:] for name in gone}) - named.keys()
        self._replace(source.name, named)

    def unregister(self, name: str) -> None:
        """Remove a tool; raises `BadTool` if it is not registered."""
        self._named(name)
        del self._tools[name], self._checks[name]
        self._changed()

    def _changed(self) -> None:
        self._offers.clear()
        self.generation += 1

    def get(self, name: str) -> Tool | None:
        """Return the tool with this name, or None if there is none."""
        return self._tools.get(name)

    def list(self) -> tuple[Tool, ...]:
        """Return all tools, in the order of registration."""
        return tuple(self._tools.values())

    def checks(self, name: str) -> ArgumentCheck:
        """Return a registered tool's argument check."""
        return self._checks[name]

    # -- tools of a turn ---------------------------------------------------------------------------------------

    def offer(
        self,
        *,
        names: Sequence[str] | None = None,
        task: str | None = None,
        all_tags: Sequence[str] | None = None,
        any_tag: Sequence[str] | None = None,
        without: Set[str] = frozenset(),
    ) -> Offer:
        """Return the tools that match all given filters (without filters, all tools), except those in `without`.

        Calls with the same arguments return the same object until the registry changes. Raises `BadTool` for an empty
        filter, an unknown task type or an unknown tool. Changed server lists are loaded first; tools that a server has
        removed are left out.
        """
        if self._sources:
            self._take_changes()
        for what, given in (("names", names), ("all_tags", all_tags), ("any_tag", any_tag)):
            if isinstance(given, str):
                raise BadTool(f"{what} is {given!r}; expected a list of strings, not one string")
        key = (_key(names), task, _key(all_tags), _key(any_tag), frozenset(without))
        made = self._offers.get(key)
        if made is None:
            chosen: Iterable[Tool] = self.list() if names is None else self._all_named(names)
            if task is not None:
                of_task = self.for_task(task)
                chosen = of_task if names is None else [tool for tool in chosen if tool in of_task]
            if all_tags is not None:
                chosen = self._tagged(chosen, all_tags, all)
            if any_tag is not None:
                chosen = self._tagged(chosen, any_tag, any)
            named = {tool.name: tool for tool in chosen if tool.name not in without}
            made = self._offers[key] = Offer(
                tools=named,
                specs=tuple(tool.spec for tool in named.values()),
                generation=self.generation,
                checks={name: self._checks[name] for name in named},
            )
        return made

    def for_task(self, task: str) -> tuple[Tool, ...]:
        """Return a task type's tools, in the order of its list."""
        if task not in self._task_types:
            hint = suggestion(task, self._task_types) or f" Known: {', '.join(self._task_types) or 'none'}"
            raise BadTool(f"task type {task!r} is unknown.{hint}".removesuffix("."))
        wanted = self._task_types[task]
        missing = [name for name in wanted if name not in self._tools and name not in self._vanished]
        if missing:
            raise BadTool(f"task type {task!r} names unregistered tools: {', '.join(missing)}")
        return tuple(self._tools[name] for name in wanted if name in self._tools)

    def _all_named(self, names: Iterable[str]) -> Iterator[Tool]:
        return (self._named(name) for name in names if name not in self._vanished)

    def _named(self, name: str) -> Tool:
        if name not in self._tools:
            raise BadTool(with_suggestion(f"tool {name!r} is not registered", name, self._tools))
        return self._tools[name]

    def _tagged(
        self, tools: Iterable[Tool], tags: Sequence[str], how: Callable[[Iterable[object]], bool]
    ) -> Iterator[Tool]:
        if not tags:
            raise BadTool("an empty tag list selects nothing; remove the filter to offer every tool")
        return iter([tool for tool in tools if how(tag in tool.tags for tag in tags)])


def _check_of(tool: Tool) -> ArgumentCheck:
    return ArgumentCheck(tool.name, tool.parameters, code_of(tool.run).conversions)


def _owner(tool: Tool) -> str:
    return f"one of server {tool.server!r}" if tool.server else "one of your own"


def _key(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


LONGEST: Final = 64
"""The maximum length of a tool name that all providers accept."""

_UNSENDABLE: Final = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS: Final = 8


def server_tool_name(prefix: str, tool: str) -> str:
    """Return the name for a server's tool: `prefix__tool`, or the tool's own name if the prefix is empty.

    MCP allows 128 characters and dots; providers accept 64 letters, digits, `_` and `-`. Other characters become `_`,
    and a name that was changed or cut ends in 8 digits of its SHA-256, so that names stay distinct.
    """
    whole = f"{prefix}__{tool}" if prefix else tool
    fitting = _UNSENDABLE.sub("_", whole)
    if fitting == whole and len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:_DIGITS]
    return f"{fitting[: LONGEST - _DIGITS - 1]}_{digest}"


MOST_OFFERED: Final = 20
"""The number of tools per request above which models choose less reliably (harness document §2: "under 20")."""

ALIKE: Final = 90.0
"""Description similarity, out of 100, above which tools are hard to tell apart."""

_SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(_+[a-z0-9]+)*", re.ASCII)
_SENDABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """A lint finding about a set of tools; `tool` is empty if it concerns the whole set."""

    tool: str
    rule: str
    reason: str

    def __str__(self) -> str:
        """Return the finding as one line."""
        return f"{self.tool or 'tools'}: {self.rule}: {self.reason}"


def lint(tools: Sequence[Tool]) -> tuple[Complaint, ...]:
    """Return findings about tools that make it hard for a model to choose between them."""
    from rapidfuzz import fuzz  # noqa: PLC0415  # only for callers of `lint`

    found: list[Complaint] = []
    if len(tools) >= MOST_OFFERED:
        reason = f"{len(tools)} tools are offered together, expected under {MOST_OFFERED}"
        found.append(Complaint(tool="", rule="too-many", reason=reason))
    for tool in tools:
        found += _of_one(tool)
    for one, other in combinations(tools, 2):
        alike = fuzz.token_set_ratio(one.description, other.description)
        if one.description and other.description and alike >= ALIKE:
            reason = f"its description is {alike:.0f} % similar to that of {one.name!r}"
            found.append(Complaint(tool=other.name, rule="overlap", reason=reason))
    return tuple(found)


def _of_one(tool: Tool) -> Iterator[Complaint]:
    if not _SENDABLE.fullmatch(tool.name):
        reason = "providers reject it: expected 1 to 64 letters, digits, '_' or '-'"
        yield Complaint(tool=tool.name, rule="name", reason=reason)
    elif tool.server is None and not _SNAKE.fullmatch(
        tool.name
    ):  # the names of a server's tools cannot be changed
        yield Complaint(tool=tool.name, rule="name", reason="expected snake_case")
    if not tool.description.strip():
        yield Complaint(
            tool=tool.name,
            rule="description",
            reason="no description, so the model has to guess from the name",
        )
    properties = tool.parameters.get("properties", {})
    for name, about in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(about, dict) or not about.get("description"):
            yield Complaint(tool=tool.name, rule="parameter", reason=f"{name!r} has no description")
