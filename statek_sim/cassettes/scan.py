"""Look for credentials in files that are already there: cassettes of ours, of vcrpy, or any YAML, JSON and text.

Texts are read by the recorder's rule, and the secrets that one interaction was sent with are looked for in all of it.
A file that is no YAML is read as one text; in files of settings the names of settings count, too. What only looks odd,
a random value beside the word for a secret, is a warning. What is not looked into is told: special files, and files
with more in them than the bounds here.
"""

from __future__ import annotations

import re
import stat
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from math import log2
from pathlib import Path
from typing import Final

from statek_sim.cassettes.bodies import TooLarge, Undecodable, as_text, opened
from statek_sim.cassettes.redaction import sent_with
from statek_sim.cassettes.secret_finder import (
    Finding,
    Sought,
    apart,
    bare,
    in_address,
    in_body,
    in_header,
    in_text,
    is_placeholder,
)
from statek_sim.cassettes.secret_rules import (
    NO_OWN,
    OwnSecrets,
    is_opaque,
    is_secret_member,
    is_secret_variable,
    rows,
)
from statek_sim.cassettes.yaml_values import Document, Keypath, loaded
from statek_sim.errors import BadCassette, BadInput
from statek_sim.input_files import link_problem, why_unreadable

SUFFIXES: Final = (
    ".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".toml", ".har", ".txt", ".log", ".env", ".ini",
)  # fmt: skip
"""Files of a folder that are scanned, in any case of letters; a file that is named itself always is."""
_SETTINGS: Final = frozenset({".toml", ".env", ".ini"})
_LINES: Final = frozenset({".jsonl", ".ndjson", ".txt", ".log", *_SETTINGS})
_WITH_NAMES: Final = _SETTINGS | {".yaml", ".yml"}
"""Files whose lines are names and values, where they are read as texts."""
_WITHOUT_COMMENTS: Final = frozenset({".json", ".har"})
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
_INTERACTIONS: Final = "interactions"
_ENCODED: Final = "!!binary"
"""What has this in it shows its values to nobody who reads it as text."""
_LEAST_ODD: Final = 16
_LONGEST_ODD: Final = 400
"""Characters of a value that may look odd."""
_BEFORE: Final = 40
"""Characters before it in which the word for a secret stands."""
_LEAST_ENTROPY: Final = 3.5
"""Bits per character of a value that looks random; 16 different characters have 4."""


@dataclass(frozen=True, slots=True, order=True)
class Leak:
    """A credential, or what only looks odd: where, what it seems to be, and its first characters."""

    path: Path
    line: int
    kind: str
    start: str
    is_warning: bool = False

    def __str__(self) -> str:
        """Return `path:line: what`."""
        return f"{self.path}:{self.line}: {'warning: ' if self.is_warning else ''}{self.kind}: {self.start}…"


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
    warnings: list[Leak] = field(default_factory=list)


class _LineNumbers:
    """The lines, from 0, of places in a text: counted once, however many places there are."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: list[int] | None = None

    def of(self, place: int) -> int:
        if self._ends is None:
            self._ends = [match.start() for match in re.finditer("\n", self._text)]
        return bisect_left(self._ends, place)


class Skipped(ValueError):
    """A file has more in it than is looked into; the message says what."""


def files_under(paths: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Return the files to scan, in order, and what is no file in a folder, as messages.

    `BadInput` for a path that is not there, or that is no file itself: reading a pipe might never end.
    """
    found: list[Path] = []
    skipped: list[str] = []
    for path in paths:
        if not path.is_dir():
            if not path.exists() and not path.is_symlink():
                raise BadInput(f"{path}: there is no such file or folder")
            if (problem := _special(path)) is not None:
                raise BadInput(f"{path}: expected a file or folder, it is {problem}")
            found.append(path)
            continue
        for file in sorted(path.rglob("*")):
            if _suffixes(file).isdisjoint(SUFFIXES) or file.is_dir():
                continue
            if (problem := _special(file)) is None:
                found.append(file)
            else:
                skipped.append(f"{file}: skipped: {problem}")
    return found, skipped


def _suffixes(path: Path) -> set[str]:
    """Return how a name ends, in small letters; `.env`, `.env.local` and `.env.production` are files of settings."""
    ends = {path.suffix.lower()}
    return ends | {".env"} if path.name.lower() == ".env" or path.name.lower().startswith(".env.") else ends


