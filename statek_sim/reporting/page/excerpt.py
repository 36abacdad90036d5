"""Texts of a run as the page carries them: whole where that is reasonable, else the beginning and what is missing."""

from __future__ import annotations

from typing import Final

from statek_sim.reporting.text_format import plural

TEXT: Final = 20_000
"""Characters of one text."""

RUN: Final = 400_000
"""Characters of all texts of one run, before each further one is cut to `LEAST`."""

LEAST: Final = 200
"""Characters that every text may have, however many there are."""

LABEL: Final = 120
"""Characters of a label beside a mark."""


def excerpt(text: str, length: int = TEXT) -> str:
    """Return `text`, or its first `length` characters and a line that says how many more there are."""
    if len(text) <= length:
        return text
    return f"{text[:length]}\n... {plural(len(text) - length, 'more character')} left out here"


def label(text: str) -> str:
    """Return the first line of `text`, short enough to stand beside a mark."""
    first = text[: LABEL + 1].partition("\n")[0]
    return first if len(first) == len(text) and len(text) <= LABEL else f"{first[:LABEL]}..."


class Excerpts:
    """The texts of one run: together they stay near `RUN` characters, whatever agents print."""

    __slots__ = ("_left",)

    def __init__(self, length: int = RUN) -> None:
        self._left = length

    def take(self, text: str) -> str:
        """Return `text` as far as there is room for it."""
        taken = excerpt(text, max(LEAST, min(TEXT, self._left)))
        self._left -= len(taken)
        return taken
