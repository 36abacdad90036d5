"""Look for credentials in files that are already there: cassettes of ours, of vcrpy, or any YAML, JSON and text.

Texts are read as the recorder reads them, by the same rules, and the secrets that one interaction was sent with are
looked for in all of it. A file that is no YAML is read as one text, and comments are too. What is not looked into is
told: special files, and files with more in them than the bounds here.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from statek_sim.cassettes.bodies import TooLarge, Undecodable, as_text, opened
from statek_sim.cassettes.names import (
    LEAST_RANDOM,
    bare,
    is_placeholder,
    is_secret_header,
    is_secret_name,
    is_vague_name,
    looks_random,
    may_be_number,
)
from statek_sim.cassettes.own_secrets import NO_OWN, OwnSecrets
from statek_sim.cassettes.reading import Found, Tangled, apart, read, read_address, read_header
from statek_sim.cassettes.redaction import redacted_body
from statek_sim.cassettes.scrub import keys_in_header, learned
from statek_sim.cassettes.secrets import Sought
from statek_sim.cassettes.yaml_values import Document, Keypath, Lines, loaded
from statek_sim.errors import BadCassette, BadInput
from statek_sim.unreadable import link_problem, why_unreadable

SUFFIXES: Final = (
    ".yaml",
    ".yml",
    ".json",
    ".jsonl",
    ".ndjson",
    ".toml",
    ".har",
    ".txt",
    ".log",
    ".env",
    ".ini",
)
"""Files of a folder that are scanned, in any case of letters; a file that is named itself always is."""
_LINES: Final = frozenset({".jsonl", ".ndjson", ".toml", ".txt", ".log", ".env", ".ini"})
_WITHOUT_COMMENTS: Final = frozenset({".json", ".har"})
_COMMENT: Final = re.compile(r"(?:^|(?<=[ \t]))#.*")
LARGEST: Final = 32 * 1024 * 1024
"""Bytes of a file that is read."""
LARGEST_YAML: Final = 16 * 1024 * 1024
"""Bytes of a file that is taken apart; a larger one is read as one text."""
MOST_CHARACTERS: Final = 2 * LARGEST
"""Characters in the values of a file, each counted as often as an alias repeats it."""
MOST_VALUES: Final = 300_000
_MARKS: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"} | {
    bytes((0x78, level)): "deflate" for level in (0x01, 0x5E, 0x9C, 0xDA)
}
"""How compressed bodies begin (RFC 1952, RFC 8878, RFC 1950), which other tools keep as they came."""
MOST_COMPRESSED: Final = 4
"""Compressions of a body in one another that are undone."""
_SHOWN: Final = 4
"""Characters of a credential that are shown, so that the report does not leak it."""
_OF_TEAM: Final = "what statek_cassette_redact replaces"
_OF_KEY: Final = "its key"
"""The step of a place that is the key of a member itself."""
_INTERACTIONS: Final = "interactions"


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


_ENCODED: Final = "!!binary"
"""What has this in it shows its values to nobody who reads it as text."""


@dataclass(frozen=True, slots=True, order=True)
class Unopened:
    """A body that cannot be decoded or decompressed, so that nobody can say what is in it: where, and why not."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        """Return `path:line: skipped: why`."""
        return f"{self.path}:{self.line}: skipped: {self.reason}"


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan of a file came to, each in order of lines."""

    leaks: list[Leak]
    unopened: list[Unopened]


class Skipped(ValueError):
    """A file has more in it than is looked into; the message says what."""


@dataclass(slots=True)
class _Work:
    """What may still be looked at in a file."""

    characters: int = field(default_factory=lambda: MOST_CHARACTERS)
    values: int = field(default_factory=lambda: MOST_VALUES)
    unopened: dict[Keypath, str] = field(default_factory=dict)

    def spend(self, characters: int = 0) -> None:
        self.characters -= characters
        self.values -= 1
        if self.characters < 0 or self.values < 0:
            raise Skipped("its values, with aliases, are more than are looked into")


@dataclass(frozen=True, slots=True)
class _Hit:
    """A leak in a value: the line of the value's text, counted from 0."""

    keypath: Keypath
    line: int
    kind: str
    text: str


@dataclass(slots=True)
class _Walk:
    sought: Sought
    work: _Work = field(default_factory=_Work)
    learned: list[str] = field(default_factory=list)
    encodings: dict[Keypath, str] = field(default_factory=dict)
    """What the headers beside a body say that it is compressed with."""


