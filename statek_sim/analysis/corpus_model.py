"""The corpus: texts per language or kind with the same five exchanges, as scenarios, and the table of their results.

A scenario is a text in a dialogue of 1, 5 or 20 turns, with and without tools. Of its four tools one is used and three
are only offered, as is common for agents. The result is estimate / measured for every text and cell of the table.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from statek_sim.errors import BadScenario
from statek_sim.runtime.tools.declaration import tool
from statek_sim.scenario.check import jobs_of
from statek_sim.scenario.files import read
from statek_sim.scenario.problem import Problem
from statek_sim.scenario.schema import Scenario, ScenarioText
from statek_sim.scenario.tree import Malformed, node_value, parse
from statek_sim.usage.breakdown import UsageAnalysis, Use
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
"""Placeholder for a parcel's number in the texts."""

_FOLDER: Final = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Exchange:
    """The user's question, the record about it, and the model's answer."""

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
        """Return exchange `number`, from 0; after the last they start over, about another parcel."""
        found = self.exchanges[number % len(self.exchanges)]
        parcel = f"PL-{4401 + number // len(self.exchanges)}"
        return Exchange(*(part.replace(PARCEL, parcel) for part in (found.ask, found.record, found.answer)))


@functools.cache
def text_of(key: str) -> Text:
    """Return one language or kind; BadScenario, `path: message`, if its file is invalid."""
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
    # Combine the texts of another file with this file's records.
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
        raise BadScenario(f"{path}: expected a mapping with ask, record and answer, got {entry!r}")
    return Exchange(*(_said(path, entry, key) for key in ("ask", "record", "answer")))


def _said(path: Path, written: dict[str, JSON], key: str) -> str:
    value = written.get(key)
    if not isinstance(value, str):
        raise BadScenario(f"{path}: expected {key!r} to be a string, got {value!r}")
    return value


