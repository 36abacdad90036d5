"""How providers write bytes: compact JSON in UTF-8, and server-sent events.

Events: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from json.encoder import encode_basestring, encode_basestring_ascii

from statek_sim.values import JSON


def compact(value: JSON) -> str:
    """Return `value` without spaces; escaped to ASCII where UTF-8 has no form for it (lone surrogates)."""
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return plain if _is_utf8(plain) else json.dumps(value, separators=(",", ":"))


def quoted(text: str) -> str:
    """Return `text` as a JSON string: `compact`, without an encoder of its own for each text."""
    return encode_basestring(text) if _is_utf8(text) else encode_basestring_ascii(text)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def event(data: str, *, name: str | None = None) -> bytes:
    """Return one event. `data` is one line, as JSON is."""
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {data}\n\n".encode()


def events(stream: bytes) -> Iterator[str]:
    """Yield the data of each event; comments, names and events without data are passed over.

    The last event counts also when the blank line that ends it is missing: recordings get cut there.
    """
    lines: list[str] = []
    for line in [*stream.decode().replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
