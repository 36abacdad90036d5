"""The corpus as scenarios: every text in dialogues of 1, 5 and 20 turns, with and without tools."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from statek_sim.analysis.corpus.texts import KINDS, Text, text_of
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
        agent["tools"] = [f"statek_sim.analysis.corpus.tools:{name}" for name in _TOOLS]
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
