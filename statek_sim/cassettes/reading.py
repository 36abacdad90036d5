"""Every text that is in a text, read for secrets: one scanner for the recorder and for `cassette scan`.

A text is read as it stands, and without each layer of escapes, percent signs, character references and Base64; its
JSON is read member by member, also where it stands in a string, and the pieces of a stream are put together. Whatever
is found is a range of the source. The work is bounded: what has too many layers is `Tangled`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final
from urllib.parse import unquote, unquote_plus

from statek_sim.cassettes.members import Frame, Leaf, columns, leaves, scored, start_of_members
from statek_sim.cassettes.names import (
    NUMBER,
    PLACEHOLDER,
    holds_secret,
    is_placeholder,
    is_secret_header,
    is_secret_name,
    is_secret_parameter,
    is_vague_name,
    looks_random,
    may_be_number,
)
from statek_sim.cassettes.secrets import KNOWN, NOTHING_ELSE, Sought, find_secrets, lower
from statek_sim.cassettes.secrets import looks_clean as rules_see_nothing
from statek_sim.cassettes.view import (
    COLOURS,
    COLOURS_BETWEEN,
    ESCAPES,
    PERCENT,
    REFERENCES,
    Changed,
    Range,
    View,
    unescaped,
)

MOST_LAYERS: Final = 8
"""Encodings in one another that are undone."""
_FREE: Final = 200_000
"""Characters that may be read whatever the size of a text."""
_MOST_TIMES: Final = 60
"""How often each character of a text may be read, on average."""
_SHORT: Final = 64
"""Characters of a text that is kept to know it again; of a longer one its digest is."""

_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_QUOTED_PRINTABLE: Final = re.compile(
    r"content-transfer-encoding:[ \t]{0,9}\"?quoted-printable", re.IGNORECASE
)
_LOGIN: Final = re.compile(r"[A-Za-z][\w+.-]{0,40}://[^/?#]*(?=@)")
_PAIR: Final = re.compile(r"([^&;=?#]*)=([^&;#]*)")
_PAIR_OF_PATH: Final = re.compile(r"([^/;=]*)=([^/;]*)")
_FORM_PAIR: Final = re.compile(r"([^&=]*)=([^&]*)")
_FORM: Final = re.compile(r"[\w.~%+*\[\]-]{1,200}=[^\s{}\"<>]*")
_PART: Final = re.compile(
    r"content-disposition:([^\r\n]{0,2200}+(?:\r?\n[ \t][^\r\n]{0,2200}+){0,5})\r?\n"
    r"(?:[^\r\n]{1,1000}+\r?\n){0,20}\r?\n",
    re.IGNORECASE,
)
_NAME_OF_PART: Final = re.compile(r"[;\s]name\*?=\"?([^\";]{0,200})", re.IGNORECASE)
_END_OF_PART: Final = re.compile(r"\r?\n--")
# Where a rule may start from what is not there yet: escapes of letters, references, several documents, events.
_HIDING: Final = re.compile(
    r"\x1b\[|\\u00|\\/|(?i:quoted-p)|%[0-9A-Fa-f]{2}|&[#\w]{1,9};|[}\"]\s*\n\s*[{\"]|^data:|\n[ \t]|"
    # The same in a string: a stream that is a member of a document.
    r"\\ndata:|\}(?:\\r)?\\n\{|^\w:\"",
    re.MULTILINE,
)
# In a learned secret: what may be written in another way.
_ODD: Final = re.compile(r"[^A-Za-z0-9._~-]")
# A text in JSON that has a line of its own, as in the streams of Vercel's SDK (`0:"…"`).
_TEXT_OF_LINE: Final = re.compile(r"\A\"|^\w:\"", re.MULTILINE)
_NESTED: Final = re.compile(r"[{\[]")
_NESTED_VALUE: Final = re.compile(r"[{\[]|%7[Bb]|%5[Bb]|%3[Dd]|%0[Aa]|%250[Aa]")
# Of JSON Schema, also as Gemini writes them, and of OpenAPI's ways to say who one is.
_TYPES: Final = frozenset({"string", "object", "array", "number", "integer", "boolean", "null"})
_TYPES_OF_ACCESS: Final = frozenset({"apikey", "http", "oauth2", "openidconnect", "mutualtls"})
_OF_SCHEMA: Final = frozenset({"$ref", "anyOf", "allOf", "oneOf", "enum", "const"})
_TELLING: Final = frozenset({"description", "title", "nullable", "deprecated", "format"})
_WORDS_OF_SCHEMA: Final = frozenset(
    {
        *_TELLING, "$comment", "$id", "$ref", "$schema", "authorizationUrl", "bearerFormat", "contentEncoding",
        "contentMediaType", "in", "name", "openIdConnectUrl", "pattern", "propertyOrdering", "refreshUrl", "required",
        "scheme", "style", "tokenUrl", "type",
    }
)  # fmt: skip
"""Members of a schema that say what is allowed, and are no example of it."""
_EXAMPLES: Final = frozenset({"const", "default", "enum", "example", "examples", "value"})
_OF_TOKENIZER: Final = frozenset({"logprob", "top_logprobs", "bytes", "prob", "rank", "special", "token_id"})
_MOST_ABOVE: Final = 5
"""Objects and lists above a text in which a `value` beside a name is looked for."""
_PAIR_NAMES: Final = ("name", "key", "header", "field", "id", "Name", "Key")
_PAIR_VALUES: Final = ("value", "Value")


class Tangled(ValueError):
    """A text has more layers of encoding than are undone, or too much in them."""


@dataclass(frozen=True, slots=True)
class Found:
    """A secret: where it stands in the source, in order, what it seems to be, and it itself if it is to be learned."""

    ranges: tuple[Range, ...]
    kind: str
    learned: str = ""


class Part(StrEnum):
    """How much of a text was read: its encodings, the members of its documents, or both."""

    LAYERS = "layers"
    MEMBERS = "members"
    WHOLE = "whole"


class Work:
    """What reading a text may still cost, in characters, and what texts are known by now to hold.

    Encodings can be undone in any order, and most orders come to the same text: of N encodings that are all in a text,
    N! ways lead to one. What a text holds does not depend on the way, so that it is read once; where that is in the
    source may, so that a text with a secret is read once for each place that it stands for.
    """

    def __init__(self, size: int) -> None:
        self.spent = 0
        self._most = _FREE + _MOST_TIMES * size
        self._known: dict[tuple[Part, str | bytes], dict[bytes, tuple[Found, ...]]] = {}

    def spend(self, size: int, layer: int) -> None:
        """Pay for `size` characters; `Tangled` when that is too much, or too many layers down."""
        self.spent += size
        if self.spent > self._most or layer > MOST_LAYERS:
            raise Tangled(f"more than {MOST_LAYERS} encodings in one another, or too much in them")

    def once(self, part: Part, view: View, found: Iterator[Found]) -> Iterator[Found]:
        """Yield what is found in this part of a view, which is not looked for if it is known."""
        key = (part, _short(view.text))
        known = self._known.get(key)
        if known == {}:
            return
        before = known.get(view.stands_for()) if known else None
        if before is not None:
            yield from before
            return
        findings = []
        for finding in found:
            findings.append(finding)
            yield finding
        places = self._known.setdefault(key, {})
        if findings:
            places[view.stands_for()] = tuple(findings)


def _short(text: str) -> str | bytes:
    """Return something to know a text again by that is not as long as it."""
    if len(text) <= _SHORT:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(slots=True)
class _Reader:
    sought: Sought
    work: Work

    def read(self, view: View, layer: int) -> Iterator[Found]:
        """Yield what is in a view: in all its layers, its members, and the texts that its pieces add up to."""
        return self.work.once(Part.WHOLE, view, self._read(view, layer))

    def _read(self, view: View, layer: int) -> Iterator[Found]:
        yield from self._layers(view, layer)
        yield from _fields(view, self.sought)
        text = view.text
        if '"' in text and (_NESTED.search(text) or "data:" in text or _TEXT_OF_LINE.search(text)):
            yield from self._documents(view, layer, layer)
        elif "data:" in text:
            for column in columns(view, []):
                yield from self.read(column, layer + 1)

    def _layers(self, view: View, layer: int) -> Iterator[Found]:
        """Yield what a view holds as it stands, and without each of its encodings."""
        return self.work.once(Part.LAYERS, view, self._each_layer(view, layer))

    def _each_layer(self, view: View, layer: int) -> Iterator[Found]:
        text = view.text
        self.work.spend(len(text), layer)
        for span in find_secrets(text, self.sought):
            yield Found(tuple(view.ranges(span.start, span.end)), span.kind, span.learned)
        for start, end, plain in view.base64_texts():
            self.work.spend(len(plain), layer)
            if any(True for _ in self.read(View.of(plain), layer + 1)):
                yield Found(tuple(view.ranges(start, end)), "Base64 of a secret")
        if "\\" in text:
            for part in view.changed(ESCAPES):
                # Its members are read where they stand, text by text.
                yield from _that_count(part, self._layers(part.view, layer + 1))
        for part in _plainer(view, self.sought.keys):
            if part.view.text != text:
                yield from _that_count(part, self.read(part.view, layer + 1))

    def _members(self, view: View, found: list[Leaf], layer: int) -> Iterator[Found]:
        for leaf in found:
            text = view.text[leaf.start : leaf.end]
            if leaf.is_piece:
                continue
            if leaf.quoted:
                inner = view.cut(leaf.start, leaf.end)
                plain = inner.unescaped() if "\\" in text else inner
                if self._is_secret(leaf, plain.text):
                    if text and not is_placeholder(plain.text):
                        name = _shown_name(leaf)
                        yield Found(
                            tuple(view.ranges(leaf.start, leaf.end)), f"a value named {name!r}", plain.text
                        )
                elif _NESTED.search(plain.text) or "isposition" in plain.text:
                    yield from self._inside(plain, layer)
            elif self._is_secret_number(leaf, text):
                kind = f"a value named {_shown_name(leaf)!r}"
                yield Found(tuple(view.ranges(leaf.start, leaf.end)), kind, text)

    def _inside(self, view: View, layer: int) -> Iterator[Found]:
        """Yield what the members of a document within a string hold; its layers were read with the text around it."""
        return self.work.once(Part.MEMBERS, view, self._inner_members(view, layer))

    def _inner_members(self, view: View, layer: int) -> Iterator[Found]:
        self.work.spend(len(view.text), layer)
        yield from _fields(view, self.sought)
        if '"' in view.text:
            yield from self._documents(view, layer, layer + 1)

    def _documents(self, view: View, layer: int, inner: int) -> Iterator[Found]:
        """Yield what the members of a view hold, and the texts that its pieces add up to; `inner` is their layer."""
        found = leaves(view.text)
        start = start_of_members(view.text)
        if start and _NESTED.search(view.text, 0, start):
            # The end of a text whose start was cut off; it may be the end of a document itself.
            yield from self._inside(view.cut(0, start - 1).unescaped(), layer + 1)
        yield from self._members(view, found, inner)
        for column in columns(view, found):
            yield from self.read(column, layer + 1)
        if "logprob" in view.text:
            for reply in scored(view, found):
                yield from self.read(reply, layer + 1)

    def _is_secret(self, leaf: Leaf, value: str) -> bool:
        own = self.sought.own
        name = leaf.name
        if name is not None and _counts(name, leaf, value, self.sought):
            return True
        # A member `value` beside `name: password`, as browsers' archives and lists of fields have it.
        if leaf.key in _PAIR_VALUES:
            for other in _PAIR_NAMES:
                text = leaf.frame.texts.get(other, "")
                if text and is_secret_header(text, own):
                    return is_secret_name(text, own) or looks_random(value) or "-" in text
        return _beside(leaf, self.sought) is not None or _above(leaf, self.sought) is not None

    def _is_secret_number(self, leaf: Leaf, text: str) -> bool:
        if NUMBER.fullmatch(text) is None or text == "0":
            return False
        name = leaf.name
        if name is not None and is_secret_name(name, self.sought.own):
            return may_be_number(name, text, self.sought.own)
        above = _beside(leaf, self.sought) or _above(leaf, self.sought)
        return above is not None and may_be_number(above, text, self.sought.own)


def read(text: str, sought: Sought = NOTHING_ELSE, *, form: bool = False) -> list[Found]:
    """Return the secrets in a text; `form` says that it is fields of a form. `Tangled` when it is too deep."""
    return [] if not form and looks_clean(text, sought) else read_whole(text, sought, form=form)


def read_whole(
    text: str, sought: Sought = NOTHING_ELSE, *, form: bool = False, work: Work | None = None
) -> list[Found]:
    """Return what `read` does, without the quick look before it; `work` counts what it took."""
    view = View.of(text)
    reader = _Reader(sought, work or Work(len(text)))
    found = list(reader.read(view, 0))
    if form or (_FORM.match(text) and _FORM.fullmatch(text)):
        if "+" in text:
            found += reader.read(view.without_plus(), 1)
        found += _pairs(view, _FORM_PAIR, sought)
        found += _values(view, _FORM_PAIR, reader)
    return found


def looks_clean(text: str, sought: Sought = NOTHING_ELSE) -> bool:
    """Whether a quick look shows that a text holds no secret at all; False decides nothing."""
    if _HIDING.search(text) or (text[:1] in '[d"' and len(text) > 1):
        return False
    if sought.own.patterns and ("\\" in text or any(sought.own.found(text))):
        return False
    if any(key in text or _ODD.search(key) for key in sought.keys):
        return False
    lowered = lower(text)
    if not rules_see_nothing(text, lowered, sought.own):
        return False
    # The letter of an escape before Base64 is none of it.
    plain = unescaped(text) if "\\" in text else text
    return not any(True for each in {text, plain} for _ in View.of(each).base64_texts())


def read_address(uri: str, sought: Sought = NOTHING_ELSE) -> list[Found]:
    """Return the secrets in an address: in its login, its path, its parameters and its fragment."""
    view = View.of(uri)
    starts = [at for at in (uri.find("?"), uri.find("#")) if at >= 0]
    found = read(uri, sought)
    found += _pairs(view.cut(0, min(starts, default=len(uri))), _PAIR_OF_PATH, sought)
    if starts:
        found += _pairs(view.cut(min(starts), len(uri)), _PAIR, sought)
        found += _values(view.cut(min(starts), len(uri)), _PAIR, _Reader(sought, Work(len(uri))))
    login = _LOGIN.match(uri)
    # A password may be an address itself, whose parameters end where it does and not where this one does.
    over = [] if login is None else [each for each in found if _goes_over(each, login.end())]
    if login is None or not over:
        return found
    kept = [each for each in found if each not in over]
    kept += (
        Found(
            tuple((start, min(end, login.end())) for start, end in each.ranges if start < login.end()),
            each.kind,
        )
        for each in over
    )
    return [*kept, *_Reader(sought, Work(len(uri))).read(view.cut(login.end(), len(uri)), 1)]


def _goes_over(found: Found, end: int) -> bool:
    return found.ranges[0][0] < end < found.ranges[-1][1]


def read_header(name: str, value: str, sought: Sought = NOTHING_ELSE) -> list[Found]:
    """Return the secrets in a header's value, which may be folded; the whole of it where the name tells."""
    if holds_secret(name, value, sought.own):
        whole = not value.strip() or is_placeholder(value)
        return [] if whole else [Found(((0, len(value)),), f"a header named {name!r}", value)]
    found = read(value, sought)
    if "\n" in value:
        reader = _Reader(sought, Work(len(value)))
        for unfolded in View.of(value).unfolded():
            found += reader.read(unfolded, 1)
    return found


