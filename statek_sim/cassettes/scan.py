"""Look for credentials in files that are already there: cassettes of ours, of vcrpy, or any YAML and JSON.

What would be scrubbed is found: the same names and shapes, in nested JSON and in the pieces of a stream. A file that
is no YAML is read line by line, and so are comments.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.cassettes import sse
from statek_sim.cassettes.own_secrets import NO_OWN, OwnSecrets
from statek_sim.cassettes.scrub import scrubbed_text
from statek_sim.cassettes.secrets import (
    Sought,
    bare,
    find_secrets,
    is_placeholder,
    is_secret_header,
    is_secret_name,
)
from statek_sim.cassettes.yaml_values import Document, Keypath, Lines, loaded
from statek_sim.errors import BadCassette, BadInput

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl", ".toml", ".har", ".txt")
"""Files of a folder that are scanned; a file that is named itself always is."""
_LINES: Final = frozenset({".jsonl", ".toml", ".txt"})
_GZIP: Final = b"\x1f\x8b"
_SHOWN: Final = 4
"""Characters of a credential that are shown, so that the report does not leak it."""


@dataclass(frozen=True, slots=True, order=True)
class Leak:
    """Something that looks like a credential: where, what it seems to be, and its first characters."""

    path: Path
    line: int
    kind: str
    start: str

    def __str__(self) -> str:
        """Return `path:line: what`."""
        return f"{self.path}:{self.line}: {self.kind}: {self.start}…"


def files_under(paths: Iterable[Path]) -> list[Path]:
    """Return the files to scan, in order; `BadInput` for a path that does not exist."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
        elif path.exists():
            found.append(path)
        else:
            raise BadInput(f"{path}: there is no such file or folder")
    return found


def scan(path: Path, own: OwnSecrets = NO_OWN) -> list[Leak]:
    """Return the leaks of a file, in order of lines; `BadInput` when it cannot be read."""
    sought = Sought(own=own)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from error
    text = _decoded(source)
    lines = list(enumerate(text.split("\n"), start=1))
    document = None if path.suffix in _LINES else _document(text, path)
    if document is None:
        return sorted(_by_line(path, lines, sought))
    comments = _by_line(
        path, ((number, line) for number, line in lines if line.lstrip().startswith("#")), sought
    )
    found = list(_walk(document.value, (), sought))
    places = Lines(text) if found else None
    return sorted({*comments, *(_placed(path, places, *leak) for leak in found if places)})


def _document(text: str, path: Path) -> Document | None:
    """Return the values of a text, or None when it is no YAML."""
    try:
        return loaded(text, path)
    except BadCassette:
        return None


def _walk(value: object, keypath: Keypath, sought: Sought) -> Iterator[tuple[Keypath, int, str, str]]:
    """Yield the place of each leak: the key path, the line in the text there, the kind and the text."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _member(str(key), item, (*keypath, str(key)), sought)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(item, (*keypath, number), sought)
    elif isinstance(value, str | bytes):
        for line, kind, start in _in_body(_text(value), sought):
            yield keypath, line, kind, start


def _member(
    key: str, value: object, keypath: Keypath, sought: Sought
) -> Iterator[tuple[Keypath, int, str, str]]:
    texts = value if isinstance(value, list) else [value]
    if is_secret_name(key, sought.own) or is_secret_header(key, sought.own):
        for text in texts:
            if isinstance(text, int | float) and sought.own.is_name(key):
                yield keypath, 0, f"a value named {key!r}", str(text)
            if isinstance(text, str | bytes) and not is_placeholder(bare(_text(text))):
                yield keypath, 0, f"a value named {key!r}", bare(_text(text))
    else:
        yield from _walk(value, keypath, sought)


def _in_body(text: str, sought: Sought) -> Iterator[tuple[int, str, str]]:
    spans = find_secrets(text, sought)
    for span in spans:
        yield text.count("\n", 0, span.start), span.kind, text[span.start : span.end]
    if spans:
        return
    lines = text.split("\n")
    events = list(sse.events(lines)) if "data:" in text else []
    pieces = [(place, span) for place, span in sse.joined_secrets(events, sought) if span.kind]
    for (number, _), span in pieces:
        yield events[number].line, f"{span.kind}, in pieces of a stream", ""
    if not pieces and scrubbed_text(text, known=sought) != text:
        yield 0, "a credential in nested JSON", ""


def _by_line(path: Path, lines: Iterable[tuple[int, str]], sought: Sought) -> Iterator[Leak]:
    for number, line in lines:
        for span in find_secrets(line, sought):
            yield Leak(path, number, span.kind, line[span.start : span.end][:_SHOWN])


def _placed(path: Path, lines: Lines, keypath: Keypath, line: int, kind: str, text: str) -> Leak:
    start = lines.at(keypath)
    if lines.is_block(keypath):
        start += 1 + line
    return Leak(path, start, kind, text[:_SHOWN])


def _text(value: str | bytes) -> str:
    """Return a value as text; a compressed body is opened."""
    if isinstance(value, str):
        return value
    if value.startswith(_GZIP):
        try:
            value = zlib.decompress(value, zlib.MAX_WBITS | 16)
        except zlib.error:
            pass
    return _decoded(value)


def _decoded(source: bytes) -> str:
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError:
        return source.decode("latin-1")
