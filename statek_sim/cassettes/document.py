"""Read a cassette's YAML, ours or vcrpy's own; an error says `path:line`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat
from pathlib import Path
from reprlib import Repr
from typing import Final, TypeVar

from statek_sim.cassettes.bodies import Undecodable, opened, original
from statek_sim.cassettes.emit import CHUNKS, REMARKS, VERSION
from statek_sim.cassettes.exchange import Chunk, Exchange, Headers, Request, Response, header, without
from statek_sim.cassettes.matching import address_of
from statek_sim.cassettes.yaml_values import Document, Keypath, loaded, no_garbage_collection
from statek_sim.errors import BadCassette
from statek_sim.input_files import why_unreadable

PARSED: Final = "parsed_body"
"""The key of a JSON body that pydantic-ai's serializer for vcrpy keeps as values."""
_LONGEST: Final = 60
"""Characters of a value that an error shows."""
_BRIEF: Final = Repr()
_BRIEF.maxstring = _BRIEF.maxother = _LONGEST
_ENCODING: Final = "content-encoding"
_ADVICE: Final = "delete the file and record it again"
_Message = TypeVar("_Message", Request, Response)


def read(path: Path) -> list[Exchange]:
    """Return the exchanges of a cassette; `BadCassette` when it is none, or cannot be read."""
    return parse(source_of(path), path)


def read_decoded(path: Path) -> list[Exchange]:
    """Return the exchanges of a cassette with bodies as texts: vcrpy keeps those that were compressed as they came.

    Replaying takes `read`, so that clients get the very bytes. A body that cannot be opened stays as it is.
    """
    return [decoded(exchange) for exchange in read(path)]


def decoded(exchange: Exchange) -> Exchange:
    """Return an exchange with its bodies without content encoding, where that can be undone."""
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
    """Return a value as errors show it: of aliases of aliases, and of numbers without an end, only a part."""
    try:
        text = repr(value) if _is_small(value) else _BRIEF.repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _is_small(value: object) -> bool:
    """Whether a value has few others in it, however often aliases lead to the same one."""
    waiting, left = [value], _LONGEST
    while waiting and left:
        left -= 1
        one = waiting.pop()
        waiting += one if isinstance(one, list) else one.values() if isinstance(one, dict) else ()
    return not waiting


def source_of(path: Path) -> bytes:
    """Return the bytes of a cassette; `BadCassette` when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadCassette(f"{path}: {why_unreadable(error, path)}") from error


def parse(source: bytes, path: Path) -> list[Exchange]:
    """Return the exchanges in a cassette's bytes; `path` is for errors, which are `BadCassette`."""
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
        raise top.error("written by vcrpy before 1.0, which is another format")
    if "version" not in top.mapping():
        raise BadCassette(
            f"{top.path}:{document.end}: the file is cut off: `version: {VERSION}` should end it; {_ADVICE}"
        )
    version = top.mapping()["version"]
    if version != VERSION or isinstance(version, bool):
        raise top.at("version").error(f"version {version!r}; this reads vcrpy's version {VERSION}")
    # An alias has no lines of its own.
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
    """Return an absolute address: a relative one says not whom the request went to, and nothing can match it."""
    uri = spot.text()
    try:
        address_of(uri)
    except ValueError as error:
        raise spot.error(f"{spot.name}: {error}") from None
    return uri


def _response(spot: _Spot) -> Response:
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


def _true_length(headers: Headers, size: int) -> Headers:
    """Return the headers with the length of the body as it was sent: in the file it is the length of the layout."""
    return tuple((name, str(size) if name.lower() == "content-length" else value) for name, value in headers)


def _headers_of_body(spot: _Spot) -> Headers:
    """Return the headers of a message; a body that is kept as values is compressed no more."""
    headers = _headers(spot.at("headers"))
    return without(headers, [_ENCODING]) if PARSED in spot.mapping() else headers


def _headers(spot: _Spot) -> Headers:
    headers: list[tuple[str, str]] = []
    for name, values in spot.mapping().items():
        listed = values if isinstance(values, list) else [values]
        if not isinstance(name, str) or not all(isinstance(value, str | bytes | int) for value in listed):
            raise spot.at(str(name)).error(
                f"header {name!r}: expected a text or a list of texts, got {brief(values)}"
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
"""What the body of a request is in the files of another recorder, which look like vcrpy's otherwise."""


@dataclass(slots=True)
class _Spot:
    """A value and its place in a text. Errors name its line."""

    path: Path
    document: Document
    value: object
    keypath: Keypath = ()

    @property
    def name(self) -> str:
        return f"`{self.keypath[-1]}`" if self.keypath else "the cassette"

    def at(self, key: str) -> _Spot:
        """Return what a mapping has under a key, which must be there."""
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
            raise self.error(f"{self.name}: expected a text, got {self._short()}")
        return self.value

    def text_or_nothing(self) -> str:
        return "" if self.value is None else self.text()

    def number(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.error(f"{self.name}: expected a whole number, got {self._short()}")
        return self.value

    def sent(self) -> str | bytes:
        """Return the body of a request; vcrpy keeps what aiohttp was given to make JSON of."""
        if not isinstance(self.value, dict | list) or set(self.value) == _ANOTHER_TOOLS:
            return self.body()
        try:
            return json.dumps(self.value)
        except (TypeError, ValueError):
            raise self.error(f"{self.name}: expected a text or what JSON has, got {self._short()}") from None

    def parsed_body(self) -> bytes:
        """Return the JSON of a body that is kept as values."""
        spot = self.at(PARSED)
        try:
            return json.dumps(spot.value).encode("ascii")
        except (TypeError, ValueError):
            raise spot.error(f"{spot.name}: expected what JSON has, got {spot._short()}") from None

    def body(self) -> str | bytes:
        """Return a text, or bytes that are no text; nothing is no bytes."""
        if self.value is None:
            return b""
        if not isinstance(self.value, str | bytes):
            raise self.error(
                f"{self.name}: expected a text, got {self._short()}: vcrpy did not write this file"
            )
        return self.value

    def error(self, message: str) -> BadCassette:
        return BadCassette(f"{self.path}:{self.document.line(self.keypath)}: {message}")

    def _short(self) -> str:
        return brief(self.value)
