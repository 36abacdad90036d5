"""Mutants of the guards' rules: whether the corpora would show that a rule, a weight, a limit or a check was changed.

A mutant is killed by a text that the guard judges rightly and the mutant does not. One that no text kills either needs
another text, or is equivalent: no text at all can tell it from the guard, and `EQUIVALENT` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from statek_sim.agent.guards.efficacy import Corpus, Sample
from statek_sim.agent.guards.injection import CAUGHT, NO_ORDER, REACH, TOGETHER, Match, Rule, Search, weighty
from statek_sim.agent.guards.normalization import views
from statek_sim.agent.guards.personal_data import KINDS, Kind, found_in

EQUIVALENT: Final[Mapping[tuple[str, str], str]] = {
    ("weight doubled", "all-instructions"): (
        "`ignore-your-rules` finds whatever it finds, and their weights are enough together as they are"
    ),
}
"""Mutants, by kind and name, that no text can kill, and why; those of a rule that is enough by itself are not made."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a guard. `killed_by`: the id of the first text that shows it, None where none does."""

    guard: str
    kind: str
    name: str
    killed_by: str | None

    @property
    def equivalent(self) -> str | None:
        """Why no text can show it; None where one could."""
        return EQUIVALENT.get((self.kind, self.name))

    @property
    def survives(self) -> bool:
        """Whether no text of the corpora shows it, and one could."""
        return self.killed_by is None and self.equivalent is None


def mutants(rules: Sequence[Rule], corpora: Iterable[Corpus]) -> tuple[Mutant, ...]:
    """Return every mutant of the guards that `corpora` are for, those of the injection guard made of `rules`."""
    by_guard: dict[str, list[Sample]] = {}
    for corpus in corpora:
        by_guard.setdefault(corpus.guard, []).extend(corpus.samples)
    found: list[Mutant] = []
    if samples := by_guard.get("injection"):
        found += _Injection(rules, samples).mutants()
    if samples := by_guard.get("personal-data"):
        found += _of_personal_data(samples)
    return tuple(found)


# -- injection --------------------------------------------------------------------------------------------------


class _Injection:
    """What all rules find in the texts: looked for once, because rules do not know each other."""

    def __init__(self, rules: Sequence[Rule], samples: Iterable[Sample]) -> None:
        self._rules = rules
        search = Search(rules)
        self._found = [(sample, search.matches(views(sample.text))) for sample in samples]
        self._right = [bool(weighty(found, CAUGHT)) == sample.bad for sample, found in self._found]

    def mutants(self) -> Iterator[Mutant]:
        for rule in self._rules:
            yield self._mutant("rule lost", rule.id, _without(rule))
        for rule in self._rules:
            yield self._mutant("weight halved", rule.id, _weighing(rule, rule.weight / 2))
        for rule in self._rules:
            if rule.weight < CAUGHT:
                yield self._mutant("weight doubled", rule.id, _weighing(rule, rule.weight * 2))
        for name, caught in (("caught halved", CAUGHT / 2), ("caught doubled", CAUGHT * 2)):
            yield self._mutant("threshold", name, lambda found: found, caught=caught)
        for name, together in (("together halved", TOGETHER // 2), ("together doubled", TOGETHER * 2)):
            yield self._mutant("threshold", name, lambda found: found, together=together)
        yield self._searched_again("threshold", "reach halved", Search(self._rules, reach=REACH // 2))
        for rule in self._rules:
            if NO_ORDER in rule.pattern:
                other = replace(rule, pattern=rule.pattern.replace(NO_ORDER, ""))
                yield self._searched_again("exemption lost", rule.id, Search([other]), instead_of=rule)

    def _mutant(
        self,
        kind: str,
        name: str,
        change: Callable[[Sequence[Match]], Sequence[Match]],
        *,
        caught: float = CAUGHT,
        together: int = TOGETHER,
    ) -> Mutant:
        for (sample, found), right in zip(self._found, self._right, strict=True):
            if right and bool(weighty(change(found), caught, together=together)) != sample.bad:
                return Mutant("injection", kind, name, sample.id)
        return Mutant("injection", kind, name, None)

    def _searched_again(
        self, kind: str, name: str, search: Search, *, instead_of: Rule | None = None
    ) -> Mutant:
        """Return a mutant that finds in other places: with `instead_of`, in place of that rule alone."""
        for (sample, found), right in zip(self._found, self._right, strict=True):
            if not right:
                continue
            others = () if instead_of is None else _without(instead_of)(found)
            again = (*others, *search.matches(views(sample.text)))
            if bool(weighty(again, CAUGHT)) != sample.bad:
                return Mutant("injection", kind, name, sample.id)
        return Mutant("injection", kind, name, None)


def _without(rule: Rule) -> Callable[[Sequence[Match]], Sequence[Match]]:
    return lambda found: [match for match in found if match.rule != rule.id]


def _weighing(rule: Rule, weight: float) -> Callable[[Sequence[Match]], Sequence[Match]]:
    return lambda found: [
        replace(match, weight=weight) if match.rule == rule.id else match for match in found
    ]


# -- personal data ----------------------------------------------------------------------------------------------


def _of_personal_data(samples: Sequence[Sample]) -> Iterator[Mutant]:
    right = [sample for sample in samples if _finds(sample, KINDS) == sample.bad]

    def mutant(kind: str, name: str, kinds: tuple[Kind, ...]) -> Mutant:
        killer = next((sample.id for sample in right if _finds(sample, kinds) != sample.bad), None)
        return Mutant("personal-data", kind, name, killer)

    for lost in KINDS:
        yield mutant("kind lost", lost.name, tuple(kind for kind in KINDS if kind is not lost))
    for changed in KINDS:
        for name in changed.checks:
            checks = {key: check for key, check in changed.checks.items() if key != name}
            other = replace(changed, checks=checks)
            kinds = tuple(other if kind is changed else kind for kind in KINDS)
            yield mutant("check lost", f"{changed.name}: {name}", kinds)


def _finds(sample: Sample, kinds: tuple[Kind, ...]) -> bool:
    return any(next(found_in(view, kinds), None) is not None for view in views(sample.text))
