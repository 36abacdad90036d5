"""Finds prompt injections: instructions in user messages or tool results that try to override the model's own.

The rules are data (`injection.toml`), so a new rule takes a few lines; `statek-sim guards` reports what it catches and
its false alarms. Rules match words, not meaning, so they cannot find every attack.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from statek_sim.agent.guards.normalization import LOOK_ALIKE, View, near
from statek_sim.agent.guards.substring_index import Needles

CAUGHT: Final = 1.0
"""A text is an attack if the weights of its matching rules reach this total."""
TOGETHER: Final = 2_000
"""The weights of matches within this many characters are added up, because an instruction is in one place."""
REACH: Final = 300
"""A rule is matched only within this many characters of one of its keywords."""
_SPACE: Final = r"[^\\w]{1,5}"
_NEGATIONS: Final = ("\\bnot", "\\bnot to", "\\bnever", "n['\u2019]t", "\\bcannot")
_ASKED: Final = ("why", "or", "cannot", "n['\u2019]t", "never", "not", "should you", "would you")
_IF: Final = tuple(
    f"\\b{when} {who} {negated}"
    for when in ("if", "case", "when", "time", "long as")
    for who in ("you", "it", "we", "they", "i")
    for negated in (
        *(f"{verb} not" for verb in ("do", "does", "did", "will", "would", "could")),
        *(f"{verb}n['\u2019]t" for verb in ("do", "does", "did", "wo", "would", "ca", "could")),
        "cannot",
        "never",
    )
)
_STILL: Final = "".join(f"(?<!{words} )" for words in (*(f"{asked} not" for asked in _ASKED), *_IF))
"""Lookbehinds for negations that forbid nothing: in questions, conditions, "or not" and "cannot not"."""
NO_ORDER: Final = "".join(f"(?<!{negation} {_STILL})" for negation in _NEGATIONS)
"""Lookbehinds for negations that forbid what follows, unlike "why not", or "if you do not", which announces a
consequence.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern for injected instructions. A `weight` of 1 is enough for a finding."""

    id: str
    needs: tuple[str, ...]
    pattern: str
    weight: float


@dataclass(frozen=True, slots=True)
class Match:
    """A rule's match: its start and end in the original text."""

    rule: str
    weight: float
    start: int
    end: int


@cache
def rules() -> tuple[Rule, ...]:
    """Return the built-in rules."""
    text = files("statek_sim.agent.guards").joinpath("injection.toml").read_text(encoding="utf-8")
    return tuple(
        Rule(
            entry["id"],
            tuple(need.translate(LOOK_ALIKE) for need in entry["needs"]),
            expression(entry["pattern"], negated=entry.get("negated", True)),
            entry["weight"],
        )
        for entry in tomllib.loads(text)["rule"]
    )


def expression(pattern: str, *, negated: bool = True) -> str:
    """Return a rule's pattern for `re`, where a space matches up to five characters between words.

    Unless `negated`, the expression does not match directly after "not" or "never", because a prohibition is not an
    instruction. This is checked only where the rest of the pattern matches.
    """
    pattern = pattern.translate(LOOK_ALIKE)
    spaced = re.sub(r"(?<![\[^]) (?!\?|\{)", _SPACE, pattern).replace(" ?", r"[^\w]{0,3}")
    return spaced if negated else f"(?={spaced}){NO_ORDER}(?:{spaced})"


class Search:
    """Finds rule matches within `reach` characters of the rules' keywords."""

    def __init__(self, among: Iterable[Rule], *, reach: int = REACH) -> None:
        self._rules = tuple(among)
        self._reach = reach
        self._words = Needles(word for rule in self._rules for word in rule.needs)

    def matches(self, views: Iterable[View]) -> list[Match]:
        """Return all matches in the views of a text, without repeating a rule's match at the same position."""
        found: dict[tuple[str, int, int], Match] = {}
        for view in views:
            for rule, start, end in self._in_text(view.lowered):
                span = view.span(start, end)
                found.setdefault((rule.id, *span), Match(rule.id, rule.weight, *span))
        return list(found.values())

    def _in_text(self, text: str) -> Iterator[tuple[Rule, int, int]]:
        """Yield rules and the positions of their matches. A rule is tried only near its keywords."""
        there = {word: places for word in self._words.likely(text) if (places := _places(text, word))}
        for rule in self._rules:
            around = [place for word in rule.needs for place in there.get(word, ())]
            for start, end in near(around, self._reach, len(text)):
                for match in _compiled(rule.pattern).finditer(text, start, end):
                    if match.end() > match.start():
                        yield rule, *match.span()


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a rule's compiled pattern. Patterns are compiled on first use, because most rules are never tried."""
    return re.compile(pattern)


def _places(text: str, word: str) -> list[int]:
    places: list[int] = []
    place = text.find(word)
    while place >= 0:
        places.append(place)
        place = text.find(word, place + 1)
    return places


@cache
def shipped_search() -> Search:
    """Return a search for the built-in rules, shared by all guards."""
    return Search(rules())


def weighty(found: Iterable[Match], least: float, *, together: int = TOGETHER) -> list[Match]:
    """Return the matches, in order, whose weight plus that of nearby ones reaches `least`; each rule counts once.

    Matches are nearby if they are within `together` characters, because two rules may match unrelated parts of a long
    page.
    """
    ordered = sorted(found, key=lambda one: one.start)
    kept: list[Match] = []
    done = first = 0
    near: Counter[str] = Counter()
    weight_by = {match.rule: match.weight for match in ordered}
    for last, match in enumerate(ordered):
        near[match.rule] += 1
        while match.start - ordered[first].start > together:
            near[ordered[first].rule] -= 1
            first += 1
        if sum(weight for rule, weight in weight_by.items() if near[rule]) >= least:
            kept += ordered[max(done, first) : last + 1]
            done = last + 1
    return kept


# Quoted attacks, for example in an article about injections, are not instructions to the model.
_QUOTED: Final = re.compile(
    r'"[^"\n]+"|“[^“”]+”|„[^„“”]+[“”]|«[^«»]+»|»[^«»]+«|\u2018[^\u2018\u2019]+\u2019'
    r"|```.+?```|`[^`\n]+`|^>[^\n]+(?:\n>[^\n]*)*",
    re.DOTALL | re.MULTILINE,
)
_ABOUT_ATTACKS: Final = re.compile(
    r"\battack|jailbreak|\bexploit|vuln[eé]rab|malicious|\binje[ck]t|\binyecc|\binjeç|\biniezion|wstrzykn"
    r"|\bangr(?:iff|eif)|schwachstelle|\battaqu|\bataque|\batacante|\battacc|\baanval|kwetsba|\batak|napastni|podatnoś",
    re.IGNORECASE,
)
"""Word stems that concern attacks, in English, German, French, Spanish, Italian, Portuguese, Dutch and Polish."""


def not_quoted(text: str, matches: Iterable[Match]) -> Iterator[Match]:
    """Yield the matches that are not in a quotation, quoted line or code in a text about attacks.

    The text must mention attacks outside its quotations, because quotation marks alone prove nothing: every JSON string
    has them.
    """
    quotations = [found.span() for found in _QUOTED.finditer(text)]
    if _ABOUT_ATTACKS.search(_QUOTED.sub(" ", text)) is None:
        quotations = []
    starts = [start for start, _ in quotations]
    for match in matches:
        at = bisect_right(starts, match.start) - 1
        if at < 0 or match.end > quotations[at][1]:
            yield match
