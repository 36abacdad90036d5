"""What is kept of a search: examples whose traces had something new, and the shapes that were seen."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.fuzz.player import Example, Outcome, as_dict, from_dict
from statek_sim.reporting.artifact import write_artifact

SCHEMA: Final = "statek-sim/fuzz@1"
_STATE: Final = "fuzz.json"
_SHAPES: Final = "shapes.txt"


@dataclass(slots=True)
class Corpus:
    """A search so far: `rounds`, `runs` and `examples` that were played, in `seconds`, and what was new in them."""

    seed: int
    about: str
    rounds: int = 0
    runs: int = 0
    played: int = 0
    seconds: float = 0.0
    kept: list[Example] = field(default_factory=list)
    shapes: set[str] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)

    def take(self, outcome: Outcome) -> None:
        """Count an outcome, and keep its example when something follows in it that nowhere did before."""
        self.played += 1
        self.runs += outcome.runs
        self.shapes.add(outcome.shape)
        if not outcome.steps <= self.steps:
            self.steps |= outcome.steps
            self.kept.append(outcome.example)


def load_corpus(folder: Path, *, seed: int, about: str) -> Corpus:
    """Return the search that a folder holds, or a new one.

    `about` says what is searched: BadInput when the folder is about something else, was begun with another seed, or is
    damaged.
    """
    state = folder / _STATE
    if not state.exists():
        return Corpus(seed, about)
    try:
        document: dict[str, Any] = json.loads(state.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise BadInput(f"{state}: expected schema {SCHEMA}, got {document['schema']}")
        corpus = Corpus(
            document["seed"],
            document["about"],
            document["rounds"],
            document["runs"],
            document["played"],
            document["seconds"],
        )
        corpus.kept = [from_dict(one) for one in document["kept"]]
        corpus.steps = set(document["steps"])
        corpus.shapes = set((folder / _SHAPES).read_text(encoding="ascii").split())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{state}: not a search that can be gone on with: {type(error).__name__}: {error}"
        ) from None
    if (corpus.seed, corpus.about) != (seed, about):
        raise BadInput(
            f"{state}: it is a search of other examples, or with another seed than {seed}; take an empty folder"
        )
    return corpus


def save_corpus(corpus: Corpus, folder: Path) -> None:
    """Write a search into a folder; the state last, so that an interrupted write leaves the one before."""
    write_artifact(folder / _SHAPES, "".join(f"{one}\n" for one in sorted(corpus.shapes)))
    document = {
        "schema": SCHEMA,
        "seed": corpus.seed,
        "about": corpus.about,
        "rounds": corpus.rounds,
        "runs": corpus.runs,
        "played": corpus.played,
        "seconds": corpus.seconds,
        "kept": [as_dict(one) for one in corpus.kept],
        "steps": sorted(corpus.steps),
    }
    write_artifact(folder / _STATE, json.dumps(document) + "\n")


def about_of(parts: list[str]) -> str:
    """Return a digest of what is searched: scenarios, profile, invariants."""
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()
