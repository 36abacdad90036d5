"""Suggestions for error messages about unknown names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_CUTOFF: Final = 66.0
"""The minimum similarity for a suggestion, from 0 to 100."""

_SEPARATORS: Final = re.compile(r"[\W_]+")


def closest(word: str, options: Iterable[str]) -> str | None:
    """Return the option that `word` most likely means, or None if no option is similar.

    Case and word order do not matter. If several options are equally similar, the first in alphabetical order is
    returned.
    """
    scored = [(-_similarity(word, option), option) for option in options]
    score, option = min(scored, default=(0.0, ""))
    return option if -score >= _CUTOFF else None


def suggestion(word: str, options: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?`, to append to an error message, or an empty string."""
    option = closest(word, options)
    return "" if option is None else f" Did you mean {option!r}?"


def with_suggestion(problem: str, word: str, options: Iterable[str]) -> str:
    """Return an error message, followed by `. Did you mean 'x'?` if an option is similar to `word`."""
    hint = suggestion(word, options)
    return f"{problem}.{hint}" if hint else problem


def _similarity(word: str, option: str) -> float:
    """Return the similarity of two names from 0 to 100, based on their letters and parts."""
    # Imported only when needed: it is not installed alongside the real STATEK, whose process also reads scenarios.
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
