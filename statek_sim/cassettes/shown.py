"""Texts for people and for other programs, without the secrets in them: error messages, journals, problems.

A cassette is scrubbed as an exchange, and refused where nobody can say what is in it. What is shown is never refused:
what is too tangled to be read is left out.
"""

from __future__ import annotations

from typing import Final

from statek_sim.cassettes.names import PLACEHOLDER
from statek_sim.cassettes.reading import Found, Tangled, read, read_address, read_header, replaced
from statek_sim.cassettes.secrets import Sought, lower
from statek_sim.cassettes.shapes import shaped
from statek_sim.cassettes.view import AROUND

_MOST_SHOWN: Final = 2_000
TANGLED: Final = f"{PLACEHOLDER}: more encodings in one another than are undone"
"""What is shown for a text that cannot be read for secrets."""


def without_keys(text: str) -> str:
    """Return a message without what looks like a known kind of key; what is only called like one stays."""
    return replaced(text, [Found(((start, end),), kind) for start, end, kind in shaped(text, lower(text))])


def without_secrets(text: str, sent: tuple[str, ...] = ()) -> str:
    """Return a text without what the recorder would replace; `sent` are secrets that are known."""
    try:
        return replaced(text, read(text, Sought(sent)))
    except Tangled:
        return TANGLED


def ends_without_secrets(text: str, sent: tuple[str, ...] = ()) -> str:
    """Return a text that will lose its middle without secrets; of a long one the ends, so that nobody waits for it.

    Up to 2,000 characters of it may be shown: the blanks keep what was cut apart out of sight.
    """
    if len(text) <= 2 * AROUND:
        return without_secrets(text, sent)
    start, end = (without_secrets(part, sent) for part in (text[:AROUND], text[-AROUND:]))
    return f"{start}{' ' * _MOST_SHOWN}{end}"


def plain_header(name: str, value: str) -> str:
    """Return a header's value without secrets."""
    try:
        return replaced(value, read_header(name, value))
    except Tangled:
        return TANGLED


def plain_target(target: str) -> str:
    """Return a path and query without secrets."""
    try:
        return replaced(target, read_address(target))
    except Tangled:
        return TANGLED
