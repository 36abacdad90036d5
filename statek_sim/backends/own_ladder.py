"""The ladder that a scenario describes, as the loop takes it."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from statek_sim.agent.escalation.ladder import Judgement, Ladder, Level, Price, QualityCheck, Strategy
from statek_sim.scenario.agent import EscalationText, LevelText


def ladder_of(text: EscalationText, checks: Iterable[QualityCheck]) -> Ladder:
    """Return the ladder of `text`; `checks` are its own, imported. `BadInput` for one that is none."""
    return Ladder(
        levels=tuple(map(_level, text.levels)),
        checks=(*map(_contains, text.contains), *checks),
        backoff=text.backoff,
        longest=text.longest,
    )


def _level(text: LevelText) -> Level:
    return Level(
        name=text.name,
        model=text.model,
        attempts=text.attempts,
        strategy=_adding(text.adds) if text.adds else None,
        carry=text.carry,
        price=None if text.price is None else Price(per_million=Decimal(str(text.price))),
        question=text.question,
        seconds=text.within,
    )


def _adding(words: str) -> Strategy:
    return lambda task: f"{task}\n\n{words}"


def _contains(wanted: str) -> QualityCheck:
    def check(task: str, answer: str) -> Judgement:
        return (
            Judgement(True, score=1.0)
            if wanted in answer
            else Judgement(False, f"{wanted!r} is not in the answer")
        )

    return check
