"""What makes a set of tools hard to choose from (002 §2): too many, alike, badly named, not described."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from rapidfuzz import fuzz

from statek_sim.agent.tools.tool import Tool

MOST_OFFERED: Final = 20
"""Tools per request above which models choose worse (002 §2: "under 20")."""

ALIKE: Final = 90.0
"""Likeness of two descriptions, of 100, from which they are told apart badly."""

_SNAKE: Final = re.compile(r"[a-z][a-z0-9]*(_+[a-z0-9]+)*", re.ASCII)
_SENDABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


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
    elif tool.server is None and not _SNAKE.fullmatch(tool.name):  # a server's names are the server's
        yield Complaint(tool=tool.name, rule="name", reason="expected snake_case")
    if not tool.description.strip():
        yield Complaint(
            tool=tool.name, rule="description", reason="it has none, so the model guesses from the name"
        )
    properties = tool.parameters.get("properties", {})
    for name, about in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(about, dict) or not about.get("description"):
            yield Complaint(tool=tool.name, rule="parameter", reason=f"{name!r} has no description")
