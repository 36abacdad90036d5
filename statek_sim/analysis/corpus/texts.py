"""The corpus's texts: one file per language or kind of text, all with the same five exchanges."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.errors import BadScenario
from statek_sim.scenario.files import read
from statek_sim.scenario.problem import Problem
from statek_sim.scenario.tree import Malformed, node_value, parse
from statek_sim.values import JSON

KINDS: Final = (
    "english",
    "polish",
    "russian",
    "chinese",
    "japanese",
    "korean",
    "thai",
    "arabic",
    "hindi",
    "emoji",
    "python",
    "json",
    "stack-traces",
    "base64",
    "long-identifiers",
)
"""The files, in the order of the table."""

PARCEL: Final = "{parcel}"
"""What stands in the texts for a parcel's number."""

_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the user asks, what is on record about it, and what the model answers."""

    ask: str
    record: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One language or kind: its name, the agent's prompt, and its exchanges in order."""

    key: str
    name: str
    prompt: str
    exchanges: tuple[Exchange, ...]

    def exchange(self, number: int) -> Exchange:
        """Return exchange `number`, from 0; after the last they begin again, about another parcel."""
        found = self.exchanges[number % len(self.exchanges)]
        parcel = f"PL-{4401 + number // len(self.exchanges)}"
        return Exchange(*(part.replace(PARCEL, parcel) for part in (found.ask, found.record, found.answer)))


@functools.cache
def text_of(key: str) -> Text:
    """Return one language or kind; BadScenario, `path: message`, when its file is not as it should be."""
    path = _FOLDER / f"{key}.yaml"
    written = _read(path)
    if "like" not in written:
        exchanges = tuple(_exchange(path, entry) for entry in _list(path, written, "exchanges"))
        return Text(
            key=key,
            name=_said(path, written, "name"),
            prompt=_said(path, written, "prompt"),
            exchanges=exchanges,
        )
    # The words of another file around records of its own.
    words = text_of(_said(path, written, "like"))
    records = [str(record) for record in _list(path, written, "records")]
    if len(records) != len(words.exchanges):
        raise BadScenario(f"{path}: expected {len(words.exchanges)} records, found {len(records)}")
    return Text(
        key=key,
        name=_said(path, written, "name"),
        prompt=words.prompt,
        exchanges=tuple(
            Exchange(exchange.ask, record, exchange.answer)
            for exchange, record in zip(words.exchanges, records, strict=True)
        ),
    )


def _read(path: Path) -> dict[str, JSON]:
    source = read(path)
    if isinstance(source, Problem):
        raise BadScenario(str(source))
    try:
        root = parse(source.text)
    except Malformed as error:
        raise BadScenario(f"{path}:{error.line}: {error.message}") from None
    written = None if root is None else node_value(root)
    if not isinstance(written, dict):
        raise BadScenario(f"{path}:1: expected a mapping")
    return written


def _exchange(path: Path, entry: JSON) -> Exchange:
    if not isinstance(entry, dict):
        raise BadScenario(f"{path}: an exchange is a mapping of ask, record and answer, not {entry!r}")
    return Exchange(*(_said(path, entry, key) for key in ("ask", "record", "answer")))


def _said(path: Path, written: dict[str, JSON], key: str) -> str:
    value = written.get(key)
    if not isinstance(value, str):
        raise BadScenario(f"{path}: {key!r} is a text, not {value!r}")
    return value


def _list(path: Path, written: dict[str, JSON], key: str) -> list[JSON]:
    value = written.get(key)
    if not isinstance(value, list):
        raise BadScenario(f"{path}: {key!r} is a list, not {value!r}")
    return value
