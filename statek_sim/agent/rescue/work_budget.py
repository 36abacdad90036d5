"""Limits the work spent on a reply, and parses strict JSON at the standard library's speed.

Every reader counts its steps here, so the work is bounded for any reply. `Broken` is raised for text that no reader can
parse.
"""

from __future__ import annotations

import json
from itertools import count

from statek_sim.agent.schema import STRICT, NoJSON
from statek_sim.values import JSON


class Broken(Exception):
    """Raised if the text at `at` cannot be parsed. `cut`: the reply ends there; `limit`: a limit is exceeded."""

    def __init__(self, at: int, why: str, *, cut: bool = False, limit: bool = False) -> None:
        super().__init__(why)
        self.at = at
        self.why = why
        self.cut = cut
        self.limit = limit


class WorkBudget:
    """Counts the work spent on one reply; raises `Broken` after too many tolerantly read tokens."""

    def __init__(self, tokens: int) -> None:
        self.tokens_left = tokens
        self.steps = 0

    def token(self, at: int) -> None:
        """Count a token at `at`; raises `Broken` if the budget is used up."""
        self.steps += 1
        self.tokens_left -= 1
        if self.tokens_left < 0:
            raise Broken(at, "the reply needs too many repairs", limit=True)


def strict(text: str, at: int, budget: WorkBudget) -> tuple[JSON, int] | None:
    """Return the JSON value that starts at `at` and its end position, or None if it is not valid JSON.

    Raises `Broken` for errors beyond repair: a duplicate key, NaN, a number out of range.
    """
    try:
        value, end = STRICT.raw_decode(text, at)
    except json.JSONDecodeError as error:
        budget.steps += error.pos - at + 1
        return None
    except RecursionError:
        raise Broken(at + 1, "it is nested too deeply", limit=True) from None
    except NoJSON as error:
        raise Broken(at + 1, str(error)) from None
    budget.steps += end - at
    return value, end


def measure(value: JSON, at: int, *, depth: int, values: int) -> None:
    """Raise `Broken` for a value that is too deep or too large, or contains invalid Unicode."""
    todo: list[tuple[JSON, int]] = [(value, 0)]
    for number in count():
        if not todo:
            return
        one, level = todo.pop()
        if number + len(todo) > values or (isinstance(one, dict | list) and len(one) > values):
            raise Broken(at + 1, f"it has more than {values} values", limit=True)
        if level > depth:
            raise Broken(at + 1, f"it is nested more than {depth} levels deep", limit=True)
        if isinstance(one, dict):
            todo += [(member, level + 1) for member in one.values()]
            todo += [(key, level) for key in one]
        elif isinstance(one, list):
            todo += [(member, level + 1) for member in one]
        elif isinstance(one, str) and not _is_text(one):
            raise Broken(at + 1, "a string contains half of a surrogate pair")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
