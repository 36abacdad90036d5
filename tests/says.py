"""Check the facts of a message, not its sentences: places, names, numbers, options and suggestions."""

from __future__ import annotations

import re
from collections import Counter


def says(text: str, *facts: str) -> bool:
    """Return whether one line of the text has every fact, in any order; see `line_with`."""
    return re.search(line_with(*facts), text) is not None


def line_with(*facts: str) -> str:
    """Return a pattern, as `match=` takes it, of a line that has every fact, in any order.

    A fact must stand on its own: `4` is neither in `41` nor in `4.5`, and `turn` is not in `turns`.
    A fact that is given twice must be there twice. No fact may be within another.
    """
    if not facts or "" in facts:
        raise ValueError("expected at least one fact, and no empty one: the test could not fail")
    counts = Counter(facts)
    for fact in counts:
        if any(other != fact and re.search(_on_its_own(fact), other) for other in counts):
            raise ValueError(f"{fact!r} is in another fact: it could not fail")
    return "(?m)^" + "".join(f"(?={f'.*?{_on_its_own(fact)}' * count})" for fact, count in counts.items())


def _on_its_own(fact: str) -> str:
    before = r"(?<![\w-])(?<!\d[.,])" if fact[0].isalnum() else ""
    after = r"(?![\w-]|[.,]\d)" if fact[-1].isalnum() else ""
    return f"{before}{re.escape(fact)}{after}"