def files_under(paths: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Return the files to scan, in order, and what is no file, as messages; `BadInput` for a path that is not there."""
    found: list[Path] = []
    skipped: list[str] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(
                file
                for file in path.rglob("*")
                if not _suffixes(file).isdisjoint(SUFFIXES) and not file.is_dir()
            )
        elif path.exists() or path.is_symlink():
            inside = [path]
        else:
            raise BadInput(f"{path}: there is no such file or folder")
        for file in inside:
            problem = _special(file)
            if problem is None:
                found.append(file)
            else:
                skipped.append(f"{file}: skipped: {problem}")
    return found, skipped


def _suffixes(path: Path) -> set[str]:
    """Return how a name ends, in small letters; `.env`, `.env.local` and `.env.production` are files of settings."""
    ends = {path.suffix.lower()}
    return ends | {".env"} if path.name.lower() == ".env" or path.name.lower().startswith(".env.") else ends


def _special(path: Path) -> str | None:
    """Return what a path is that is no file; reading it might never end."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return link_problem(error, path) or (error.strerror or str(error)).lower()
    if stat.S_ISREG(mode):
        return None
    kinds = (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((name for is_one, name in kinds if is_one(mode)), "no regular file")


def scan(path: Path, own: OwnSecrets = NO_OWN) -> list[Leak]:
    """Return the leaks of a file: what `scanned` finds in what can be opened."""
    return scanned(path, own).leaks


def scanned(path: Path, own: OwnSecrets = NO_OWN) -> Scanned:
    """Return what is in a file; `BadInput` if it cannot be read, `Skipped` if it is too large."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise Skipped(f"{size} bytes are more than the {LARGEST} that are looked into")
        source = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {why_unreadable(error, path)}") from error
    try:
        text = _text(source)
    except Undecodable as error:
        return Scanned([], [Unopened(path, 1, str(error))])
    try:
        return _scanned(path, text, Sought(own=own), len(source))
    except Tangled as error:
        raise Skipped(str(error)) from None


def _scanned(path: Path, text: str, sought: Sought, size: int) -> Scanned:
    document = None if _suffixes(path) & _LINES else _document(text, path, size)
    if not isinstance(document, Document) or not isinstance(document.value, dict | list):
        unread = [document] if isinstance(document, Unopened) and _ENCODED in text else []
        return Scanned(sorted(set(_in_text(path, text, sought))), unread)
    found = list(_in_comments(path, text, sought))
    work = _Work()
    hits = list(_hits(document.value, sought, work))
    if not hits and not work.unopened:
        return Scanned(sorted(set(found)), [])
    places = Lines(text)
    placed = {_placed(path, places, hit) for hit in hits}
    lines = {leak.line for leak in placed}
    return Scanned(
        sorted({*(leak for leak in found if leak.line not in lines), *placed}),
        sorted(Unopened(path, places.at(keypath), reason) for keypath, reason in work.unopened.items()),
    )


def _in_comments(path: Path, text: str, sought: Sought) -> Iterator[Leak]:
    """Yield what is in comments; what looks like one within a value may be in it, too."""
    if path.suffix.lower() in _WITHOUT_COMMENTS or "#" not in text:
        return
    comments = (_COMMENT.search(line) for line in text.split("\n"))
    yield from _in_text(
        path, "\n".join("" if comment is None else comment[0] for comment in comments), sought
    )


def _document(text: str, path: Path, size: int) -> Document | Unopened:
    """Return the values of a text, or why it has none: it is large, no YAML, or not of the kind that cassettes are."""
    if size > LARGEST_YAML:
        why = f"{size} bytes are more than the {LARGEST_YAML} whose values are looked at one by one"
        return Unopened(path, 1, f"its encoded values cannot be read: {why}")
    try:
        return loaded(text, path)
    except BadCassette as error:
        place, _, problem = str(error).removeprefix(f"{path}:").partition(": ")
        return Unopened(
            path, int(place) if place.isdecimal() else 1, f"its encoded values cannot be read: {problem}"
        )


def _in_text(path: Path, text: str, sought: Sought) -> Iterator[Leak]:
    if redacted_body(text, sought.own) != text:
        lines = [*enumerate(text.split("\n"), start=1)]
        # What goes over lines is told at the first one.
        changed = [(number, line) for number, line in lines if redacted_body(line, sought.own) != line]
        for number, line in changed or lines[:1]:
            yield Leak(path, number, _OF_TEAM, line.strip()[:_SHOWN])
    for finding in apart(read(text, sought)):
        start, end = finding.ranges[0]
        yield Leak(path, text.count("\n", 0, start) + 1, finding.kind, text[start:end][:_SHOWN])


def _hits(value: object, sought: Sought, work: _Work) -> Iterator[_Hit]:
    """Yield what is in a document; of a cassette, interaction by interaction, with what each was sent with."""
    interactions = value.get(_INTERACTIONS) if isinstance(value, dict) else None
    if not isinstance(interactions, list):
        yield from _walk(value, (), _Walk(sought, work))
        return
    for number, entry in enumerate(interactions):
        first = _Walk(sought, work)
        hits = list(_walk(entry, (_INTERACTIONS, number), first))
        keys = learned(first.learned)
        if keys:
            hits = list(_walk(entry, (_INTERACTIONS, number), _Walk(Sought(keys, sought.own), work)))
        yield from hits
    assert isinstance(value, dict), "it has interactions"
    yield from _walk(
        {key: item for key, item in value.items() if key != _INTERACTIONS}, (), _Walk(sought, work)
    )


def _walk(value: object, keypath: Keypath, walk: _Walk) -> Iterator[_Hit]:
    walk.work.spend()
    if isinstance(value, dict):
        texts = {str(key): item for key, item in value.items() if isinstance(item, str)}
        named = next((texts[key] for key in ("name", "key", "header") if key in texts), "")
        if encoding := _content_encoding(value.get("headers")):
            walk.encodings |= {
                (*keypath, *rest): encoding for rest in (("body",), ("body", "string"), ("content", "text"))
            }
        for key, item in value.items():
            if isinstance(key, str) and len(key) >= LEAST_RANDOM:
                yield from _in_value(key, (*keypath, key, _OF_KEY), walk)
            yield from _member(str(key), item, (*keypath, str(key)), walk, named if key == "value" else "")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(item, (*keypath, number), walk)
    elif isinstance(value, str | bytes):
        yield from _in_value(value, keypath, walk)


def _member(key: str, value: object, keypath: Keypath, walk: _Walk, named: str) -> Iterator[_Hit]:
    """Yield what is in a member; `named` is what a `name` beside a `value` says."""
    own = walk.sought.own
    of_headers = len(keypath) > 1 and keypath[-2] in ("headers", "cookies")
    name = named or key
    telling = is_secret_name(name, own) or ((of_headers or bool(named)) and is_secret_header(name, own))
    for number, item in enumerate(value if isinstance(value, list) else [value]):
        place = (*keypath, number) if isinstance(value, list) else keypath
        if isinstance(item, int | float) and not isinstance(item, bool) and item:
            if may_be_number(name, str(item), own):
                yield _Hit(keypath, 0, f"a value named {name!r}", str(item))
        elif not isinstance(item, str | bytes):
            yield from _walk(item, place, walk)
        elif telling or (is_vague_name(key) and looks_random(_as_written(item))):
            text = _as_written(item)
            if not is_placeholder(text):
                walk.learned += (text, *keys_in_header(name, text))
                yield _Hit(keypath, 0, f"a value named {name!r}", bare(text))
        else:
            yield from _in_value(item, place, walk)


def _in_value(value: str | bytes, keypath: Keypath, walk: _Walk) -> Iterator[_Hit]:
    try:
        text = _text(value, walk.encodings.get(keypath, ""))
    except Undecodable as error:
        walk.work.unopened[keypath] = str(error)
        text = _as_written(value)
    walk.work.spend(len(text))
    found: list[Found]
    if keypath and keypath[-1] in ("uri", "url"):
        found = read_address(text, walk.sought)
    elif len(keypath) > 1 and "headers" in keypath[-3:]:
        found = read_header("", text, walk.sought)
    else:
        found = read(text, walk.sought)
    walk.learned += (finding.learned for finding in found)
    for finding in apart(found):
        start, end = finding.ranges[0]
        kind = finding.kind if len(finding.ranges) == 1 else f"{finding.kind}, in pieces of a stream"
        yield _Hit(keypath, text.count("\n", 0, start), kind, text[start:end])
    if redacted_body(text, walk.sought.own) != text:
        yield _Hit(keypath, 0, _OF_TEAM, text)


def _content_encoding(headers: object) -> str:
    """Return what headers say a body is compressed with: a mapping, or a list of names and values."""
    pairs: list[tuple[object, object]] = [*headers.items()] if isinstance(headers, dict) else []
    if isinstance(headers, list):
        pairs = [(each.get("name"), each.get("value")) for each in headers if isinstance(each, dict)]
    values = [value for name, value in pairs if str(name).lower() == "content-encoding"]
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return ", ".join(each for each in flat if isinstance(each, str))


def _as_written(value: str | bytes) -> str:
    """Return a value as text, whatever it is compressed with."""
    return value if isinstance(value, str) else as_text(value).text


def _text(value: str | bytes, encoding: str = "") -> str:
    """Return a value as text; a compressed body is opened, and `Undecodable` says why it cannot be."""
    if isinstance(value, str) and "\0" not in value:
        return value
    value = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    try:
        value = opened(value, encoding, MOST_CHARACTERS)
        for _ in range(MOST_COMPRESSED):
            mark = next((name for mark, name in _MARKS.items() if value.startswith(mark)), None)
            if mark is None:
                break
            value = opened(value, mark, MOST_CHARACTERS)
    except TooLarge as error:
        raise Undecodable(f"a compressed body has {error} in it") from None
    return as_text(value).text


def _placed(path: Path, lines: Lines, hit: _Hit) -> Leak:
    start = lines.at(hit.keypath)
    if lines.is_block(hit.keypath):
        start += 1 + hit.line
    return Leak(path, start, hit.kind, hit.text[:_SHOWN])
