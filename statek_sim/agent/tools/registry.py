"""The tool registry (002 §2): all tools an application has, and the few that a turn offers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from rapidfuzz import fuzz

from statek_sim.agent.effects import ToolFunction
from statek_sim.agent.tools.arguments import ArgumentCheck
from statek_sim.agent.tools.tool import Tool, tool_from
from statek_sim.agent.variants import HARDENED, Variant
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadTool
from statek_sim.providers.wire.format import FormatName
from statek_sim.values import JSON, ToolSpec

MOST_OFFERED: Final = 20
"""Tools per request above which models choose worse (002 §2: "under 20")."""

ALIKE: Final = 90.0
"""Likeness of two descriptions, of 100, from which they are told apart badly."""

_SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(_+[a-z0-9]+)*", re.ASCII)
_SENDABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The tools of one turn, in a stable order. `generation` is the registry's when it was made."""

    tools: Mapping[str, Tool]
    specs: tuple[ToolSpec, ...]
    generation: int

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in the order in which they are offered."""
        return tuple(self.tools)

    @property
    def schemas(self) -> dict[str, Mapping[str, JSON]]:
        """The parameters of each tool by its name."""
        return {name: tool.parameters for name, tool in self.tools.items()}


def offer_of(tools: Iterable[Tool], generation: int = 0) -> Offer:
    """Return the offer of these tools."""
    named = {tool.name: tool for tool in tools}
    return Offer(tools=named, specs=tuple(tool.spec for tool in named.values()), generation=generation)


class Registry:
    """Tools by name, in the order in which they were registered.

    `task_types` are names of tools by type of task: data, not code (002 §2). `generation` grows with every change.
    """

    def __init__(
        self,
        tools: Iterable[Tool | ToolFunction] = (),
        *,
        task_types: Mapping[str, Sequence[str]] | None = None,
        variant: Variant = HARDENED,
    ) -> None:
        self._variant = variant
        self._tools: dict[str, Tool] = {}
        self._checks: dict[str, ArgumentCheck] = {}
        self._offers: dict[object, Offer] = {}
        self._task_types = {name: tuple(tools) for name, tools in (task_types or {}).items()}
        self.generation = 0
        given: object = tools
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise BadTool(f"tools is {given!r}; expected a list of functions or Tools")
        for tool in tools:
            self.register(tool)

    # -- what there is -----------------------------------------------------------------------------------------

    def register(self, tool: Tool | ToolFunction) -> Tool:
        """Add a tool, or a plain function as one; a name that is taken and a schema that is none are `BadTool`."""
        made = tool if isinstance(tool, Tool) else tool_from(tool)
        if made.name in self._tools:
            raise BadTool(
                f"tool {made.name!r} is already registered; expected another name, or unregister it"
            )
        self._checks[made.name] = ArgumentCheck(made.name, made.parameters)
        self._tools[made.name] = made
        self._changed()
        return made

    def register_server(self, server: str, tools: Iterable[Tool]) -> None:
        """Put the tools of one server in the place of those it had before, as `server__tool`."""
        self._remove(tool.name for tool in self.list() if tool.server == server)
        for tool in tools:
            self.register(replace(tool, name=f"{server}__{tool.name}", server=server))
        self._changed()

    def unregister(self, name: str) -> None:
        """Take a tool away; one that is not there is `BadTool`."""
        if name not in self._tools:
            raise BadTool(
                f"tool {name!r} is not registered.{suggestion(name, self._tools)}".removesuffix(".")
            )
        self._remove([name])
        self._changed()

    def _remove(self, names: Iterable[str]) -> None:
        for name in list(names):
            del self._tools[name], self._checks[name]

    def _changed(self) -> None:
        self._offers.clear()
        self.generation += 1

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, None when there is none."""
        return self._tools.get(name)

    def list(self) -> tuple[Tool, ...]:
        """Return all tools, in the order in which they were registered."""
        return tuple(self._tools.values())

    def checks(self, name: str) -> ArgumentCheck:
        """Return the check of a registered tool's arguments."""
        return self._checks[name]

    # -- what a turn offers ------------------------------------------------------------------------------------

    def offer(
        self,
        *,
        names: Sequence[str] | None = None,
        task: str | None = None,
        all_tags: Sequence[str] | None = None,
        any_tag: Sequence[str] | None = None,
        without: Set[str] = frozenset(),
    ) -> Offer:
        """Return the tools that fit all that is said, everything when nothing is, but none of `without`.

        The same request gives the same object until the registry changes. `BadTool` for what the variant refuses:
        an empty filter, an unknown task type or tool.
        """
        key = (_key(names), task, _key(all_tags), _key(any_tag), frozenset(without))
        made = self._offers.get(key)
        if made is None:
            chosen: Iterable[Tool] = self.list() if names is None else map(self._named, names)
            if task is not None:
                of_task = self.for_task(task)
                chosen = of_task if names is None else [tool for tool in chosen if tool in of_task]
            if all_tags is not None:
                chosen = self._tagged(chosen, all_tags, all)
            if any_tag is not None:
                chosen = self._tagged(chosen, any_tag, any)
            made = offer_of((tool for tool in chosen if tool.name not in without), self.generation)
            self._offers[key] = made
        return made

    def for_task(self, task: str) -> tuple[Tool, ...]:
        """Return the tools of a task type, in the order of its list."""
        if task not in self._task_types:
            if self._variant.unknown_task_type == "nothing":
                return ()
            hint = suggestion(task, self._task_types) or f" Known: {', '.join(self._task_types) or 'none'}"
            raise BadTool(f"task type {task!r} is unknown.{hint}".removesuffix("."))
        wanted = self._task_types[task]
        missing = [name for name in wanted if name not in self._tools]
        if missing and self._variant.missing_task_tool == "error":
            raise BadTool(f"task type {task!r} names tools that nobody registered: {', '.join(missing)}")
        return tuple(self._tools[name] for name in wanted if name in self._tools)

    def _named(self, name: str) -> Tool:
        if name not in self._tools:
            raise BadTool(
                f"tool {name!r} is not registered.{suggestion(name, self._tools)}".removesuffix(".")
            )
        return self._tools[name]

    def _tagged(
        self, tools: Iterable[Tool], tags: Sequence[str], how: Callable[[Iterable[object]], bool]
    ) -> Iterator[Tool]:
        if not tags:
            if self._variant.empty_tag_filter == "everything":
                return iter(tuple(tools))
            raise BadTool("an empty list of tags filters nothing; leave the filter out to have every tool")
        return iter([tool for tool in tools if how(tag in tool.tags for tag in tags)])


