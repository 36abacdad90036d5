"""The last word of a team's own function, `statek_cassette_redact`, about every text of a cassette.

A model writes a customer's number as it writes all else, some characters per event: a function that is only given the
body of a stream never meets it. So it is given, too, each text that the pieces of a stream add up to.
"""

from __future__ import annotations

import json
import re
from typing import Final

from statek_sim.cassettes.members import columns, leaves
from statek_sim.cassettes.own_secrets import OwnSecrets
from statek_sim.cassettes.view import Range, View
from statek_sim.errors import BadInput
from statek_sim.values import in_common

_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
"""What stands in a text for a byte that is none of it, or is half of a character."""

MOST_ROUNDS: Final = 20
"""So often the texts of a stream are given to the function again after it changed some of them."""


def redacted(place: str, text: str, own: OwnSecrets) -> str:
    """Return a text as a team's own function leaves it; `BadInput` when that fails or returns something else."""
    if own.redact is None:
        return text
    try:
        clean = own.redact(place, text)
    except Exception as error:
        raise BadInput(f"statek_cassette_redact: {type(error).__name__} for the {place}: {error}") from error
    if not isinstance(clean, str):
        raise BadInput(f"statek_cassette_redact: expected a text for the {place}, got {clean!r}")
    if clean != text and (odd := set(_SURROGATE.findall(clean)) - set(text)):
        raise BadInput(
            f"statek_cassette_redact: what it made of the {place} has half a character in it ({min(odd)!r}), which no "
            "file can hold"
        )
    return clean


def redacted_body(text: str, own: OwnSecrets) -> str:
    """Return a body as a team's own function leaves it: the whole of it, and the texts its pieces add up to.

    What lies between the first and the last change of such a text comes in one piece then. `BadInput` as for
    `redacted`, and when the function changes what it returned, again and again.
    """
    clean = redacted("body", text, own)
    if own.redact is None:
        return clean
    for _ in range(MOST_ROUNDS):
        changes = _changes(clean, own)
        if not changes:
            return clean
        for (start, end), replacement in sorted(changes, reverse=True):
            clean = clean[:start] + replacement + clean[end:]
    raise BadInput(
        "statek_cassette_redact: changes what it returned: it must leave a text alone that has been through it"
    )


def _changes(source: str, own: OwnSecrets) -> list[tuple[Range, str]]:
    """Return what the function replaces in the texts of a stream, as parts of the source that are apart."""
    view = View.of(source)
    changes: list[tuple[Range, str]] = []
    for column in columns(view, leaves(source)):
        clean = redacted("body", column.text, own) if column.text else ""
        if clean == column.text:
            continue
        change = _change(column, clean, quoted=source[column.ranges(0, 1)[0][0] - 1] == '"')
        # One piece may belong to two texts: the second is read again, with the first as it is by then.
        if all(right <= start or end <= left for (start, end), _ in change for (left, right), _ in changes):
            changes += change
    return changes


def _change(column: View, clean: str, *, quoted: bool) -> list[tuple[Range, str]]:
    """Return what makes a text `clean`: what is new goes into the first piece that changes, the others lose theirs."""
    before = column.text
    start = in_common(before, clean)
    same_end = in_common(before[start:][::-1], clean[start:][::-1])
    new = clean[start : len(clean) - same_end]
    written = json.dumps(new, ensure_ascii=False)[1:-1] if quoted else new.replace("\n", "\ndata: ")
    end = len(before) - same_end
    if start < end:
        first, *others = column.ranges(start, end)
    elif start:
        # Only something more: it goes behind what is before it.
        last = column.ranges(start - 1, start)[-1][1]
        first, others = (last, last), []
    else:
        begin = column.ranges(0, 1)[0][0]
        first, others = (begin, begin), []
    return [(first, written), *((place, "") for place in others)]
