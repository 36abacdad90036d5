"""What is kept of a search: examples whose traces had something new, and the shapes that were seen."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.fuzz.player import Example, Outcome, Player, as_dict, from_dict
from statek_sim.reporting.artifact import write_artifact
from statek_sim.unreadable import text_of, why_another, why_unreadable

SCHEMA: Final = "statek-sim/fuzz@2"
_STATE: Final = "fuzz.json"
_SHAPES: Final = "shapes.txt"


@dataclass(slots=True)
class Corpus:
    """A search so far: `rounds`, `runs` and `examples` that were played, in `seconds`, and what was new in them.

    Of the round that was begun, `place` examples were played; the first `began` of those that are kept were known then.
    """

    seed: int
    about: str
    rounds: int = 0
    runs: int = 0
    played: int = 0
    seconds: float = 0.0
    kept: list[Example] = field(default_factory=list)
    shapes: set[str] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)
    place: int = 0
    began: int = 0

    def take(self, outcome: Outcome) -> None:
        """Count an outcome, and keep its example when something follows in it that nowhere did before."""
        self.played += 1
        self.runs += outcome.runs
        self.shapes.add(outcome.shape)
        if not outcome.steps <= self.steps:
            self.steps |= outcome.steps
            self.kept.append(outcome.example)

    def went_on(self, played: int, *, of: int) -> None:
        """Note that so many examples of a round of `of` were taken in: the next one begins when all were."""
        self.place += played
        if self.place >= of:
            self.rounds, self.place, self.began = self.rounds + 1, 0, len(self.kept)


def load_corpus(folder: Path, *, seed: int, about: str, scenarios: int) -> Corpus:
    """Return the search that a folder holds, or a new one.

    `about` says what is searched, `scenarios` how many of the user's, 0: examples are drawn. BadInput when the folder
    is about something else, was begun with another seed, or is damaged.
    """
    state = folder / _STATE
    if not state.exists():
        return Corpus(seed, about)
    try:
        document: dict[str, Any] = json.loads(_text(state))
        if document["schema"] != SCHEMA:
            raise BadInput(f"{state}: expected schema {SCHEMA}, got {document['schema']}")
        corpus = _read(document)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(
            f"{state}: not a search that can be gone on with: {why_another(error)}; take an empty folder"
        ) from None
    corpus.shapes = set(_text(folder / _SHAPES).split())
    if (corpus.seed, corpus.about) != (seed, about):
        raise BadInput(
            f"{state}: it is a search of other examples, or with another seed than {seed}; take an empty folder"
        )
    for number, example in enumerate(corpus.kept):
        if (example.scenario is None) != (scenarios == 0) or (example.scenario or 0) >= max(scenarios, 1):
            raise BadInput(
                f"{state}: kept[{number}]: scenario {example.scenario!r} is none of this search, which has "
                f"{scenarios}; take an empty folder"
            )
    return corpus


def _text(path: Path) -> str:
    try:
        return text_of(path)
    except OSError as error:
        raise BadInput(f"{path}: {why_unreadable(error, path)}") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: byte {error.start} is not UTF-8; take an empty folder") from None


def _read(document: dict[str, Any]) -> Corpus:
    """Return the search of a document; ValueError, KeyError or TypeError for what is none."""
    counts = {name: document[name] for name in ("rounds", "runs", "played", "place", "began")}
    kept = [from_dict(example) for example in document["kept"]]
    for name, count in counts.items():
        if type(count) is not int or count < 0:
            raise ValueError(f"{name}: expected a whole number from 0, got {count!r}")
    if counts["began"] > len(kept):
        raise ValueError(f"began: expected at most {len(kept)}, as many as are kept, got {counts['began']}")
    return Corpus(
        document["seed"],
        document["about"],
        seconds=float(document["seconds"]),
        kept=kept,
        steps=set(document["steps"]),
        **counts,
    )


def save_corpus(corpus: Corpus, folder: Path) -> None:
    """Write a search into a folder; the state last, so that an interrupted write leaves the one before."""
    write_artifact(folder / _SHAPES, "".join(f"{shape}\n" for shape in sorted(corpus.shapes)))
    document = {
        "schema": SCHEMA,
        "seed": corpus.seed,
        "about": corpus.about,
        "rounds": corpus.rounds,
        "runs": corpus.runs,
        "played": corpus.played,
        "place": corpus.place,
        "began": corpus.began,
        "seconds": corpus.seconds,
        "kept": [as_dict(example) for example in corpus.kept],
        "steps": sorted(corpus.steps),
    }
    write_artifact(folder / _STATE, json.dumps(document) + "\n")


def about_of(player: Player) -> str:
    """Return a digest of what is searched: scenarios, wherever their files are, profile, invariants."""
    nowhere = {"path": Path(), "line": 0, "file_digest": ""}
    subjects = [(scenario.model_copy(update=nowhere), profile) for scenario, profile in player.subjects]
    parts = [str(subjects), str(player.own), str(sorted(player.ignored)), player.profile]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()
