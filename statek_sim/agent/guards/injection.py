"""Injected instructions: texts that tell the model to drop its own, from users and in what tools return.

The rules are data (`injection.toml`): a new one is a few lines there, and `statek-sim guards` says what it catches and
what it flags without need. Rules are no proof: what a text means cannot be told from its words alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain
from typing import Final

from statek_sim.agent.guards.views import LOOK_ALIKE, View, near
from statek_sim.needles import Needles

CAUGHT: Final = 1.0
"""From this weight on a text is caught."""
REACH: Final = 300
"""Characters around a word that a rule needs in which it is looked for."""
_SPACE: Final = r"[^\\w]{1,5}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One way in which texts tell a model what to do; `weight` of 1 is enough by itself."""

    id: str
    needs: tuple[str, ...]
    pattern: re.Pattern[str]
    weight: float


@dataclass(frozen=True, slots=True)
class Match:
    """What a rule found: start and end in the original text."""

    rule: str
    weight: float
    start: int
    end: int


@cache
def rules() -> tuple[Rule, ...]:
    """Return the shipped rules."""
    text = files("statek_sim.agent.guards").joinpath("injection.toml").read_text(encoding="utf-8")
    return tuple(
        Rule(
            entry["id"],
            tuple(need.translate(LOOK_ALIKE) for need in entry["needs"]),
            compiled(entry["pattern"]),
            entry["weight"],
        )
        for entry in tomllib.loads(text)["rule"]
    )


def compiled(pattern: str) -> re.Pattern[str]:
    """Return a rule's pattern: its spaces stand for up to five characters between words."""
    pattern = pattern.translate(LOOK_ALIKE)
    return re.compile(re.sub(r"(?<![\[^]) (?!\?|\{)", _SPACE, pattern).replace(" ?", r"[^\w]{0,3}"))


def matches(views: Iterable[View], among: Iterable[Rule] | None = None) -> list[Match]:
    """Return everything that the rules find in the views of one text, each place once for a rule."""
    found: dict[tuple[str, int, int], Match] = {}
    chosen = rules() if among is None else tuple(among)
    words = _words(tuple(rule.needs for rule in chosen))
    for view in views:
        places = {word: list(_places(view.lowered, word)) for word in words.within(view.lowered)}
        for rule in chosen:
            around = [place for need in rule.needs for place in places.get(need, ())]
            for start, end in near(around, REACH, len(view.lowered)):
                for match in rule.pattern.finditer(view.lowered, start, end):
                    if match.end() > match.start():
                        span = view.span(*match.span())
                        found.setdefault((rule.id, *span), Match(rule.id, rule.weight, *span))
    return list(found.values())


def weight_of(found: Iterable[Match]) -> float:
    """Return what the matches weigh together: a rule counts once, however often it matches."""
    return sum({match.rule: match.weight for match in found}.values())


@lru_cache(maxsize=8)
def _words(needs: tuple[tuple[str, ...], ...]) -> Needles:
    """Return the words that rules need, each once."""
    return Needles(chain.from_iterable(needs))


def _places(text: str, word: str) -> Iterator[int]:
    place = text.find(word)
    while place >= 0:
        yield place
        place = text.find(word, place + len(word))
