"""What a player hands over, whatever its make: what it called, what came of it, and what it said at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from statek_sim.values import JSON

FINAL: Final = "final"
"""The `stop` of a record whose player ended with an answer of its own accord."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One call that reached the world: `result` is the text that it gave, `error` why it gave none."""

    name: str
    arguments: Mapping[str, JSON]
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run used; `cost` in dollars. Tokens as counted here, None where nobody counted."""

    prompt: int
    completion: int
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What came of one run. `calls` are the world's own log, never what a player claims.

    `stop` is "final" for an answer, else what ended the run (a limit, an error). `usage` is told three ways: as the
    provider reported it, as counted with the model's tokenizer, as the engine counts bytes; a way may be None.
    """

    answer: str | None
    stop: str
    calls: tuple[Called, ...]
    model_calls: int = 0
    usage: Mapping[str, Usage | None] | None = None