def apart(found: Iterable[Found]) -> list[Found]:
    """Return secrets in the order of their places, one where several rules saw the same."""
    kept: list[Found] = []
    for finding in sorted(
        found, key=lambda finding: (finding.ranges[0][0], -finding.ranges[-1][1], finding.kind == KNOWN)
    ):
        if not kept or finding.ranges[0][0] >= kept[-1].ranges[-1][1]:
            kept.append(finding)
    return kept


def replaced(text: str, found: Iterable[Found]) -> str:
    """Return a text with the placeholder for each secret; the parts of one after the first are taken out."""
    ranges = sorted(
        (start, end, number == 0) for finding in found for number, (start, end) in enumerate(finding.ranges)
    )
    pieces: list[str] = []
    done = 0
    for start, end, shown in _apart(ranges):
        stand_in = _stand_in(text, start, end)
        pieces += [text[done:start], stand_in if shown or stand_in != PLACEHOLDER else ""]
        done = end
    return "".join((*pieces, text[done:]))


def _apart(ranges: Iterable[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    apart: list[tuple[int, int, bool]] = []
    for start, end, shown in ranges:
        if apart and start <= apart[-1][1]:
            last = apart[-1]
            apart[-1] = (last[0], max(last[1], end), last[2] or shown)
        else:
            apart.append((start, end, shown))
    return apart


def _stand_in(text: str, start: int, end: int) -> str:
    """Return what stands for a secret: a number stays a number, so that JSON stays JSON."""
    if NUMBER.fullmatch(text, start, end):
        before, after = text[max(0, start - 20) : start].rstrip(), text[end : end + 20].lstrip()
        if before.endswith((":", ",", "[")) and (not after or after.startswith((",", "}", "]"))):
            return "0"
    return PLACEHOLDER


def _plainer(view: View, keys: tuple[str, ...]) -> Iterator[Changed]:
    text = view.text
    if "%" in text:
        yield from view.changed(PERCENT)
    if "\x1b[" in text:
        yield from view.changed(COLOURS)
        yield from view.changed(COLOURS_BETWEEN)
    if "&" in text and ";" in text:
        yield from view.changed(REFERENCES)
    if ("uoted-" in text or "UOTED-" in text) and _QUOTED_PRINTABLE.search(text):
        yield Changed(view.without_quoted())
    if "+" in text and any(" " in key for key in keys):
        yield Changed(view.without_plus())


def _that_count(part: Changed, found: Iterator[Found]) -> Iterator[Found]:
    """Yield what is found in a part, but for what stands where it was cut out and may go on outside."""
    if part.bounds is None:
        yield from found
        return
    for finding in found:
        left, right = part.bounds()
        if left <= finding.ranges[0][0] and finding.ranges[-1][1] <= right:
            yield finding


def _counts(name: str, leaf: Leaf, value: str, sought: Sought) -> bool:
    """Whether a text is a secret because of the member it is, or because it is in a list of this name."""
    if is_secret_name(name, sought.own):
        # The pieces of a reply with their probabilities; a piece may be called `token`.
        frame = leaf.frame
        return not (_OF_TOKENIZER & frame.keys or any("logprob" in str(step) for step in frame.label))
    return is_vague_name(name) and looks_random(value)


def _above(leaf: Leaf, sought: Sought) -> str | None:
    """Return the telling name of an object that a text is in; a schema of such a member is none but for examples."""
    frame, schema = _nearest(leaf.frame, sought)
    if frame is None or _OF_TOKENIZER & frame.keys or "text" in frame.keys:
        return None
    if schema and (
        leaf.name in _WORDS_OF_SCHEMA
        or "scopes" in leaf.frame.label
        or not (leaf.quoted or leaf.name in _EXAMPLES)
    ):
        return None
    return str(frame.label[-1])


def _beside(leaf: Leaf, sought: Sought) -> str | None:
    """Return the telling name beside the `value` that a text is, or is in as an entry or a member."""
    key, frame = leaf.key, leaf.frame
    for _ in range(_MOST_ABOVE):
        if key in _PAIR_VALUES:
            return next(
                (
                    frame.texts[name]
                    for name in _PAIR_NAMES
                    if is_secret_name(frame.texts.get(name, ""), sought.own)
                ),
                None,
            )
        if _is_schema(frame) or not frame.label or frame.above is None:
            return None
        key, frame = frame.label[-1], frame.above
    return None


def _nearest(frame: Frame, sought: Sought) -> tuple[Frame | None, bool]:
    """Return the object of a telling name that this is or is in, and whether it or one on the way to it is a schema.

    Each object is asked once: a text may hold many members of one that is a hundred levels deep.
    """
    places = []
    at: Frame | None = frame
    while at is not None and at.nearest is None:
        places.append(at)
        at = at.above
    found = (None, False) if at is None or at.nearest is None else at.nearest
    for each in reversed(places):
        name = each.label[-1] if each.label else None
        tells = isinstance(name, str) and is_secret_name(name, sought.own)
        found = (each, _is_schema(each)) if tells else (found[0], found[1] or _is_schema(each))
        each.nearest = found
    return found


def _is_schema(frame: Frame) -> bool:
    if "value" in frame.keys:
        # What Terraform prints says of each value which type it has.
        return False
    kind = frame.texts.get("type", "").lower()
    has_type = kind in _TYPES or kind in _TYPES_OF_ACCESS or ("type" in frame.keys and not kind)
    return has_type or bool(frame.keys & _OF_SCHEMA) or (bool(frame.keys) and frame.keys <= _TELLING)


def _shown_name(leaf: Leaf) -> str:
    named = [step for step in leaf.label if isinstance(step, str)]
    return next((name for name in reversed(named) if is_secret_name(name)), named[-1] if named else "")


def _fields(view: View, sought: Sought) -> Iterator[Found]:
    """Yield the values of a multipart form's fields with a telling name."""
    text = view.text
    if "isposition" not in text and "ISPOSITION" not in text:
        return
    at = 0
    while (part := _PART.search(text, at)) is not None:
        named = _NAME_OF_PART.search(part[1])
        if named is None:
            # Behind its line only: a line with a name may be among those that follow.
            at = part.end(1)
            continue
        end = _END_OF_PART.search(text, part.end())
        at = stop = end.start() if end is not None else len(text)
        value = text[part.end() : stop]
        name = unquote(named[1])
        if is_secret_parameter(name, sought.own) and value.strip() and not is_placeholder(value):
            yield Found(tuple(view.ranges(part.end(), stop)), f"a field named {name!r}", value)
        if at == len(text):
            return


def _pairs(view: View, pattern: re.Pattern[str], sought: Sought) -> Iterator[Found]:
    for match in pattern.finditer(view.text):
        name, value = unquote_plus(match[1]), unquote_plus(match[2])
        if value and is_secret_parameter(name, sought.own) and not is_placeholder(value):
            ranges = tuple(view.ranges(*match.span(2)))
            yield Found(ranges, f"the parameter {name!r}", value)
            if (plain := plain_of_percent(value)) != value:
                # It may come again as whoever undoes all of its encodings reads it.
                yield Found(ranges, f"the parameter {name!r}", plain)


def _values(view: View, pattern: re.Pattern[str], reader: _Reader) -> Iterator[Found]:
    """Yield what is in the values of fields, each by itself: a quote in one does not count for the next."""
    for match in pattern.finditer(view.text):
        if _NESTED_VALUE.search(match[2]):
            yield from reader.read(view.cut(*match.span(2)).without_plus().without_percent(), 1)


def plain_of_percent(text: str) -> str:
    """Return a text without percent-encoding, however often it was encoded."""
    for _ in range(MOST_LAYERS):
        if not _PERCENT.search(text):
            break
        text = unquote(text)
    return text
