"""The record that a player hands over, and the outcome of one run: counts, failures, and how each turn looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from statek_sim.values import JSON


class Turn(NamedTuple):
    """One turn of a run as its report shows it.

    `failure` is the class that acted, None for none; `how` says more. `stage` is how rescue read the reply, or why
    it did not; `nudged` the correction that followed; `digest` is equal for turns at which the same was said and done.
    """

    number: int
    failure: str | None
    how: str
    corrected: bool
    heeded: bool
    stage: str | None
    nudged: str | None
    digest: str


class Count(NamedTuple):
    """Tokens of prompts and of completions."""

    prompt: int
    completion: int

    @property
    def total(self) -> int:
        """Both."""
        return self.prompt + self.completion


class Tokens(NamedTuple):
    """Tokens of a run two ways: measured here, and estimated of bytes."""

    measured: Count
    estimated: Count


class Outcome(NamedTuple):
    """One run. `wasted`: calls that failed, were refused, or repeated one that was answered.

    `seconds` is the real time of a user's own agent; None for our harness, whose time is virtual.
    """

    scenario: str
    seed: int
    arm: str
    completed: bool
    passed: bool
    score: float
    stop: str
    model_calls: int
    calls: int
    wasted: int
    tokens: Tokens
    turns: tuple[Turn, ...]
    problems: tuple[str, ...]
    answer: str | None
    seconds: float | None = None


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
class Record:
    """What came of one run. `calls` are the world's own log, never what a player claims.

    `stop` is "final" for an answer, else what ended the run (a limit, an error).
    """

    answer: str | None
    stop: str
    calls: tuple[Called, ...]
    model_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """What a check of your own in Python is given.

    `calls` are the world's log of calls, `before` and `after` its tables (rows by name) at the start and at the end.
    `facts` has what differs by seed, and the facts of the eval.
    """

    answer: str | None
    calls: tuple[Called, ...]
    before: Mapping[str, Sequence[Mapping[str, JSON]]]
    after: Mapping[str, Sequence[Mapping[str, JSON]]]
    facts: Mapping[str, JSON]
