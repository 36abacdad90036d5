"""Finds secrets in text, headers, URLs and bodies, for the recorder, `cassette scan` and displayed text.

A secret is one of the following:

- a known value, in common encodings
- a header, query parameter, cookie, form field or JSON member whose name denotes a secret
- a string that matches a published key pattern with a fixed prefix

`secret_patterns.toml` lists the names and patterns. Prose, code and tables are not searched for names. Numbers,
signatures, encrypted text, log probabilities and lines of Base64 are not secrets. vcrpy's own filters check only names
at the top level of a body, and rewrite the body; here, all other bytes are unchanged.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus, unquote_plus

from statek_sim.cassettes.json_strings import JsonString, columns, first_sign, is_json, json_strings
from statek_sim.cassettes.secret_patterns import (
    NO_OWN,
    OwnSecrets,
    is_secret_header,
    is_secret_member,
    is_secret_parameter,
    is_secret_variable,
    shaped,
)

PLACEHOLDER: Final = "REDACTED"
"""What replaces a secret in a cassette."""
KNOWN: Final = "a known secret"

LEAST_KNOWN: Final = 6
"""The minimum length of a known value; a plain word or number must have eight characters."""
_WHOLE_WORDS: Final = 12
"""Known values with fewer characters are found only as separate words."""
_PROTOCOL: Final = frozenset(
    {
        "anthropic", "application", "assistant", "completion", "completions", "content", "developer", "embedding",
        "function", "functions", "lm-studio", "localhost", "message", "messages", "no-key", "not-needed", "ollama",
        "openai", "response", "responses", "subject", "thinking", "tool_use", "username",
    }
)  # fmt: skip
"""Words that are never secrets: dummy keys, and words common in bodies."""
_PLACEHOLDERS: Final = re.compile(
    r"(?:bearer |basic |token )?(?:\[?['\"]?(?:redacted|filtered|scrubbed|removed|hidden|masked|none|null|nil|true|"
    r"false|undefined|string|xxx+|(?:[a-z]{1,20}[_-]){0,4}(?:dummy|example|fake|mock|placeholder|test)(?:[_-][a-z]{1,20}){0,4})"
    r"['\"]?\]?|[*x.•…-]+|<[^<>]*>|\$?\{\{?[^{}]*\}?\}|\$[A-Z_]+)?",
    re.IGNORECASE,
)
_MEMBER: Final = re.compile(r'"([^"\\]{1,80}+)"\s*+:\s*+(?=["\[])')
_PARAMETER: Final = re.compile(r"(?<=[?&#])(?P<name>[^&=#?]++)=(?P<value>[^&#]*+)")
_FIELD: Final = re.compile(r"(?:\A|(?<=&))(?P<name>[^&=]++)=(?P<value>[^&]*+)")
_LOGIN: Final = re.compile(r"[A-Za-z][\w+.-]{0,40}://(?P<user>[^/?#@:]*):(?P<password>[^/?#]*)@")
_COOKIE: Final = re.compile(r"(?:\A|(?<=;))[^=;]++=\s*+(?P<value>[^;]++)")
_PART: Final = re.compile(
    r"^content-disposition:(?P<line>[^\r\n]*+)\r?\n(?:(?!--)[^\r\n]++\r?\n)*\r?\n",
    re.IGNORECASE | re.MULTILINE,
)
_NAME_OF_PART: Final = re.compile(r"[;\s]name=\"?(?P<name>[^\";]{1,200})", re.IGNORECASE)
FORM: Final = "application/x-www-form-urlencoded"
PARTS: Final = "multipart/"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A secret in a string: its position `text[start:end]`, its kind, and its replacement."""

    start: int
    end: int
    kind: str
    replacement: str = PLACEHOLDER


@dataclass(frozen=True, slots=True)
class Sought:
    """Secrets to search for in addition to the general rules: `known` values, and a user's own names and patterns."""

    known: tuple[str, ...] = ()
    own: OwnSecrets = NO_OWN


NOTHING_ELSE: Final = Sought()


def known_values(values: Iterable[str]) -> tuple[str, ...]:
    """Return the values worth searching for, sorted, without ordinary words, short numbers and placeholders."""
    return tuple(sorted({value.strip() for value in values if _is_worth_looking_for(value.strip())}))


