"""The actions of a simulated model, by ToolScan's seven failure classes and two more, and the outcome of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from statek_sim.values import JSON


class FailureClass(StrEnum):
    """A class of mistakes, in the order of the draws for a turn: first those that prevent a readable call."""

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
    FailureClass.MALFORMED: "the call is meant and written so that a server's own parser does not read it",
    FailureClass.WRONG_TOOL: "another tool than the right one is called, sometimes one that does not exist",
    FailureClass.MISSING_ARGUMENT: "a required argument is left out or goes by another name",
    FailureClass.WRONG_ARGUMENT: "an argument, or what the final answer cites, has another value than results gave",
    FailureClass.SKIPPED_STEP: "a required step is left out, and the one after it is taken",
    FailureClass.REPEATED_CALL: "a call that was answered is made again",
    FailureClass.EARLY_ANSWER: "prose comes where a call is due: a plan, or an answer made up",
    FailureClass.LOOP: "the same call is made again and again until something breaks the loop",
    FailureClass.CONTEXT_LOSS: "in a long prompt, results at its beginning are no longer heeded",
}
"""The description of each class."""


class Turn(NamedTuple):
    """The action of a model on a turn, and its consequences.

    `failure` is the class of the mistake, None for none; `how` gives details. `corrected`: the model was corrected
    before; `heeded`: and followed the correction. `stage` says how rescue parsing read the reply, or why it did not;
    `nudged` is the correction that followed; `digest` is equal for turns with equal replies and actions.
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
    """Tokens of prompts and of completions."""

    prompt: int
    completion: int

    @property
    def total(self) -> int:
        """Both."""
        return self.prompt + self.completion


class Tokens(NamedTuple):
    """Tokens of a run in two counts: measured here, and estimated from bytes."""

    measured: Count
    estimated: Count


class Outcome(NamedTuple):
    """One run. `wasted`: calls that failed, were refused, or repeated an answered one.

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
"""The `stop` of a record whose player ended voluntarily, with an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One call: `result` is the returned text, `error` the reason if there is none.

    Without either, a prompt shows the call but no longer its result.
    """

    name: str
    arguments: Mapping[str, JSON]
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The record of one run. `calls` are from the world's log, not reported by the agent.

    `stop` is "final" for an answer, otherwise what ended the run (a limit, an error).
    """

    answer: str | None
    stop: str
    calls: tuple[Called, ...]
    model_calls: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """Passed to your own check in Python.

    `calls` are the world's log of calls, `before` and `after` its tables (rows by name) at the start and at the end.
    `facts` has the values that differ by seed, and the facts of the eval.
    """

    answer: str | None
    calls: tuple[Called, ...]
    before: Mapping[str, Sequence[Mapping[str, JSON]]]
    after: Mapping[str, Sequence[Mapping[str, JSON]]]
    facts: Mapping[str, JSON]
