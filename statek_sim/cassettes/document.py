"""The file format of cassettes: vcrpy's YAML, version 1.

Responses contain additional data under `statek`, which vcrpy ignores and preserves: the style of a JSON body (`json`),
CR LF line endings (`newline`), and the timing of a stream's chunks (`chunks`, each `[seconds, bytes]`). Bodies are
formatted for readability. From these files, vcrpy replays equal JSON and equal events, and `read` returns the exact
bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from reprlib import Repr
from typing import Final, TypeVar

import yaml

from statek_sim.cassettes.bodies import NEWLINE, Undecodable, body_layout, opened, original
from statek_sim.cassettes.exchange import Chunk, Exchange, Headers, Request, Response, header, without
from statek_sim.cassettes.matching import address_of
from statek_sim.cassettes.yaml_values import Document, Keypath, loaded, no_garbage_collection
from statek_sim.errors import BadCassette
from statek_sim.input_files import why_unreadable

VERSION: Final = 1
"""The only format version since vcrpy 1.0."""
REMARKS: Final = "statek"
"""The key for the additional data in a response."""
CHUNKS: Final = "chunks"

_WIDE: Final = 2**31 - 1


def rendered(exchanges: Sequence[Exchange]) -> str:
    """Serialize a cassette; equal exchanges give equal text, and each line of a body is on its own line."""
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
    # libyaml marks the document end after any text that keeps its last line breaks; vcrpy's files do not.
    return text.removesuffix("...\n")


def _stand_ins(text: str) -> dict[int, str]:
    """Return a private-use character as a substitute for each escaped character beyond U+FFFF.

    libyaml treats such characters as unprintable, and would write a body with one emoji as a single line of escapes. No
    substitute already occurs in the text.
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
    """A string to be written as a YAML block, line by line."""

    __slots__ = ()


class _Row(list[object]):
    """A list to be written on one line."""

    __slots__ = ()


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # which one is found at run time
    """A YAML dumper for plain data, without aliases for repeated objects."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _write_block(dumper: yaml.SafeDumper, text: _Block) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style="|")


def _write_row(dumper: yaml.SafeDumper, row: _Row) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", row, flow_style=True)


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    # Escape characters that only YAML treats as line ends, so that lines are counted as in other tools.
    style = '"' if _BREAKS.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(_Block, _write_block)
_Dumper.add_representer(_Row, _write_row)


def _interaction(exchange: Exchange) -> dict[str, object]:
    request, response = exchange.request, exchange.response
    body, layout = body_layout(response.body)
    remarks: dict[str, object] = {**layout}
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
    """Return each header's values, sorted by header name."""
    mapping: dict[str, list[str]] = {}
    for name, value in sorted(headers, key=lambda pair: pair[0].lower()):
        mapping.setdefault(name, []).append(value)
    return mapping


def _with_length(headers: Headers, body: str | bytes) -> Headers:
    """Return the headers with `content-length`, if present, set to the formatted body's length."""
    size = len(body.encode()) if isinstance(body, str) else len(body)
    return tuple((name, str(size) if name.lower() == "content-length" else value) for name, value in headers)


def _sent(body: bytes) -> str | bytes:
    """Return a formatted request body, keeping its line endings, because requests have no additional data."""
    text, remarks = body_layout(body)
    return body.decode("utf-8") if NEWLINE in remarks else text


def _block(body: str | bytes) -> str | bytes:
    """Return a multi-line body as a block; the dumper uses quotes if a block would change the text."""
    lines = isinstance(body, str) and "\n" in body and not _BREAKS.search(body)
    return _Block(body) if lines else body


OLDER: Final = "status_code"
"""The key of the status in responses that older versions of vcrpy recorded from httpx."""
PARSED: Final = "parsed_body"
"""The key under which pydantic-ai's serializer for vcrpy stores a JSON body as values."""
_LONGEST: Final = 60
"""Maximum length of a value in an error message."""
_BRIEF: Final = Repr()
_BRIEF.maxstring = _BRIEF.maxother = _LONGEST
_ENCODING: Final = "content-encoding"
_ADVICE: Final = "delete the file and record it again"
_Message = TypeVar("_Message", Request, Response)


def read(path: Path) -> list[Exchange]:
    """Return a cassette file's exchanges; raises `BadCassette` if the file is invalid or unreadable."""
    return parse(source_of(path), path)