def _special(path: Path) -> str | None:
    """Return what a path is that is no file."""
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
    document = None if _suffixes(path) & _LINES else _document(text, path, size)
    if isinstance(document, Document) and isinstance(document.value, dict | list):
        return _in_document(path, text, document, Sought(own=own))
    unread = [document] if isinstance(document, Unopened) and _ENCODED in text else []
    leaks = sorted({*_in_lines(path, text, Sought(own=own))})
    return Scanned(leaks, unread, _odd(path, text, {leak.line for leak in leaks}))


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


# -- files that are one text ---------------------------------------------------------------------------------------


@cache
def _setting() -> re.Pattern[str]:
    return re.compile(
        r"^[ \t]*+(?:export[ \t]++)?(?P<name>[\w.-]{1,100})[ \t]*+[=:][ \t]*+[\"']?(?P<value>[^\s\"'#][^\r\n\"']*+)",
        re.MULTILINE,
    )


def _in_lines(path: Path, text: str, sought: Sought) -> Iterator[Leak]:
    lines = _LineNumbers(text)
    found = in_body(text, sought)
    if _suffixes(path) & _WITH_NAMES:
        found += [
            Finding(*match.span("value"), f"a value named {match['name']!r}")
            for match in _setting().finditer(text)
            if is_secret_variable(match["name"]) or sought.own.is_name(match["name"])
        ]
    for finding in apart(found):
        value = text[finding.start : finding.end]
        if finding.replacement and not is_placeholder(value):
            yield Leak(path, lines.of(finding.start) + 1, finding.kind, bare(value)[:_SHOWN])


@cache
def _before_odd_value() -> re.Pattern[str]:
    return re.compile(
        r"(?:passw(?:or)?d|passphrase|secret|token|api[_ -]?key|bearer|basic|credentials?)[^\w\r\n]{1,6}\Z",
        re.IGNORECASE,
    )


def _odd(path: Path, text: str, known: set[int]) -> list[Leak]:
    """Return random-looking values directly behind the word for a secret, on lines where nothing else is told."""
    found: list[Leak] = []
    lines = _LineNumbers(text)
    for start, end in rows(text):
        if end - start > _LONGEST_ODD:
            continue
        # The sign between a name and its value may be one of a value, too.
        name, sign, value = text[start:end].partition("=")
        before = (
            f"{text[max(0, start - _BEFORE) : start]}{name}{sign}"
            if sign
            else text[max(0, start - _BEFORE) : start]
        )
        value = value if sign else name
        if _before_odd_value().search(before) and _is_random(value):
            line = lines.of(start) + 1
            if line not in known:
                found.append(Leak(path, line, "looks like a secret", value[:_SHOWN], is_warning=True))
    return sorted(set(found))


def _is_random(value: str) -> bool:
    if (
        len(value) < _LEAST_ODD
        or not (any(map(str.isdigit, value)) and any(map(str.isalpha, value)))
        or is_placeholder(value)
    ):
        return False
    size = len(value)
    return -sum(count / size * log2(count / size) for count in Counter(value).values()) >= _LEAST_ENTROPY


# -- files with values ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Hit:
    """A leak in a value: the line of the value's text, counted from 0."""

    keypath: Keypath
    line: int
    kind: str
    text: str


@dataclass(slots=True)
class _Walk:
    """What is left to look at in a document, and what is known while it is walked through."""

    sought: Sought
    characters: int = MOST_CHARACTERS
    values: int = MOST_VALUES
    unopened: dict[Keypath, str] = field(default_factory=dict)
    encodings: dict[Keypath, str] = field(default_factory=dict)
    """What the headers beside a body say that it is compressed with."""

    def spend(self, characters: int = 0) -> None:
        self.characters -= characters
        self.values -= 1
        if self.characters < 0 or self.values < 0:
            raise Skipped("its values, with aliases, are more than are looked into")


def _in_document(path: Path, text: str, document: Document, sought: Sought) -> Scanned:
    walk = _Walk(sought)
    hits = list(_hits(document.value, walk))
    comments = [] if path.suffix.lower() in _WITHOUT_COMMENTS else sorted({*_in_comments(path, text, sought)})
    if not hits and not walk.unopened:
        return Scanned(comments, [], _odd(path, text, {leak.line for leak in comments}))
    placed = {_placed(path, document, hit) for hit in hits}
    lines = {leak.line for leak in placed}
    leaks = sorted({*(leak for leak in comments if leak.line not in lines), *placed})
    unopened = sorted(
        Unopened(path, document.line(keypath), reason) for keypath, reason in walk.unopened.items()
    )
    return Scanned(leaks, unopened, _odd(path, text, {leak.line for leak in leaks}))


