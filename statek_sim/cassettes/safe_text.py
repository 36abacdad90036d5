"""Texts for people and for other programs, without the secrets in them: error messages, journals, problems."""

from __future__ import annotations

import re
from typing import Final

from statek_sim.cassettes.secret_finder import (
    NOTHING_ELSE,
    PLACEHOLDER,
    Finding,
    Sought,
    in_address,
    in_body,
    in_header,
    replaced,
)
from statek_sim.cassettes.secret_rules import is_secret_variable, shaped

AROUND: Final = 8_000
"""Characters behind what is shown that are read with it: more than any secret has."""
_SETTING: Final = re.compile(r"\s*(?:export\s+)?([\w.-]+)")
_MOST_SHOWN: Final = 2_000


def without_keys(text: str) -> str:
    """Return a message without what has the shape of a key; what is only called like one stays."""
    return replaced(text, sorted(Finding(*each) for each in shaped(text)))


def without_secrets(text: str, sent: tuple[str, ...] = ()) -> str:
    """Return a text without what the recorder would replace in a body; `sent` are secrets that are known."""
    return replaced(text, in_body(text, Sought(sent) if sent else NOTHING_ELSE))


def plain_setting(line: str) -> str:
    """Return a line of a file of settings, broken ones too, without the value of one with the name of a secret."""
    name = _SETTING.match(line)
    if name is not None and is_secret_variable(name[1]):
        return f"{name[0]} {PLACEHOLDER}"
    return without_secrets(line)


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
    return replaced(value, in_header(name, value))


def plain_target(target: str) -> str:
    """Return a path and query without secrets."""
    return replaced(target, in_address(target))
