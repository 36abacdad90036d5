"""Suggestions at the end of errors about unknown names."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

_CUTOFF: Final = 66.0
"""Minimum similarity (0-100) of a suggestion."""

_SEPARATORS: Final = re.compile(r"[\W_]+")


def closest(word: str, options: Iterable[str]) -> str | None:
    """Return the option that `word` most likely meant, or None if none is similar.

    Letter case and the order of words do not matter. Among equally similar options, the first in alphabetical order
    wins.
    """
    scored = [(-_similarity(word, option), option) for option in options]
    score, option = min(scored, default=(0.0, ""))
    return option if -score >= _CUTOFF else None


def suggestion(word: str, options: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?`, ready to append to a message, or an empty string."""
    option = closest(word, options)
    return "" if option is None else f" Did you mean {option!r}?"


def stands_for(word: str, options: Container[str], elsewhere: Mapping[str, Sequence[str]]) -> str | None:
    """Return the option that other tools call `word`, or None; `elsewhere` maps options to their other names."""
    return next((ours for ours, theirs in elsewhere.items() if ours in options and word in theirs), None)


def _similarity(word: str, option: str) -> float:
    """Return a similarity from 0 to 100: of the letters, and of each part of `word` to a part of `option`."""
    # Imported only when needed: it is not installed beside the real STATEK, whose process also reads scenarios.
    from rapidfuzz import fuzz  # noqa: PLC0415

    word, option = word.casefold(), option.casefold()
    letters = fuzz.ratio(word, option)
    parts, known = _parts(word), _parts(option)
    if not parts or not known:
        return round(letters, 6)
    found = sum(max(fuzz.ratio(part, other) for other in known) for part in parts) / len(parts)
    # `max_tokens` shares more letters with `max_turns` than with `max_token_usage`: the parts decide.
    return round((letters + found) / 2, 6)


def _parts(name: str) -> list[str]:
    return [part for part in _SEPARATORS.split(name) if part]
