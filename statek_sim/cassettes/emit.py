"""A cassette's text: vcrpy's YAML, version 1.

What vcrpy has no key for is in `statek` beside a response's `status`, `headers` and `body`, where vcrpy ignores and
keeps it: how a JSON body was written (`json`), that lines ended with CR LF (`newline`), and when the pieces of a
stream came (`chunks`, each `[seconds, bytes]`). Bodies are laid out for people: vcrpy alone replays the same JSON and
the same events, and `document.read` gives back the very bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import yaml

from statek_sim.cassettes.bodies import NEWLINE, body_layout
from statek_sim.cassettes.exchange import Exchange, Headers
from statek_sim.cassettes.yaml_values import no_garbage_collection

VERSION: Final = 1
"""The only version of the format that there is, since vcrpy 1.0."""
REMARKS: Final = "statek"
"""The key of a response that is ours."""
CHUNKS: Final = "chunks"

_WIDE: Final = 2**31 - 1


def rendered(exchanges: Sequence[Exchange]) -> str:
    """Return the text of a cassette: the same for the same exchanges, one line per line of a body."""
    with no_garbage_collection():
        document = {"interactions": [_interaction(exchange) for exchange in exchanges], "version": VERSION}
        text = _yaml(document)
        stand_ins = _stand_ins(text)
        if stand_ins:
            text = _yaml(_translated(document, stand_ins))
            text = text.translate({ord(stand_in): code for code, stand_in in stand_ins.items()})
    return text


_BREAKS: Final = re.compile("[\x85\u2028\u2029]")
_ESCAPED: Final = re.compile(r"\\U([0-9A-F]{8})")
_PRIVATE_USE: Final = range(0xE000, 0xF900)


def _yaml(document: object) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDE)
    # libyaml says where a document ends after any text that keeps its last line breaks; vcrpy's files do not.
    return text.removesuffix("...\n")


def _stand_ins(text: str) -> dict[int, str]:
    """Return a character for each that libyaml has escaped because it is beyond U+FFFF; none of them is in the text.

    libyaml takes them for unprintable, so that a body of many lines with one emoji would be one line of escapes.
    """
    wide = sorted({int(code, 16) for code in _ESCAPED.findall(text)})
    there = frozenset(text)
    free = (chr(code) for code in _PRIVATE_USE if chr(code) not in there)
    return dict(zip(wide, free, strict=False))


def _translated(value: object, table: Mapping[int, str]) -> object:
    if isinstance(value, dict):
        return {key: _translated(item, table) for key, item in value.items()}
    if isinstance(value, list) and not isinstance(value, _Row):
        return [_translated(item, table) for item in value]
    if isinstance(value, str):
        return type(value)(value.translate(table))
    return value


class _Block(str):
    """A text of several lines, shown as lines."""

    __slots__ = ()


class _Row(list[object]):
    """A list on one line."""

    __slots__ = ()


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which one is found at run time
    """Writes plain data; the same object twice is written twice, not as an alias."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _write_block(dumper: yaml.SafeDumper, text: _Block) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


def _write_row(dumper: yaml.SafeDumper, row: _Row) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", row, flow_style=True)


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # What YAML takes for the end of a line and nobody else does is escaped, so that lines are counted alike.
    style = '"' if _BREAKS.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(_Block, _write_block)
_Dumper.add_representer(_Row, _write_row)


def _interaction(exchange: Exchange) -> dict[str, object]:
    request, response = exchange.request, exchange.response
    body, told_of_body = body_layout(response.body)
    remarks: dict[str, object] = {**told_of_body}
    if response.chunks:
        remarks[CHUNKS] = _Row(_Row([chunk.at, chunk.size]) for chunk in response.chunks)
    members: dict[str, object] = {
        "status": {"code": response.status, "message": response.reason},
        "headers": _mapping(_with_length(response.headers, body)),
        "body": {"string": _block(body)},
    }
    if remarks:
        members[REMARKS] = remarks
    return {
        "request": {
            "method": request.method,
            "uri": request.uri,
            "headers": _mapping(request.headers),
            "body": _block(_sent(request.body)),
        },
        "response": members,
    }


def _mapping(headers: Headers) -> dict[str, list[str]]:
    """Return the headers by name, in order of names."""
    mapping: dict[str, list[str]] = {}
    for name, value in sorted(headers, key=lambda pair: pair[0].lower()):
        mapping.setdefault(name, []).append(value)
    return mapping


def _with_length(headers: Headers, body: str | bytes) -> Headers:
    """Return the headers with the length that the body has in the file, if they tell one."""
    size = len(body.encode()) if isinstance(body, str) else len(body)
    return tuple((name, str(size) if name.lower() == "content-length" else value) for name, value in headers)


def _sent(body: bytes) -> str | bytes:
    """Return a request's body as the file shows it; there is no place for remarks, so that line ends stay."""
    text, remarks = body_layout(body)
    return body.decode("utf-8") if NEWLINE in remarks else text


def _block(body: str | bytes) -> str | bytes:
    """Return a text of several lines as lines; the emitter takes quotes where a block would change the text."""
    lines = isinstance(body, str) and "\n" in body and not _BREAKS.search(body)
    return _Block(body) if lines else body
