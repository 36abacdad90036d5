"""A run's outcome, and the classes of mistakes that a simulated model makes: ToolScan's seven classes and two more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from statek_sim.values import JSON


class FailureClass(StrEnum):
    """The classes of mistakes, in the order in which they are drawn for a turn."""

    CONTEXT_LOSS = "context_loss"
    LOOP = "loop"
    EARLY_ANSWER = "early_answer"
    MALFORMED = "malformed"
    REPEATED_CALL = "repeated_call"
    SKIPPED_STEP = "skipped_step"
    WRONG_TOOL = "wrong_tool"
    MISSING_ARGUMENT = "missing_argument"
    WRONG_ARGUMENT = "wrong_argument"


MEANINGS: Final = {
    FailureClass.MALFORMED: "a call is intended, but written so that the server's own parser cannot read it",
    FailureClass.WRONG_TOOL: "a wrong tool is called, sometimes one that does not exist",
    FailureClass.MISSING_ARGUMENT: "a required argument is omitted or has another name",
    FailureClass.WRONG_ARGUMENT: "an argument, or a value that the final answer cites, differs from the results",
    FailureClass.SKIPPED_STEP: "a required step is skipped, and the next one is taken",
    FailureClass.REPEATED_CALL: "an answered call is repeated",
    FailureClass.EARLY_ANSWER: "prose is written instead of a call: a plan, or a made-up answer",
    FailureClass.LOOP: "the same call is repeated until something breaks the loop",
    FailureClass.CONTEXT_LOSS: "in a long prompt, the earliest results are ignored",
}
"""A description of each class."""


class Turn(NamedTuple):
    """A model's action on one turn, and the harness's reaction.

    `failure` is the class of the mistake, or None; `how` gives details. `corrected` is whether a correction came before
    this turn, and `heeded` whether the model followed it. `stage` is how rescue parsing read the reply, or why it
    failed. `nudged` is the correction that followed. Turns with equal replies and reactions have equal `digest`s.
    """

    number: int
    failure: str | None
    how: str
    corrected: bool
    heeded: bool
    stage: str | None = None
    nudged: str | None = None
    digest: str = ""


class Count(NamedTuple):
    """The number of prompt tokens and of completion tokens."""

    prompt: int
    completion: int

    @property
    def total(self) -> int:
        """The total number of tokens."""
        return self.prompt + self.completion


class Tokens(NamedTuple):
    """A run's token counts: measured with a tokenizer, and estimated from bytes."""

    measured: Count
    estimated: Count


class Outcome(NamedTuple):
    """The outcome of a run. `wasted` counts calls that failed, were rejected, or repeated an answered call.

    `seconds` is the real time of a user's own agent; None for the built-in harness, whose time is virtual.
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
"""The `stop` value of a record if the agent finished by itself with an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call: `result` is the returned text, or `error` is the reason why there is none.

    Both are None for a call in a prompt that no longer shows the result.
    """

    name: str
    arguments: Mapping[str, JSON]
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of a run. `calls` are taken from the world's log, not from the agent.

    `stop` is "final" if the run ended with an answer, and otherwise the limit or error that ended it.
    """

    answer: str | None
    stop: str
    calls: tuple[Called, ...]
    model_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A finished run, as passed to your own Python check.

    `calls` are the calls in the world's log. `before` and `after` are the tables (lists of rows by table name) at the
    start and at the end. `facts` contains the values that differ by seed, and the facts defined in the eval.
    """

    answer: str | None
    calls: tuple[Called, ...]
    before: Mapping[str, Sequence[Mapping[str, JSON]]]
    after: Mapping[str, Sequence[Mapping[str, JSON]]]
    facts: Mapping[str, JSON]
