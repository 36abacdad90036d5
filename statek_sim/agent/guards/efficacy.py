"""Measures guards: how many bad texts they find, and how many harmless texts they flag.

A corpus contains both harmless texts and texts that a guard must find, such as attacks. Precision and recall are
reported with 95 % Wilson intervals. Disguised variants of each text show how disguises affect recall.
"""

from __future__ import annotations

import base64
import html
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from statek_sim.agent.effects import GuardPoint, Subject
from statek_sim.agent.guards.guard import Find, Guard
from statek_sim.agent.guards.pipeline import GuardSet, Outcome
from statek_sim.errors import BadInput
from statek_sim.input_files import read_text
from statek_sim.intervals import wilson

OWN: Final = ("injection", "personal-data")
"""Guards with a built-in corpus, keyed by name."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A text in a corpus. If it is `bad`, the guard must find something in it."""

    id: str
    text: str
    bad: bool
    point: GuardPoint = GuardPoint.INPUT


@dataclass(frozen=True, slots=True)
class Corpus:
    """The texts on which a guard is measured."""

    name: str
    guard: str
    samples: Sequence[Sample]


# -- reading ----------------------------------------------------------------------------------------------------


def own_corpora() -> Iterator[Corpus]:
    """Yield the built-in corpora, which were written for this project."""
    for guard in OWN:
        text = (
            files("statek_sim.agent.guards").joinpath("corpora", f"{guard}.jsonl").read_text(encoding="utf-8")
        )
        yield Corpus(guard, guard, tuple(samples(text, f"{guard}.jsonl")))


def corpus_file(path: Path, guard: str) -> Corpus:
    """Load a corpus from a file with one JSON object per line: `{"id": "a", "text": "Hello.", "bad": false}`.

    An optional `point` names the guard point for a text; the default is the input.
    """
    found = tuple(samples(read_text(path), str(path)))
    if not found:
        raise BadInput(
            f"{path}: no texts; expected lines like {{'id': ..., 'text': ..., 'bad': true or false}}"
        )
    return Corpus(path.name, guard, found)


def samples(text: str, place: str) -> Iterator[Sample]:
    """Yield a sample for each JSON line; raises `BadInput` that names an invalid line."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        entry = entry_of(line, f"{place}:{number}")
        if not isinstance(entry.get("bad"), bool):
            raise BadInput(
                f"{place}:{number}: expected `bad` to be true (the guard must find something) or false"
            )
        yield Sample(
            str(entry.get("id", number)), entry["text"], entry["bad"], point_of(entry, f"{place}:{number}")
        )


def entry_of(line: str, place: str) -> dict[str, Any]:
    """Return the JSON object on a line; raises `BadInput`, with `place` in front, if it has no text."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{place}: not JSON: {error}") from None
    if not isinstance(entry, dict) or not isinstance(entry.get("text"), str):
        raise BadInput(f"{place}: expected an object with a text, like {{'id': 'a', 'text': 'Hello.'}}")
    return entry


def point_of(entry: Mapping[str, Any], place: str) -> GuardPoint:
    """Return an entry's guard point; the default is the input."""
    try:
        return GuardPoint(entry.get("point", "input"))
    except ValueError:
        raise BadInput(
            f"{place}: `point` must be one of {', '.join(GuardPoint)}, not {entry['point']!r}"
        ) from None


# -- measuring --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficacy:
    """A guard's results on a corpus. `by_rule` counts the bad and the harmless texts found by each rule."""

    name: str
    corpus: str
    attacks: int
    caught: int
    harmless: int
    flagged: int
    microseconds_per_kb: float
    by_rule: Mapping[str, tuple[int, int]]
    missed: tuple[str, ...]
    wrong: tuple[str, ...]

    @property
    def recall(self) -> float | None:
        """The fraction of bad texts that were flagged; None if there are no bad texts."""
        return self.caught / self.attacks if self.attacks else None

    @property
    def precision(self) -> float | None:
        """The fraction of flagged texts that are bad; None if no text was flagged."""
        flagged = self.caught + self.flagged
        return self.caught / flagged if flagged else None

    @property
    def intervals(self) -> dict[str, tuple[float, float] | None]:
        """The Wilson intervals for precision, recall, and the fraction of harmless texts that were flagged."""
        return {
            "precision": wilson(self.caught, self.caught + self.flagged),
            "recall": wilson(self.caught, self.attacks),
            "flagged": wilson(self.flagged, self.harmless),
        }


