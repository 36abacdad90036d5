"""Damaging a call that is written well: what small models really write, as plain functions of text.

Each takes the rendered call and its name and arguments, and returns what arrives. Some of it rescue parsing reads, some
it refuses: a value that is cut inside of a string is gone, and a call between prose is not executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final

from statek_sim.values import JSON

Damage = Callable[[str, str, Mapping[str, JSON]], str]
_LAST_VALUE: Final = re.compile(r'(["\w\]}])(\s*[}\]])')
_KEYS: Final = re.compile(r'"(\w+)"(\s*:)')
_QUOTE: Final = 0.6


def _cut(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    return text[: max(1, int(len(text) * _QUOTE))]


def _unclosed(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    """Leave everything behind the last value out: brackets and closing marks."""
    call = _json(name, arguments)
    return call.rstrip("}")


def _trailing_comma(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    call = _json(name, arguments)
    return _LAST_VALUE.sub(r"\1,\2", call, count=1)


def _single_quotes(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    return repr({"name": name, "arguments": dict(arguments)})


def _bare_keys(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    return _KEYS.sub(r"\1\2", _json(name, arguments))


def _prose(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    return f"Let me do that.\n{_json(name, arguments)}\nI will continue when I have the result."


def _fence(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    return f"```json\n{_json(name, arguments)}\n```"


def _function(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    keywords = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"[{name}({keywords})]"


def _lost_opening(text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    """Lose the mark at the beginning, by which a server knows its own dialect."""
    start = min((at for at in map(text.find, "{[<") if at > 0), default=1)
    return text[start:]


def _json(name: str, arguments: Mapping[str, JSON]) -> str:
    return json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)


DAMAGES: Final[Mapping[str, Damage]] = {
    "cut": _cut,
    "unclosed": _unclosed,
    "trailing_comma": _trailing_comma,
    "single_quotes": _single_quotes,
    "bare_keys": _bare_keys,
    "prose": _prose,
    "fence": _fence,
    "function": _function,
    "lost_opening": _lost_opening,
}
"""Ways to damage a call, by name."""


def damaged(kind: str, text: str, name: str, arguments: Mapping[str, JSON]) -> str:
    """Return a call, rendered as `text`, damaged in this way."""
    return DAMAGES[kind](text, name, arguments)
