"""The corpus as scenarios: every text in dialogues of 1, 5 and 20 turns, with and without tools.

Of its four tools one is used and three are only offered, as agents' tools often are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from statek_sim.analysis.corpus.texts import KINDS, Text, text_of
from statek_sim.runtime.tools.declaration import tool
from statek_sim.scenario.check import jobs_of
from statek_sim.scenario.schema import Scenario, ScenarioText
from statek_sim.values import JSON

SUITE: Final = "corpus"
TURNS: Final = (1, 5, 20)
"""Lengths of the dialogues, in messages of the user."""

DEFAULT_MODEL: Final = "gpt-4o"

_TOOLS: Final = ("look_up", "book_delivery", "open_claim", "change_address")
_HERE: Final = Path(__file__)


class Cell(NamedTuple):
    """One scenario's place in the table: how long the dialogue is, and whether the model has tools."""

    turns: int
    tools: bool

    @property
    def name(self) -> str:
        """`5-plain` or `5-tools`."""
        return f"{self.turns}-{'tools' if self.tools else 'plain'}"


CELLS: Final = tuple(Cell(turns, tools) for tools in (False, True) for turns in TURNS)
"""All places, in the order of the table's columns."""


def corpus_scenarios(model: str = DEFAULT_MODEL) -> tuple[Scenario, ...]:
    """Return the whole corpus for an agent of this model; the limits are off, so that every dialogue ends."""
    return tuple(_scenario(text_of(key), cell, model) for key in KINDS for cell in CELLS)


def scenario_id(key: str, cell: Cell) -> str:
    """Return the id of a text's scenario in one place of the table."""
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
        agent["tools"] = [f"statek_sim.analysis.corpus.scenarios:{name}" for name in _TOOLS]
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
    """Return what the user writes; where there is no tool to look the record up, the user copies it in."""
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