def read_decoded(path: Path) -> list[Exchange]:
    """Return a cassette file's exchanges with decompressed bodies; a body that cannot be decoded is left unchanged.

    A replay uses `read` instead, so that clients get the exact bytes.
    """
    return [decoded(exchange) for exchange in read(path)]


def decoded(exchange: Exchange) -> Exchange:
    """Return an exchange with decompressed bodies; a body that cannot be decoded is left unchanged."""
    return replace(
        exchange, request=_without_encoding(exchange.request), response=_without_encoding(exchange.response)
    )


def _without_encoding(message: _Message) -> _Message:
    encoding = header(message.headers, _ENCODING)
    if not encoding:
        return message
    try:
        body = opened(message.body, encoding)
    except Undecodable:
        return message
    headers = _true_length(without(message.headers, [_ENCODING]), len(body))
    return replace(message, headers=headers, body=body)


def brief(value: object) -> str:
    """Return a value's repr, shortened to at most 60 characters, for an error message."""
    try:
        text = _BRIEF.repr(value)
    except ValueError:
        return "a number with thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def source_of(path: Path) -> bytes:
    """Return a cassette file's bytes; raises `BadCassette` if the file is unreadable."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCassette(f"{path}: {why_unreadable(error, path)}") from error


def parse(source: bytes, path: Path) -> list[Exchange]:
    """Parse a cassette's bytes into exchanges; raises `BadCassette`, naming `path`, if they are invalid."""
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise BadCassette(f"{path}:{line}: not UTF-8 text: byte 0x{source[error.start]:02x}") from None
    if not text.strip():
        raise BadCassette(f"{path}:1: the cassette is empty; {_ADVICE}")
    with no_garbage_collection():
        document = loaded(text, path)
        return list(_exchanges(_Spot(path, document, document.value), document))


def _exchanges(top: _Spot, document: Document) -> Iterator[Exchange]:
    if isinstance(document.value, list):
        raise top.error("written by vcrpy before 1.0, in an unsupported format")
    if "version" not in top.mapping():
        raise BadCassette(
            f"{top.path}:{document.end}: the file is truncated: expected `version: {VERSION}` at the end; {_ADVICE}"
        )
    version = top.mapping()["version"]
    if version != VERSION or isinstance(version, bool):
        raise top.at("version").error(f"version {version!r}; only vcrpy's version {VERSION} is supported")
    # A list that is an alias has no lines of its own.
    lines = chain(document.lines_of("interactions"), repeat(document.end))
    for spot, line in zip(top.at("interactions").items(), lines, strict=False):
        yield Exchange(
            request=_request(spot.at("request")), response=_response(spot.at("response")), line=line
        )


def _request(spot: _Spot) -> Request:
    body = spot.parsed_body() if PARSED in spot.mapping() else spot.at("body").sent()
    return Request(
        method=spot.at("method").text(),
        uri=_address(spot.at("uri")),
        headers=_headers_of_body(spot),
        body=body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body,
    )


def _address(spot: _Spot) -> str:
    """Return an absolute URL; raises `BadCassette` for a relative URL, which no request can match."""
    uri = spot.text()
    try:
        address_of(uri)
    except ValueError as error:
        raise spot.error(f"{spot.name}: {error}") from None
    return uri


def _response(spot: _Spot) -> Response:
    if OLDER in spot.mapping():
        return _older_response(spot)
    status = spot.at("status")
    remarks = (
        {str(key): value for key, value in spot.at(REMARKS).mapping().items()}
        if REMARKS in spot.mapping()
        else {}
    )
    if PARSED in spot.mapping():
        body = spot.parsed_body()
    else:
        string = spot.at("body").at("string")
        try:
            body = original(string.body(), remarks)
        except ValueError as error:
            raise string.error(str(error)) from None
    return Response(
        status=status.at("code").number(),
        reason=status.at("message").text_or_nothing(),
        headers=_true_length(_headers_of_body(spot), len(body)),
        body=body,
        chunks=tuple(_chunks(spot.at(REMARKS).at(CHUNKS))) if CHUNKS in remarks else (),
    )


