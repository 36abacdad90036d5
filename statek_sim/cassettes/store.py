"""Cassette files on disk: loaded by way of an index, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from statek_sim.cassettes.document import parse, source_of
from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Exchange
from statek_sim.cassettes.index import LEAST_SIZE, index_path, indexed, write_index
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.tape import Tape
from statek_sim.errors import BadInput


def load(path: Path, matching: Matching, *, index_folder: Path | None = None) -> Tape:
    """Return the recordings of a cassette; `BadCassette` when it is none.

    A large one is read once; its index in `index_folder`, if that is given, serves until the file changes.
    """
    source = source_of(path)
    place = index_path(index_folder, path) if index_folder and len(source) >= LEAST_SIZE else None
    known = indexed(place, source, matching) if place else None
    if known is not None:
        return known
    exchanges = parse(source, path)
    tape = tape_of(exchanges, matching)
    if place:
        write_index(place, source, matching, tape.fingerprints, exchanges)
    return tape


def tape_of(exchanges: Sequence[Exchange], matching: Matching) -> Tape:
    """Return exchanges as a tape."""
    return Tape([matching.fingerprint(exchange.request) for exchange in exchanges], exchanges.__getitem__)


def write(path: Path, exchanges: Sequence[Exchange]) -> None:
    """Write a cassette: a reader, and a crash at any moment, see the old file or the new one. `BadInput` if impossible.

    The exchanges must be clean: `scrub.scrubbed` comes before.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.write(rendered(exchanges))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot write the cassette: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
