"""A corpus of scenarios with dialogues in several languages and text types, and a table of the results.

Every language or text type has the same five exchanges. Its scenarios are dialogues with 1, 5 or 20 turns, with and
without tools. Of the four tools, one is used and three are only offered, as is common for agents. For each text and
dialogue type, the table shows STATEK's estimate divided by the measured tokens.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from statek_sim.runtime.tools.declaration import tool
from statek_sim.scenario.check import jobs_of
from statek_sim.scenario.schema import Scenario, ScenarioText
from statek_sim.scenario.tree import node_value, parse
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
"""The names of the text files, in table order."""

PARCEL: Final = "{parcel}"
"""The placeholder for a parcel number in the text files."""

_FOLDER: Final = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user's question, the record that a tool returns for it, and the model's answer."""

    ask: str
    record: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The text for one language or type: its name, the agent's prompt, and the exchanges in order."""

    key: str
    name: str
    prompt: str
    exchanges: tuple[Exchange, ...]

    def exchange(self, number: int) -> Exchange:
        """Return the exchange with this zero-based number. After the last exchange, they repeat with another parcel."""
        found = self.exchanges[number % len(self.exchanges)]
        parcel = f"PL-{4401 + number // len(self.exchanges)}"
        return Exchange(*(part.replace(PARCEL, parcel) for part in (found.ask, found.record, found.answer)))


@functools.cache
def text_of(key: str) -> Text:
    """Return the text for one language or type, from `corpus/KEY.yaml`.

    A file with `like` contains only records; everything else comes from the file that it names.
    """
    root = parse((_FOLDER / f"{key}.yaml").read_text("utf-8"))
    written: Any = None if root is None else node_value(root)
    if "like" not in written:
        exchanges = tuple(Exchange(**entry) for entry in written["exchanges"])
        return Text(key=key, name=written["name"], prompt=written["prompt"], exchanges=exchanges)
    like = text_of(written["like"])
    pairs = zip(like.exchanges, written["records"], strict=True)
    exchanges = tuple(replace(exchange, record=str(record)) for exchange, record in pairs)
    return Text(key=key, name=written["name"], prompt=like.prompt, exchanges=exchanges)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRow:
    """A text's usage in each table cell."""

    key: str
    name: str
    uses: Mapping[Cell, Use]

    def ratio(self, cell: Cell) -> float:
        """Return STATEK's estimate divided by the measured tokens."""
        use = self.uses[cell]
        return use.approx_tokens / use.measured_tokens

    def character_ratio(self, cell: Cell) -> float:
        """Return `characters // 4` divided by the measured tokens."""
        use = self.uses[cell]
        return use.character_tokens / use.measured_tokens


@dataclass(frozen=True, slots=True)
class CorpusTable:
    """The rows for all texts in order, and the label of the tokenizer that measured them."""

    rows: tuple[CorpusRow, ...]
    tokenizer: str


def corpus_table(analysis: UsageAnalysis) -> CorpusTable:
    """Return the table for a usage analysis of all corpus scenarios."""
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
"""The dialogue lengths, in user messages."""

DEFAULT_MODEL: Final = "gpt-4o"

_TOOLS: Final = ("look_up", "book_delivery", "open_claim", "change_address")
_HERE: Final = Path(__file__)


class Cell(NamedTuple):
    """A table column: a dialogue's number of turns, and whether the model has tools."""

    turns: int
    tools: bool

    @property
    def name(self) -> str:
        """The cell's name, such as `5-tools` or `20-plain`."""
        return f"{self.turns}-{'tools' if self.tools else 'plain'}"


CELLS: Final = tuple(Cell(turns, tools) for tools in (False, True) for turns in TURNS)
"""All cells, in table column order."""


def corpus_scenarios(model: str = DEFAULT_MODEL) -> tuple[Scenario, ...]:
    """Return all corpus scenarios, without limits, for an agent that uses this model."""
    return tuple(_scenario(text_of(key), cell, model) for key in KINDS for cell in CELLS)


def scenario_id(key: str, cell: Cell) -> str:
    """Return the id of a text's scenario in a table cell."""
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
    """Return the user's message; without a lookup tool, it includes the record."""
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
