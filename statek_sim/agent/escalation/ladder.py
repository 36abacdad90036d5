"""A ladder as data: its levels, how often each is tried, what an attempt is told, what an answer is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from statek_sim.agent.escalation.rules import HARDENED, EscalationRules
from statek_sim.errors import BadInput

Carry = Literal["nothing", "reason", "best"]
"""What an attempt is told of those before: nothing, why the last one failed, or that and the best answer so far."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a check thinks of an answer; `score` says which of several bad ones is the best."""

    good: bool
    reason: str = ""
    score: float = 0.0


QualityCheck = Callable[[str, str], Judgement | bool]
"""Judges an answer, given the task and the answer."""

Strategy = Callable[[str], str]
"""Makes another task of a task: with examples, in parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens of a level's model, prompts and completions alike."""

    per_million: Decimal

    def cost(self, tokens: int) -> Decimal:
        """Return what so many tokens cost."""
        return tokens * self.per_million / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level: a model, or a person where `model` is None.

    `model` is tried `attempts` times; `strategy` changes the task. A person is asked `question`, `{task}` and
    `{attempts}` filled in, and has `seconds` to answer (None: as long as it takes); the answer is the task's.
    """

    name: str
    model: str | None = None
    attempts: int = 1
    strategy: Strategy | None = None
    carry: Carry = "nothing"
    price: Price | None = None
    question: str = "{task}"
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The levels from the first to the last, and what holds for all of them.

    `backoff` are the seconds before the second attempt after a cause that time may cure; they double up to `longest`.
    """

    levels: tuple[Level, ...]
    checks: Sequence[QualityCheck] = ()
    backoff: float = 3.0
    longest: float = 60.0
    rules: EscalationRules = HARDENED

    def __post_init__(self) -> None:
        names = [level.name for level in self.levels]
        if not names:
            raise BadInput("a ladder has at least one level")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"level {twice!r} is there twice; expected levels to have names of their own")
        least = 0 if self.rules.no_attempts == "skipped" else 1
        for level in self.levels:
            if level.attempts < least:
                raise BadInput(
                    f"level {level.name!r}: attempts is {level.attempts}, expected {least} or more"
                )
        people = [level.name for level in self.levels[:-1] if level.model is None]
        if people:
            raise BadInput(f"level {people[0]!r}: a person is the last level")
        if not 0 <= self.backoff <= self.longest:
            raise BadInput(f"backoff is {self.backoff:g} s, expected 0 to longest, {self.longest:g} s")

    def judged(self, task: str, answer: str) -> Judgement:
        """Return the first bad judgement of an answer, or a good one; the score is the least of all."""
        found = [_judgement(check(task, answer)) for check in self.checks]
        score = min([one.score for one in found], default=1.0)
        bad = next((one for one in found if not one.good), None)
        return Judgement(True, score=score) if bad is None else Judgement(False, bad.reason, score)


def _judgement(told: Judgement | bool) -> Judgement:
    if isinstance(told, Judgement):
        return told
    return Judgement(told, "" if told else "a check says no", float(told))


CARRIED: Final = "\n\nAn earlier attempt failed: {reason}."
BEST: Final = "\nThe best answer so far:\n{best}"