def _in_comments(path: Path, text: str, sought: Sought) -> Iterator[Leak]:
    """Yield what is in comments; what looks like one within a value may be in it, too."""
    for number, line in enumerate(text.split("\n"), start=1) if "#" in text else ():
        if "#" in line:
            comment = line[line.index("#") :]
            for finding in in_text(comment, sought):
                yield Leak(path, number, finding.kind, comment[finding.start : finding.end][:_SHOWN])


def _hits(value: object, walk: _Walk) -> Iterator[_Hit]:
    """Yield what is in a document; of a cassette, interaction by interaction, with what each was sent with."""
    interactions = value.get(_INTERACTIONS) if isinstance(value, dict) else None
    if not isinstance(interactions, list):
        yield from _walk(value, (), walk, "")
        return
    own = walk.sought.own
    for number, entry in enumerate(interactions):
        walk.sought = Sought(_sent(entry, own), own)
        yield from _walk(entry, (_INTERACTIONS, number), walk, "")
    walk.sought = Sought(own=own)
    assert isinstance(value, dict), "it has interactions"
    yield from _walk({key: item for key, item in value.items() if key != _INTERACTIONS}, (), walk, "")


def _sent(entry: object, own: OwnSecrets) -> tuple[str, ...]:
    """Return the secrets that a recorded request was sent with."""
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict):
        return ()
    uri, headers = request.get("uri"), request.get("headers")
    pairs = tuple(
        (str(name), value)
        for name, values in (headers.items() if isinstance(headers, dict) else ())
        for value in (values if isinstance(values, list) else [values])
        if isinstance(value, str)
    )
    return sent_with(uri if isinstance(uri, str) else "", pairs, own)


def _walk(value: object, keypath: Keypath, walk: _Walk, name: str) -> Iterator[_Hit]:
    """Yield what is in a value; `name` is that of the member that it is, or that its list is."""
    walk.spend()
    if isinstance(value, dict):
        if encoding := _content_encoding(value.get("headers")):
            walk.encodings |= {
                (*keypath, *rest): encoding for rest in (("body",), ("body", "string"), ("content", "text"))
            }
        named = next((value[key] for key in ("name", "key") if isinstance(value.get(key), str)), "")
        for key, item in value.items():
            if isinstance(key, str) and len(key) > _LEAST_ODD:
                yield from _in_value(key, (*keypath, key), walk, "")
            # Browsers' archives have lists of headers with a name and a value.
            of_list = key == "value" and keypath[-2:-1] in (
                ("headers",),
                ("cookies",),
                ("queryString",),
                ("params",),
            )
            if not is_opaque(str(key)):
                yield from _walk(item, (*keypath, str(key)), walk, named if of_list else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(item, (*keypath, number), walk, name)
    elif isinstance(value, str | bytes):
        yield from _in_value(value, keypath, walk, name)


def _in_value(value: str | bytes, keypath: Keypath, walk: _Walk, name: str) -> Iterator[_Hit]:
    sought = walk.sought
    try:
        text = _text(value, walk.encodings.get(keypath, ""))
    except Undecodable as error:
        walk.unopened[keypath] = str(error)
        return
    walk.spend(len(text))
    found: Iterable[Finding]
    if "headers" in keypath[-4:-1]:
        found = in_header(name, text, sought)
    elif name and text and (is_secret_member(name) or sought.own.is_name(name)):
        found = [Finding(0, len(text), f"a value named {name!r}")]
    elif name in ("uri", "url"):
        found = in_address(text, sought)
    else:
        found = in_body(text, sought)
    lines = _LineNumbers(text)
    for finding in found:
        value_found = text[finding.start : finding.end]
        if finding.replacement and not is_placeholder(value_found):
            yield _Hit(keypath, lines.of(finding.start), finding.kind, value_found)


def _content_encoding(headers: object) -> str:
    """Return what headers say a body is compressed with: a mapping, or a list of names and values."""
    pairs: list[tuple[object, object]] = [*headers.items()] if isinstance(headers, dict) else []
    if isinstance(headers, list):
        pairs = [(each.get("name"), each.get("value")) for each in headers if isinstance(each, dict)]
    values = [value for name, value in pairs if str(name).lower() == "content-encoding"]
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return ", ".join(each for each in flat if isinstance(each, str))


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
    text = as_text(value)
    return "" if text.binary else text.text


def _placed(path: Path, document: Document, hit: _Hit) -> Leak:
    start = document.line(hit.keypath)
    if document.is_block(hit.keypath):
        start += 1 + hit.line
    return Leak(path, start, hit.kind, bare(hit.text)[:_SHOWN])
