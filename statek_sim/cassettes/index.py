"""A large cassette as it was read before, so that it is not parsed again.

The index is a file of its own, in a folder that is never committed (pytest's cache, which git ignores). It names the
cassette's SHA-256 and its own: any other content of either, a cut-off write, another release's format, and it is as
if there was no index. It holds what the cassette holds, as JSON lines, and nothing in it is executed.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final

from statek_sim.cassettes.exchange import Chunk, Exchange, Headers, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.tape import Tape
from statek_sim.whole_files import replace_file

FORMAT: Final = "statek-sim cassette index 3"
LEAST_SIZE: Final = 256 * 1024
"""Cassettes smaller than this, in bytes, are read in some milliseconds and get no index."""
_FINGERPRINT: Final = 32


@dataclass(frozen=True, slots=True)
class _Head:
    cassette: str
    ignored: list[str]
    own: list[list[str]]
    rows: str

    def line(self) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self)}).encode("ascii")


def index_path(folder: Path, cassette: Path) -> Path:
    """Return where the index of a cassette is: one per path, so that a changed cassette replaces its old one."""
    return folder / f"{blake2b(os.fsencode(cassette.resolve()), digest_size=12).hexdigest()}.index"


def indexed(path: Path, source: bytes, matching: Matching) -> Tape | None:
    """Return the tape of the cassette with these bytes, or None when the index at `path` is not of it."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    line, _, body = content.partition(b"\n")
    head = _Head(_digest(source), list(matching.ignored), matching.own.key(), _digest(body))
    if line != head.line():
        return None
    rows = body.split(b"\n")[:-1]
    return Tape(
        [row[:_FINGERPRINT].decode("ascii") for row in rows],
        lambda number: _exchange(rows[number][_FINGERPRINT:]),
    )


def write_index(
    path: Path, source: bytes, matching: Matching, fingerprints: Sequence[str], exchanges: Iterable[Exchange]
) -> None:
    """Write the index of a cassette, whole or not at all; where that is impossible, there is none."""
    rows = (
        fingerprint.encode("ascii") + _row(exchange)
        for fingerprint, exchange in zip(fingerprints, exchanges, strict=True)
    )
    body = b"".join(row + b"\n" for row in rows)
    head = _Head(_digest(source), list(matching.ignored), matching.own.key(), _digest(body))
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, head.line() + b"\n" + body, durable=False)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _row(exchange: Exchange) -> bytes:
    request, response = exchange.request, exchange.response
    return json.dumps(
        [
            exchange.line,
            [request.method, request.uri, request.headers, *_packed(request.body)],
            [response.status, response.reason, response.headers, *_packed(response.body)],
            [[chunk.at, chunk.size] for chunk in response.chunks],
        ]
    ).encode("ascii")


def _exchange(row: bytes) -> Exchange:
    line, (method, uri, sent, *body), (status, reason, received, *answer), chunks = json.loads(row)
    return Exchange(
        request=Request(method=method, uri=uri, headers=_pairs(sent), body=_unpacked(*body)),
        response=Response(
            status=status,
            reason=reason,
            headers=_pairs(received),
            body=_unpacked(*answer),
            chunks=tuple(Chunk(at, size) for at, size in chunks),
        ),
        line=line,
    )


def _pairs(headers: list[list[str]]) -> Headers:
    return tuple((name, value) for name, value in headers)


def _packed(body: bytes) -> tuple[str, bool]:
    """Return a body as text, and whether that is Base64."""
    try:
        return body.decode("utf-8"), False
    except UnicodeDecodeError:
        return b64encode(body).decode("ascii"), True


def _unpacked(text: str, is_base64: bool) -> bytes:
    return b64decode(text) if is_base64 else text.encode("utf-8")
