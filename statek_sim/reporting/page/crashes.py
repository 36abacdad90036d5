"""What a crash does, for the page: a cell for every distinct place to die, and what happens from there on."""

from __future__ import annotations

from typing import Final

from statek_sim.explore.result import Cell, Exploration, Explored, Failure
from statek_sim.reporting.exploration import proven_words
from statek_sim.values import JSON

ROOM: Final = 8_000_000
"""Characters of what happens after deaths on one page. Past it they are left out, those of good cells first."""

GOOD: Final = frozenset({"same", "asks"})


def crashes_json(exploration: Exploration, *, room: int = ROOM) -> dict[str, JSON]:
    """Return an exploration of kills as the page has it: equal texts once, those of cells where something breaks first.

    A cell is `[event, silent, what, job, came, text]`, the text a place in `texts`, -1 where there was no room.
    """
    texts = _texts(exploration, room)
    return {
        "runs": exploration.runs,
        "scenarios": [_scenario(scenario, texts) for scenario in exploration.scenarios],
        "texts": [*texts],
        "left_out": sum(
            _text(cell) not in texts for scenario in exploration.scenarios for cell in scenario.cells
        ),
    }


def _texts(exploration: Exploration, room: int) -> dict[str, int]:
    """Return the texts that there is room for, each with its place."""
    cells = [cell for scenario in exploration.scenarios for cell in scenario.cells]
    found: dict[str, int] = {}
    for cell in sorted(cells, key=lambda cell: cell.came in GOOD):
        text = _text(cell)
        if text not in found and len(text) <= room:
            room -= len(text)
            found[text] = len(found)
    return found


def _text(cell: Cell) -> str:
    return "\n".join(cell.lines)


def _scenario(scenario: Explored, texts: dict[str, int]) -> JSON:
    return {
        "name": f"{scenario.suite}/{scenario.id}[{scenario.profile}]",
        "proven": proven_words(scenario),
        "problem": scenario.problem,
        "failures": [_failure(failure) for failure in scenario.failures],
        "cells": [
            [cell.event, cell.silent, cell.what, cell.job, cell.came, texts.get(_text(cell), -1)]
            for cell in scenario.cells
        ],
    }


def _failure(failure: Failure) -> JSON:
    return {
        "invariant": failure.invariant,
        "message": failure.message,
        "times": failure.times,
        "where": [*map(str, failure.deviations)],
    }
