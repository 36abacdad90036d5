"""Scans files for credentials: this package's and vcrpy's cassettes, or any text.

A cassette is scanned exchange by exchange, with the recorder's rules. Any other file is scanned as a whole, and a
secret's name followed by a value also counts as a credential. A random-looking value after a word such as "token"
causes a warning. Special files, bodies that cannot be decoded and files above the size limit are reported as skipped.
"""

from __future__ import annotations

import re
import stat
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from math import log2
from pathlib import Path
from typing import Final

from statek_sim.cassettes.bodies import Undecodable, as_text, opened
from statek_sim.cassettes.document import parse
from statek_sim.cassettes.exchange import Exchange, header, media_type
from statek_sim.cassettes.redaction import sent_with
from statek_sim.cassettes.secret_detection import (
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
from statek_sim.cassettes.secret_patterns import NO_OWN, OwnSecrets, is_secret_variable, rows
from statek_sim.errors import BadCassette, BadInput
from statek_sim.input_files import link_problem, why_unreadable

SUFFIXES: Final = (
    ".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".toml", ".har", ".txt", ".log", ".env", ".ini",
)  # fmt: skip
"""Suffixes of the files scanned in a folder, case-insensitive."""
_WITH_NAMES: Final = frozenset({".toml", ".env", ".ini", ".yaml", ".yml"})
"""Suffixes of files whose lines contain names and values."""
LARGEST: Final = 32 * 1024 * 1024
"""Maximum size of a scanned file, in bytes."""
_SHOWN: Final = 4
"""Number of a credential's characters shown in a report."""
_ENCODED: Final = "!!binary"
"""The YAML tag of values that must be decoded before they can be scanned."""
_NO_TEXT: Final = ("image/", "audio/", "video/")
"""Prefixes of non-text content types."""
_WITH_PLAIN_TEXT: Final = {
    "application/grpc", "application/protobuf", "application/vnd.amazon.eventstream", "application/x-protobuf",
}  # fmt: skip
"""Binary content types whose strings are not compressed."""
_LEAST_ODD: Final = 16
_LONGEST_ODD: Final = 400
"""Minimum and maximum length of a value that may be suspicious."""
_BEFORE: Final = 40
"""Number of characters before a value in which a word for a secret makes it suspicious."""
_LEAST_ENTROPY: Final = 3.5
"""Minimum entropy of a random-looking value, in bits per character; 16 different characters have 4."""


@dataclass(frozen=True, slots=True, order=True)
class Leak:
    """A credential or a suspicious value: its location, its kind, and its first characters (`start`)."""

    path: Path
    line: int
    kind: str
    start: str
    is_warning: bool = False

    def __str__(self) -> str:
        """Return `path:line: kind: first characters`."""
        return f"{self.path}:{self.line}: {'warning: ' if self.is_warning else ''}{self.kind}: {self.start}…"


@dataclass(frozen=True, slots=True, order=True)
class Unopened:
    """A body that was not scanned because it cannot be decoded: its location, and the reason."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        """Return `path:line: skipped: reason`."""
        return f"{self.path}:{self.line}: skipped: {self.reason}"


@dataclass(frozen=True, slots=True)
class Scanned:
    """The results of scanning a file, sorted by line."""

    leaks: list[Leak]
    unopened: list[Unopened]
    warnings: list[Leak] = field(default_factory=list)


class _LineNumbers:
    """Converts positions in a string to zero-based line numbers."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends: list[int] | None = None

    def of(self, place: int) -> int:
        return bisect_left(self._all(), place)

    def start(self, number: int) -> int:
        return 0 if number == 0 else self._all()[number - 1] + 1

    def _all(self) -> list[int]:
        if self._ends is None:
            self._ends = [match.start() for match in re.finditer("\n", self._text)]
        return self._ends


class Skipped(ValueError):
    """Raised for a file that exceeds the size limit; the message contains both sizes."""


def files_under(paths: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """Return the files to scan, in order, and a message for each special file in a folder.

    Raises `BadInput` for a path that does not exist or is a special file, such as a pipe, which might never end.
    """
    found: list[Path] = []
    skipped: list[str] = []
    for path in paths:
        if not path.is_dir():
            if not path.exists() and not path.is_symlink():
                raise BadInput(f"{path}: no such file or folder")
            if (problem := _special(path)) is not None:
                raise BadInput(f"{path}: expected a file or folder, found {problem}")
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
    """Return a file's suffixes in lower case; files such as `.env` and `.env.local` have the suffix `.env`."""
    ends = {path.suffix.lower()}
    return ends | {".env"} if path.name.lower() == ".env" or path.name.lower().startswith(".env.") else ends


def _special(path: Path) -> str | None:
    """Return the kind of special file, or None for a regular file."""
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
    return next((name for is_one, name in kinds if is_one(mode)), "not a regular file")


def scan(path: Path, own: OwnSecrets = NO_OWN) -> Scanned:
    """Return the findings in a file; raises `BadInput` if the file is unreadable, or `Skipped` if it is too large."""
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise Skipped(f"{size} bytes, more than the limit of {LARGEST}")
        source = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {why_unreadable(error, path)}") from error
    text = as_text(source)
    if text is None:
        return Scanned([], [Unopened(path, 1, "not UTF-8 text")])
    unopened: list[Unopened] = []
    try:
        exchanges = parse(source, path) if "interactions" in text else []
    except BadCassette as error:
        exchanges = []
        if _ENCODED in text:
            unopened.append(Unopened(path, *_place(error, path)))
    if exchanges:
        numbers = _LineNumbers(text)
        leaks = {leak for one in exchanges for leak in _in_exchange(path, text, numbers, one, own, unopened)}
        reported = {leak.line for leak in leaks}
        leaks |= {leak for leak in _in_comments(path, text, Sought(own=own)) if leak.line not in reported}
    else:
        leaks = {*_in_lines(path, text, Sought(own=own))}
    return Scanned(sorted(leaks), sorted(unopened), _odd(path, text, {leak.line for leak in leaks}))


def _place(error: BadCassette, path: Path) -> tuple[int, str]:
    """Return the line and the reason from the error for a cassette that cannot be parsed."""
    place, _, problem = str(error).removeprefix(f"{path}:").partition(": ")
    return int(place) if place.isdecimal() else 1, f"cannot read its encoded values: {problem}"


# -- cassettes -----------------------------------------------------------------------------------------------------


def _in_exchange(
    path: Path, text: str, lines: _LineNumbers, exchange: Exchange, own: OwnSecrets, unopened: list[Unopened]
) -> Iterator[Leak]:
    """Yield the findings in one exchange, including repetitions of the secrets sent with the request."""
    sent, received = exchange.request, exchange.response
    sought = Sought(sent_with(sent.uri, sent.headers, own), own)
    start = lines.start(exchange.line - 1)
    texts = [(sent.uri, in_address(sent.uri, sought)), (received.reason, in_text(received.reason, sought))]
    for message in (sent, received):
        texts += [(value, in_header(name, value, sought)) for name, value in message.headers]
        kind = media_type(message.headers)
        try:
            content = opened(message.body, header(message.headers, "content-encoding") or "")
            body = as_text(content)
            if body is None and kind in _WITH_PLAIN_TEXT:
                body = content.decode("latin-1")
            if body is None and not kind.startswith(_NO_TEXT):
                raise Undecodable("the body is not UTF-8 text")
        except Undecodable as error:
            unopened.append(Unopened(path, exchange.line, str(error)))
            continue
        texts.append((body or "", in_body(body or "", sought, kind)))
    for part, found in texts:
        for finding in found:
            value = part[finding.start : finding.end]
            if finding.replacement and not is_placeholder(value):
                at = text.find(value.split("\n")[0], start)
                line = exchange.line if at < 0 else lines.of(at) + 1
                yield Leak(path, line, finding.kind, bare(value)[:_SHOWN])


def _in_comments(path: Path, text: str, sought: Sought) -> Iterator[Leak]:
    """Yield findings in the part of each line after `#`, which is usually a comment."""
    for number, line in enumerate(text.split("\n"), start=1) if "#" in text else ():
        if "#" in line:
            comment = line[line.index("#") :]
            for finding in in_text(comment, sought):
                yield Leak(path, number, finding.kind, comment[finding.start : finding.end][:_SHOWN])


# -- other files -------------------------------------------------------------------------------------------------


@cache
def _setting() -> re.Pattern[str]:
    return re.compile(
        r"^[ \t-]*+(?:export[ \t]++)?[\"']?(?P<name>[\w.-]{1,100})[\"']?[ \t]*+[=:][ \t]*+(?:\r?\n[ \t]*+-[ \t]++)?"
        r"(?!\d++[ \t]*+$)[\"']?(?P<value>[^\s\"'#][^\r\n\"']*+)",
        re.MULTILINE,
    )


_WORD: Final = re.compile(r"[^\s\"'<>]++")
_MEMBER: Final = re.compile(r"\\?\"(?P<name>[\w.-]{1,100})\\?\"[ \t]*+:[ \t]*+\\?\"(?P<value>[^\"\\]++)")
"""A string member of JSON inside a string, escaped or not."""


def _in_lines(path: Path, text: str, sought: Sought) -> Iterator[Leak]:
    lines = _LineNumbers(text)
    found = [*in_body(text, sought), *_in_addresses(text, sought)]
    if _suffixes(path) & _WITH_NAMES:
        found += [
            Finding(*match.span("value"), f"a value named {match['name']!r}")
            for pattern in (_setting(), _MEMBER)
            for match in pattern.finditer(text)
            if is_secret_variable(match["name"]) or sought.own.is_name(match["name"])
        ]
    for finding in apart(found):
        value = text[finding.start : finding.end]
        if finding.replacement and not is_placeholder(value):
            yield Leak(path, lines.of(finding.start) + 1, finding.kind, bare(value)[:_SHOWN])


def _in_addresses(text: str, sought: Sought) -> Iterator[Finding]:
    for word in _WORD.finditer(text):
        if "://" in word[0] or "?" in word[0]:
            for each in in_address(word[0], sought):
                yield replace(each, start=word.start() + each.start, end=word.start() + each.end)


@cache
def _before_odd_value() -> re.Pattern[str]:
    return re.compile(
        r"(?:passw(?:or)?d|passphrase|secret|token|api[_ -]?key|bearer|basic|credentials?)[^\w\r\n]{1,6}\Z",
        re.IGNORECASE,
    )


def _odd(path: Path, text: str, known: set[int]) -> list[Leak]:
    """Return random-looking values directly after a word for secrets, on lines that are not in `known`."""
    found: list[Leak] = []
    lines = _LineNumbers(text)
    for start, end in rows(text):
        if end - start > _LONGEST_ODD:
            continue
        # A run may contain the name, the sign `=` and the value.
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
