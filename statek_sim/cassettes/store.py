"""Cassette files on disk: listed by folder, loaded by way of an index, written whole or not at all.

The index of a large cassette is a file of its own, in a folder that is never committed (pytest's cache, which git
ignores), so that the cassette is not parsed again. It names the cassette's SHA-256 and its own: any other content of
either, a cut-off write, another release's format, and it is as if there was no index. It holds what the cassette holds,
as JSON lines, and nothing in it is executed.
"""

from __future__ import annotations

import json
import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Final

from statek_sim.atomic_files import replace_file
from statek_sim.cassettes.document import parse, source_of
from statek_sim.cassettes.emit import rendered
from statek_sim.cassettes.exchange import Chunk, Exchange, Headers, Request, Response
from statek_sim.cassettes.matching import Matching, has_redacted_place
from statek_sim.cassettes.tape import Tape
from statek_sim.errors import BadInput
from statek_sim.input_files import why_unreadable

LONGEST_NAME: Final = 255
"""Bytes of a file name on common file systems."""
FORMAT: Final = "statek-sim cassette index 4"
LEAST_SIZE: Final = 256 * 1024
"""Cassettes smaller than this, in bytes, are read in some milliseconds and get no index."""
_FINGERPRINT: Final = 32
_REDACTED: Final = b"*"
"""Behind the fingerprint of a request with a redacted place; a blank behind that of any other."""


def load(path: Path, matching: Matching, *, index_folder: Path | None = None) -> Tape:
    """Return the recordings of a cassette; `BadCassette` when it is none.

    A large one is read once; its index in `index_folder`, if that is given, serves until the file changes.
    """
    source = source_of(path)
    place = index_path(index_folder, path) if index_folder and len(source) >= LEAST_SIZE else None
    known = indexed(place, source, matching) if place else None
    if known is not None:
        return known
    exchanges = parse(source, path)
    tape = tape_of(exchanges, matching)
    if place:
        write_index(place, source, matching, tape.fingerprints, exchanges)
    return tape


def tape_of(exchanges: Sequence[Exchange], matching: Matching) -> Tape:
    """Return exchanges as a tape."""
    return Tape(
        [matching.fingerprint(exchange.request) for exchange in exchanges],
        exchanges.__getitem__,
        [number for number, exchange in enumerate(exchanges) if has_redacted_place(exchange.request)],
    )


def check_writable(path: Path) -> None:
    """Let a cassette pass that can be written; `BadInput` before anything is asked that could not be kept."""
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        raise BadInput(
            f"{path}: the name has more than {LONGEST_NAME} bytes; give the cassette a shorter one"
        )
    try:
        above = next(folder for folder in Path(os.path.realpath(path)).parents if os.path.lexists(folder))
        if not above.is_dir():
            raise BadInput(f"{above}: expected a folder for cassettes, it is a file")
        if not os.access(above, os.W_OK | os.X_OK):
            raise BadInput(
                f"{above}: the folder cannot be written, so that {path.name} could not be recorded"
            )
        if path.is_dir():
            raise BadInput(f"{path}: expected a cassette, it is a folder")
        if path.exists() and not path.is_file():
            raise BadInput(f"{path}: expected a cassette, it is a device, pipe or socket")
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: cannot be a cassette: {error}") from None


def check_changeable(path: Path) -> None:
    """Let a cassette pass that is no read-only file: who made it so does not want it replaced."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise BadInput(f"{path}: {why_unreadable(error, path)}") from None
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
        raise BadInput(f"{path}: it is read-only, so nothing is recorded into it; chmod u+w allows it")


def write(path: Path, exchanges: Sequence[Exchange]) -> None:
    """Write a cassette; the exchanges must hold no secrets (`redaction.redacted`). `BadInput` if it is impossible."""
    write_text(path, rendered(exchanges))


def write_text(path: Path, text: str) -> None:
    """Write the text of a cassette: a reader, and a crash at any moment, see the old file or the new one.

    Where a link leads is written, and it keeps its permissions. `BadInput` if it is impossible.
    """
    try:
        check_writable(path)
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            check_changeable(target)
        replace_file(target, text.encode("utf-8"))
    except OSError as error:
        raise BadInput(f"{path}: cannot write the cassette: {error.strerror or error}") from error


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
        lambda number: _exchange(rows[number][_FINGERPRINT + 1 :]),
        [number for number, row in enumerate(rows) if row.startswith(_REDACTED, _FINGERPRINT)],
    )


def write_index(
    path: Path, source: bytes, matching: Matching, fingerprints: Sequence[str], exchanges: Iterable[Exchange]
) -> None:
    """Write the index of a cassette, whole or not at all; where that is impossible, there is none."""
    rows = (
        fingerprint.encode("ascii")
        + (_REDACTED if has_redacted_place(exchange.request) else b" ")
        + _row(exchange)
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


SUFFIXES: Final = (".yaml", ".yml")
FOLDER: Final = "cassettes"
"""The folder in which pytest-recording and we keep the cassettes of the tests beside it."""
ASIDE: Final = ".new"
"""What a failed re-recording left beside a cassette ends so, before its suffix."""


def cassette_files(path: Path) -> list[Path]:
    """Return a cassette, or those at any depth of a folder, in order; `BadInput` when there is none."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise BadInput(f"{path}: there is no such file or folder")
    found = sorted(
        file for file in path.rglob("*") if file.suffix in SUFFIXES and not file.stem.endswith(ASIDE)
    )
    if not found:
        raise BadInput(f"{path}: no cassettes in this folder, expected {' or '.join(SUFFIXES)} files")
    return found


def cassettes_under(folders: Iterable[Path]) -> list[Path]:
    """Return the cassettes in folders called `cassettes`, at and under these folders, in order."""
    found = {
        path.resolve()
        for folder in folders
        for path in (*folder.rglob("*.yaml"), *folder.rglob("*.yml"))
        if FOLDER in path.resolve().parts[:-1] and not _is_hidden(path.relative_to(folder))
    }
    return sorted(found)


def orphans(cassettes: Sequence[Path], used: Iterable[Path]) -> list[Path]:
    """Return the cassettes that are not among the used ones; paths are absolute."""
    wanted = frozenset(path.resolve() for path in used)
    return [path for path in cassettes if path not in wanted]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "site-packages" for part in path.parts)