def _key(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def api_format(tools: Iterable[Tool], wire: FormatName) -> list[dict[str, JSON]]:
    """Return tools as a request in this format carries them."""
    match wire:
        case "openai":
            return [dict(tool.spec) for tool in tools]
        case "responses":
            return [
                {
                    "type": "function",
                    "name": t.name,
                    "description": t.description,
                    "parameters": dict(t.parameters),
                }
                for t in tools
            ]
        case "anthropic":
            return [
                {"name": t.name, "description": t.description, "input_schema": dict(t.parameters)}
                for t in tools
            ]
        case "gemini":
            declared: list[JSON] = [
                {"name": t.name, "description": t.description, "parameters": dict(t.parameters)}
                for t in tools
            ]
            return [{"functionDeclarations": declared}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What lint has against a set of tools; `tool` is empty when it concerns the set."""

    tool: str
    rule: str
    reason: str

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.tool or 'tools'}: {self.rule}: {self.reason}"


def lint(tools: Sequence[Tool]) -> tuple[Complaint, ...]:
    """Return what makes a set of tools hard to choose from, each with its reason; nothing here is an error."""
    found: list[Complaint] = []
    if len(tools) >= MOST_OFFERED:
        reason = f"{len(tools)} tools are offered together, expected under {MOST_OFFERED}"
        found.append(Complaint(tool="", rule="too-many", reason=reason))
    for tool in tools:
        found += _of_one(tool)
    for one, other in combinations(tools, 2):
        alike = fuzz.token_set_ratio(one.description, other.description)
        if one.description and other.description and alike >= ALIKE:
            reason = f"its description is {alike:.0f} % like that of {one.name!r}"
            found.append(Complaint(tool=other.name, rule="overlap", reason=reason))
    return tuple(found)


def _of_one(tool: Tool) -> Iterator[Complaint]:
    if not _SENDABLE.fullmatch(tool.name):
        reason = "providers refuse it: expected 1 to 64 letters, digits, '_' or '-'"
        yield Complaint(tool=tool.name, rule="name", reason=reason)
    elif not _SNAKE.fullmatch(tool.name):
        yield Complaint(tool=tool.name, rule="name", reason="expected snake_case")
    if not tool.description.strip():
        yield Complaint(
            tool=tool.name, rule="description", reason="it has none, so the model guesses from the name"
        )
    properties = tool.parameters.get("properties", {})
    for name, about in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(about, dict) or not about.get("description"):
            yield Complaint(tool=tool.name, rule="parameter", reason=f"{name!r} has no description")