def _older_response(spot: _Spot) -> Response:
    """Return a response that vcrpy recorded from httpx before version 6: `content` is the decompressed body."""
    body = original(spot.at("content").body(), {})
    headers = without(_headers(spot.at("headers")), [_ENCODING])
    return Response(status=spot.at(OLDER).number(), headers=_true_length(headers, len(body)), body=body)


def _true_length(headers: Headers, size: int) -> Headers:
    """Return the headers with `content-length`, if present, set to the original body's length."""
    return tuple((name, str(size) if name.lower() == "content-length" else value) for name, value in headers)


def _headers_of_body(spot: _Spot) -> Headers:
    """Return a message's headers, without `content-encoding` for a body that is stored as values."""
    headers = _headers(spot.at("headers"))
    return without(headers, [_ENCODING]) if PARSED in spot.mapping() else headers


def _headers(spot: _Spot) -> Headers:
    headers: list[tuple[str, str]] = []
    for name, values in spot.mapping().items():
        listed = values if isinstance(values, list) else [values]
        if not isinstance(name, str) or not all(isinstance(value, str | bytes | int) for value in listed):
            raise spot.at(str(name)).error(
                f"header {name!r}: expected a string or a list of strings, got {brief(values)}"
            )
        headers += [
            (name, value.decode("latin-1") if isinstance(value, bytes) else str(value)) for value in listed
        ]
    return tuple(headers)


def _chunks(spot: _Spot) -> Iterator[Chunk]:
    for entry in spot.items():
        match entry.value:
            case [int() | float() as at, int(size)]:
                yield Chunk(at, size)
            case _:
                raise entry.error(f"expected [seconds, bytes], got {brief(entry.value)}")


_ANOTHER_TOOLS: Final = {"type", "content"}
"""Request body keys found in files from a different recorder, which otherwise look like vcrpy's files."""


@dataclass(slots=True)
class _Spot:
    """A value in a parsed cassette and its position, so that errors can include the line number."""

    path: Path
    document: Document
    value: object
    keypath: Keypath = ()

    @property
    def name(self) -> str:
        return f"`{self.keypath[-1]}`" if self.keypath else "the cassette"

    def at(self, key: str) -> _Spot:
        """Return a mapping's value under a required key."""
        mapping = self.mapping()
        if key not in mapping:
            raise self.error(f"{self.name} has no `{key}`")
        return _Spot(self.path, self.document, mapping[key], (*self.keypath, key))

    def items(self) -> Iterator[_Spot]:
        if not isinstance(self.value, list):
            raise self.error(f"{self.name}: expected a list, got {self._short()}")
        for number, value in enumerate(self.value):
            yield _Spot(self.path, self.document, value, (*self.keypath, number))

    def mapping(self) -> Mapping[object, object]:
        if not isinstance(self.value, dict):
            raise self.error(f"{self.name}: expected a mapping, got {self._short()}")
        return self.value

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error(f"{self.name}: expected a string, got {self._short()}")
        return self.value

    def text_or_nothing(self) -> str:
        return "" if self.value is None else self.text()

    def number(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.error(f"{self.name}: expected a whole number, got {self._short()}")
        return self.value

    def sent(self) -> str | bytes:
        """Return a request's body, even if vcrpy stored the object that aiohttp encodes as JSON."""
        if not isinstance(self.value, dict | list) or set(self.value) == _ANOTHER_TOOLS:
            return self.body()
        try:
            return json.dumps(self.value)
        except (TypeError, ValueError):
            raise self.error(f"{self.name}: expected a string or a JSON value, got {self._short()}") from None

    def parsed_body(self) -> bytes:
        """Return a body that is stored as values, encoded as JSON."""
        spot = self.at(PARSED)
        try:
            return json.dumps(spot.value).encode("ascii")
        except (TypeError, ValueError):
            raise spot.error(f"{spot.name}: expected a JSON value, got {spot._short()}") from None

    def body(self) -> str | bytes:
        """Return a body as a string, or as bytes if it is not text; a missing body is empty."""
        if self.value is None:
            return b""
        if not isinstance(self.value, str | bytes):
            raise self.error(
                f"{self.name}: expected a string, got {self._short()}: vcrpy did not write this file"
            )
        return self.value

    def error(self, message: str) -> BadCassette:
        return BadCassette(f"{self.path}:{self.document.line(self.keypath)}: {message}")

    def _short(self) -> str:
        return brief(self.value)