def measure(guard: Guard, corpus: Corpus, clock: Callable[[], float]) -> Efficacy:
    """Run a guard over a corpus twice; `clock` measures CPU time in seconds.

    Only the second run is timed, because the first one loads and compiles the rules.
    """
    by_rule: dict[str, Counter[bool]] = {}
    missed, wrong = [], []
    outcomes = [finds_of(guard, sample) for sample in corpus.samples]
    began = clock()
    for sample in corpus.samples:
        finds_of(guard, sample)
    spent = clock() - began
    for sample, finds in zip(corpus.samples, outcomes, strict=True):
        for rule in dict.fromkeys(find.rule for find in finds):
            by_rule.setdefault(rule, Counter())[sample.bad] += 1
        if sample.bad and not finds:
            missed.append(sample.id)
        elif finds and not sample.bad:
            wrong.append(sample.id)
    attacks = sum(sample.bad for sample in corpus.samples)
    size = sum(len(sample.text.encode()) for sample in corpus.samples) / 1024
    return Efficacy(
        name=guard.name,
        corpus=corpus.name,
        attacks=attacks,
        caught=attacks - len(missed),
        harmless=len(corpus.samples) - attacks,
        flagged=len(wrong),
        microseconds_per_kb=spent * 1e6 / size if size else 0.0,
        by_rule={rule: (count[True], count[False]) for rule, count in sorted(by_rule.items())},
        missed=tuple(missed),
        wrong=tuple(wrong),
    )


def finds_of(guard: Guard, sample: Sample) -> tuple[Find, ...]:
    """Return what a synchronous guard finds in a sample, even at a point where the guard would not run."""
    found = guard.check(Subject(point=sample.point, text=sample.text))
    if not isinstance(found, Iterable):
        raise BadInput(
            f"guard {guard.name!r} awaits something or asks a model; only synchronous guards can be measured"
        )
    return tuple(found)


# -- disguises --------------------------------------------------------------------------------------------------


VARIANTS: Final[Mapping[str, Callable[[str], str]]] = {
    "full-width": lambda text: "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in text),
    "zero-width": "\u200b".join,
    "spaced": lambda text: "   ".join(" ".join(word) for word in text.split(" ")),
    "upper case": str.upper,
    "mixed case": lambda text: "".join(one.upper() if at % 2 else one.lower() for at, one in enumerate(text)),
    "beside Chinese": lambda text: f"資料{text}資料",
    "look-alikes": lambda text: text.translate(
        str.maketrans(
            "aeopcxAEOPCX", "\u0430\u0435\u043e\u0440\u0441\u0445\u0410\u0415\u041e\u0420\u0421\u0425"
        )
    ),
    "base64": lambda text: f"Please read this: {base64.b64encode(text.encode()).decode()}",
    "hex": lambda text: f"Please read this: {text.encode().hex()}",
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "references": lambda text: "".join(f"&#{ord(one)};" for one in text),
    "tag characters": lambda text: "".join(
        chr(0xE0000 + ord(one)) if " " <= one <= "~" else one for one in text
    ),
    "escaped html": html.escape,
}
"""Disguises that preserve a text's meaning, keyed by name. A guard must report the same findings for them."""


# -- lines ------------------------------------------------------------------------------------------------------


def checked(guards: GuardSet, entry: Mapping[str, Any], place: str, tier: str = "") -> tuple[object, Outcome]:
    """Run guards on an entry; return its id and the outcome. `place` locates the entry in error messages."""
    point = point_of(entry, place)
    tool = entry.get("tool")
    return entry.get("id"), guards.run(Subject(point=point, text=entry["text"], tool=tool, tier=tier))