def _list(path: Path, written: dict[str, JSON], key: str) -> list[JSON]:
    value = written.get(key)
    if not isinstance(value, list):
        raise BadScenario(f"{path}: expected {key!r} to be a list, got {value!r}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRow:
    """One language or kind of text: its usage in every cell of the table."""

    key: str
    name: str
    uses: Mapping[Cell, Use]

    def ratio(self, cell: Cell) -> float:
        """Return estimate / measured."""
        use = self.uses[cell]
        return use.approx_tokens / use.measured_tokens

    def character_ratio(self, cell: Cell) -> float:
        """Return (characters // 4) / measured."""
        use = self.uses[cell]
        return use.character_tokens / use.measured_tokens


@dataclass(frozen=True, slots=True)
class CorpusTable:
    """All rows in the order of the corpus; `tokenizer` measured them."""

    rows: tuple[CorpusRow, ...]
    tokenizer: str


def corpus_table(analysis: UsageAnalysis) -> CorpusTable:
    """Return the table of an analysis of the whole corpus."""
    uses = {scenario.id: scenario.use for scenario in analysis.scenarios}
    rows = tuple(
        CorpusRow(
            key=key,
            name=text_of(key).name,
            uses={cell: uses[scenario_id(key, cell)] for cell in CELLS},
        )
        for key in KINDS
    )
    return CorpusTable(rows, analysis.overall.use.tokenizer)


SUITE: Final = "corpus"
TURNS: Final = (1, 5, 20)
"""Lengths of the dialogues, in user messages."""

DEFAULT_MODEL: Final = "gpt-4o"

_TOOLS: Final = ("look_up", "book_delivery", "open_claim", "change_address")
_HERE: Final = Path(__file__)


class Cell(NamedTuple):
    """A scenario's cell in the table: the length of the dialogue, and whether the model has tools."""

    turns: int
    tools: bool

    @property
    def name(self) -> str:
        """The cell's name: its number of turns, then `plain` or `tools`, such as `5-tools`."""
        return f"{self.turns}-{'tools' if self.tools else 'plain'}"


CELLS: Final = tuple(Cell(turns, tools) for tools in (False, True) for turns in TURNS)
"""All cells, in the order of the table's columns."""


def corpus_scenarios(model: str = DEFAULT_MODEL) -> tuple[Scenario, ...]:
    """Return the whole corpus for an agent of this model; limits are off, so that every dialogue ends."""
    return tuple(_scenario(text_of(key), cell, model) for key in KINDS for cell in CELLS)


def scenario_id(key: str, cell: Cell) -> str:
    """Return the id of a text's scenario in one cell of the table."""
    return f"{key}-{cell.name}"


def _scenario(text: Text, cell: Cell, model: str) -> Scenario:
    agent: dict[str, JSON] = {
        "prompt": text.prompt,
        "model": model,
        "dialog": True,
        "chat_style": "DIRECT",
        "answer_tool": False,
    }
    if cell.tools:
        agent["tools"] = [f"statek_sim.analysis.corpus_model:{name}" for name in _TOOLS]
        agent["tools_scope"] = "APPLICATION"
    asks = [_ask(text, number, cell) for number in range(cell.turns)]
    events: list[JSON] = [
        {"at": float(number), "push": "main", "message": ask} for number, ask in enumerate(asks) if number
    ]
    written = ScenarioText.model_validate(
        {
            "id": scenario_id(text.key, cell),
            "title": f"{text.name}, {cell.turns} turns{' with tools' if cell.tools else ''}.",
            "tags": [text.key, *(["tools"] if cell.tools else [])],
            "limits": dict.fromkeys(
                ("max_turns", "max_exceptions", "max_consecutive_exceptions", "max_token_usage")
            ),
            "agents": {"service": agent},
            "jobs": {"main": {"message": asks[0]}},
            "events": events,
            "script": {
                "service": [reply for number in range(cell.turns) for reply in _replies(text, number, cell)]
            },
        }
    )
    return Scenario.placed(written, jobs_of(written), suite=SUITE, path=_HERE, line=1, file_digest="0" * 64)


def _ask(text: Text, number: int, cell: Cell) -> str:
    """Return the user's message; without a tool to look the record up, the user includes it."""
    exchange = text.exchange(number)
    return exchange.ask if cell.tools else f"{exchange.ask}\n\n{exchange.record}"


def _replies(text: Text, number: int, cell: Cell) -> list[JSON]:
    answer: JSON = {"text": text.exchange(number).answer}
    if not cell.tools:
        return [answer]
    call: JSON = {"name": "look_up", "args": {"register": text.key, "page": number}}
    return [{"tools": [call]}, answer]


@tool
def look_up(register: str, page: int, **kwargs: Any) -> str:
    """Look up what is on record about a parcel.

    Args:
        register: Name of the register.
        page: Number of the page, from 0.
    """
    return text_of(register).exchange(page).record


@tool
def book_delivery(parcel: str, day: str, slot: str = "morning", **kwargs: Any) -> str:
    """Book another delivery of a parcel.

    Args:
        parcel: The parcel's number.
        day: The day as YYYY-MM-DD.
        slot: morning, afternoon or evening.
    """
    return f"{parcel}: {day}, {slot}"


@tool
def open_claim(parcel: str, amount: float, reason: str, **kwargs: Any) -> str:
    """Open a claim for a parcel that was damaged or lost.

    Args:
        parcel: The parcel's number.
        amount: What the contents cost, in euros.
        reason: What happened, in the customer's words.
    """
    return f"{parcel}: {amount:.2f} EUR, {reason}"


@tool
def change_address(customer: str, address: str, valid_from: str | None = None, **kwargs: Any) -> str:
    """Change the address that future parcels go to.

    Args:
        customer: The customer's number.
        address: Street, number, postal code and town.
        valid_from: First day as YYYY-MM-DD; the next working day if left out.
    """
    return f"{customer}: {address} from {valid_from}"