def known_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of environment variables or settings whose names denote secrets."""
    return known_values(value for name, value in environment.items() if is_secret_variable(name))


def _is_worth_looking_for(value: str) -> bool:
    if len(value) < LEAST_KNOWN or value.lower() in _PROTOCOL or is_placeholder(value):
        return False
    plain = value.isdigit() or (value.isalpha() and (value.islower() or value.isupper() or value.istitle()))
    return not plain or len(value) >= 8


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder for a secret, such as `REDACTED`, `test_api_key`, `***` or nothing."""
    return _PLACEHOLDERS.fullmatch(unquote_plus(value).strip()) is not None


def bare(value: str) -> str:
    """Return a header's value without its scheme: `abc` for `Bearer abc`."""
    kind, space, rest = value.strip().partition(" ")
    return rest.strip() if space and kind.lower() in ("bearer", "basic", "token", "apikey") else value.strip()


@lru_cache(maxsize=64)
def _forms(known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the known values in common encodings, longest first."""
    return tuple(
        sorted({form for value in known for form in _encodings(value)}, key=lambda form: (-len(form), form))
    )


def _encodings(value: str) -> Iterator[str]:
    yield value
    yield from (quote(value, safe=""), quote(value), quote_plus(value))
    content = value.encode("utf-8", "surrogatepass")
    yield from (encoded(content).decode("ascii").rstrip("=") for encoded in (b64encode, urlsafe_b64encode))
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        # JSON inside a JSON string is escaped twice, and some encoders escape slashes.
        yield from (once, json.dumps(once, ensure_ascii=ascii_only)[1:-1], once.replace("/", "\\/"))


def in_text(text: str, sought: Sought = NOTHING_ELSE) -> list[Finding]:
    """Return the known values, and the matches of key patterns and a user's patterns, disjoint and in order."""
    found = [
        Finding(*span, KNOWN) for form in _forms(sought.known) if form in text for span in _places(text, form)
    ]
    found += [Finding(*each) for each in (*shaped(text), *sought.own.found(text))]
    return apart(found)


def _places(text: str, form: str) -> Iterator[tuple[int, int]]:
    at = text.find(form)
    while at >= 0:
        end = at + len(form)
        around = text[max(0, at - 1) : at], text[end : end + 1]
        if (
            len(form) >= _WHOLE_WORDS
            or not any(each.isalnum() for each in around)
            or text[at - 2 : at] == "\\n"
        ):
            yield at, end
        at = text.find(form, end)


def apart(found: Iterable[Finding]) -> list[Finding]:
    """Return findings sorted by position, with overlapping findings merged."""
    kept: list[Finding] = []
    for each in sorted(found, key=lambda finding: (finding.start, -finding.end, finding.kind == KNOWN)):
        if kept and each.start < kept[-1].end:
            if each.end > kept[-1].end:
                kept[-1] = Finding(kept[-1].start, each.end, kept[-1].kind, kept[-1].replacement)
        else:
            kept.append(each)
    return kept


def replaced(text: str, found: Iterable[Finding]) -> str:
    """Return a string with its findings replaced; they must be disjoint and in order."""
    pieces: list[str] = []
    at = 0
    for each in found:
        pieces += (text[at : each.start], each.replacement)
        at = each.end
    return "".join((*pieces, text[at:]))


def in_header(name: str, value: str, sought: Sought = NOTHING_ELSE) -> list[Finding]:
    """Return the secrets in a header: the whole value if the name denotes a secret, cookies, or secrets in the value.

    In Set-Cookie, only the cookie's value is a secret, not its attributes.
    """
    kind = f"a value named {name!r}"
    if name.lower() == "cookie":
        return [Finding(*match.span("value"), kind) for match in _COOKIE.finditer(value)]
    if name.lower() == "set-cookie":
        cookie = _COOKIE.match(value)
        return [] if cookie is None else [Finding(*cookie.span("value"), kind)]
    if value and (is_secret_header(name) or sought.own.is_name(name)):
        return [Finding(0, len(value), kind)]
    return in_address(value, sought) if "://" in value else in_text(value, sought)


def in_address(uri: str, sought: Sought = NOTHING_ELSE) -> list[Finding]:
    """Return the secrets in a URL: the password, parameters with a secret's name, and secrets in the text."""
    found = in_text(uri, sought)
    if (login := _LOGIN.match(uri)) is not None:
        # Without a password, the user name may be a key.
        group = "password" if login["password"] else "user"
        found += [Finding(*login.span(group), "a password in a URL")] if login[group] else []
    return apart([*found, *_in_pairs(_PARAMETER, uri, sought, "the parameter")])


def _in_pairs(pairs: re.Pattern[str], text: str, sought: Sought, what: str) -> Iterator[Finding]:
    for pair in pairs.finditer(text):
        name = unquote_plus(pair["name"])
        if pair["value"] and (is_secret_parameter(name) or sought.own.is_name(name)):
            yield Finding(*pair.span("value"), f"{what} {name!r}")


def in_body(text: str, sought: Sought = NOTHING_ELSE, media_type: str = "") -> list[Finding]:
    """Return the secrets in a body: in its text, and in form fields or JSON members with a secret's name.

    A secret spread over several pieces of a stream is also found.
    """
    found = in_text(text, sought)
    if media_type == FORM and not text.startswith("{"):
        return apart([*found, *_in_pairs(_FIELD, text, sought, "the field")])
    if media_type.startswith(PARTS):
        return apart([*found, *_in_parts(text, sought)])
    if not is_json(text):
        return apart([*found, *_in_pieces(text, [], sought)]) if "data:" in text else found
    escaped = bool(sought.own.patterns) and "\\" in text
    if not (found or escaped or _may_be_stream(text) or _has_secret_member(text, sought)):
        return []
    strings = json_strings(text)
    found = [each for each in found if _counts(each, text, strings)]
    if escaped:
        found = apart([*found, *_in_escaped(text, strings, sought.own)])
    named = [
        Finding(string.start, string.end, f"a value named {string.name!r}")
        for string in strings
        if string.name and string.start < string.end and _is_secret(string, sought)
    ]
    return apart([*named, *_apart_from(found, named), *_in_pieces(text, strings, sought)])


def _in_escaped(text: str, strings: list[JsonString], own: OwnSecrets) -> Iterator[Finding]:
    """Yield JSON strings in which a user's pattern matches only after unescaping, with their replacements."""
    for string in strings:
        source = text[string.start : string.end]
        if "\\" in source and not string.opaque and not any(own.found(source)):
            plain = _unescaped(source)
            found = apart(Finding(*each) for each in own.found(plain))
            if found:
                clean = json.dumps(replaced(plain, found), ensure_ascii=source.isascii())[1:-1]
                yield Finding(string.start, string.end, found[0].kind, clean)


def _apart_from(found: list[Finding], named: list[Finding]) -> Iterator[Finding]:
    """Yield the findings outside `named` values, which are replaced as a whole."""
    starts = [each.start for each in named]
    for each in found:
        number = bisect_right(starts, each.start) - 1
        if number < 0 or named[number].end <= each.start:
            yield each


def _in_parts(text: str, sought: Sought) -> Iterator[Finding]:
    """Yield the values of multipart form fields whose names denote secrets, up to the next boundary."""
    for part in _PART.finditer(text):
        named = _NAME_OF_PART.search(part["line"])
        if named is not None and (is_secret_parameter(named["name"]) or sought.own.is_name(named["name"])):
            end = text.find("\n--", part.end())
            end = len(text) if end < 0 else end - (text[end - 1 : end] == "\r")
            if part.end() < end:
                yield Finding(part.end(), end, f"the field {named['name']!r}")


def _may_be_stream(text: str) -> bool:
    return first_sign(text) != "{" or "}\n{" in text or "}\r\n{" in text


def _has_secret_member(text: str, sought: Sought) -> bool:
    """Return whether JSON text seems to contain a key that denotes a secret."""
    return any(is_secret_member(name) or sought.own.is_name(name) for name in set(_MEMBER.findall(text)))


def _is_secret(string: JsonString, sought: Sought) -> bool:
    if string.opaque:
        return False
    if sought.own.is_name(string.name):
        return True
    return is_secret_member(string.name) and not (string.name == "token" and string.is_piece_of_text)


def _counts(finding: Finding, text: str, strings: list[JsonString]) -> bool:
    """Return whether a finding in JSON counts, because it is neither in an opaque string nor a number."""
    number = bisect_right(strings, finding.start, key=lambda string: string.start) - 1
    if number < 0 or strings[number].end < finding.end:
        return not text[finding.start : finding.end].isdigit()
    return not strings[number].opaque


def _in_pieces(text: str, strings: list[JsonString], sought: Sought) -> Iterator[Finding]:
    """Yield the parts of secrets spread over several pieces of a stream.

    The first part is replaced by the placeholder, the others by nothing.
    """
    for column in columns(text, strings):
        for each in in_text(column.text, sought):
            first, *others = column.ranges(each.start, each.end)
            if others:
                yield Finding(*first, f"{each.kind}, in pieces of a stream")
                yield from (Finding(*place, each.kind, "") for place in others)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        plain: str = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return plain
