"""Where a text holds credentials: by how they look, by what they are called, and because they are known.

These rules read one text as it stands; `reading` gives them every text that is in a body. All of them are linear: a
place that was read is not read again from another start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from statek_sim.beginnings import Beginning, Places
from statek_sim.cassettes.commands import may_have_passwords, passwords
from statek_sim.cassettes.elements import in_elements
from statek_sim.cassettes.names import (
    LEAST_RANDOM,
    NUMBER,
    WHOLE_WORDS,
    is_placeholder,
    is_secret_name,
    is_secret_parameter,
    is_telling,
    is_vague_name,
    is_value,
    looks_random,
    may_be_number,
)
from statek_sim.cassettes.own_secrets import NO_OWN, OwnSecrets, folded
from statek_sim.cassettes.shapes import BOT_TOKEN, hints, shaped
from statek_sim.cassettes.tables import columns_under, is_cell
from statek_sim.cassettes.view import base64_text
from statek_sim.cassettes.words import WORD, bare_value
from statek_sim.needles import Needles


@dataclass(frozen=True, slots=True)
class Span:
    """Where a secret is in a text, what it seems to be, and the secret if it is to be looked for elsewhere too."""

    start: int
    end: int
    kind: str
    learned: str = ""


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for beside what everyone knows: secrets that a request was sent with, a team's own secrets."""

    keys: tuple[str, ...] = ()
    own: OwnSecrets = NO_OWN


NOTHING_ELSE: Final = Sought()
KNOWN: Final = "a secret that the request was sent with"
"""What a secret is called that was found because it is known; any other name of it says more."""

_NAME: Final = (
    r"passw(?:or)?[dt]|passphrase|passcode|pwd|secret|key|credential|authorization|cookie|jwt|bearer|auth|"
    r"sig(?:nature)?"
)
_NAMES: Final = (
    rf"(?:token|(?:{_NAME})(?:id)?s?|(?:admin|db|e?mail|ftp|login|mysql|pg|proxy|redis|root|smtp|ssh|user)[_-]?pass)"
    r"(?:[_-]?(?:\d{1,2}|again|confirm(?:ation)?|current|new|old|repeat|value))?(?![a-z0-9_])"
)
_LONGEST_NAME: Final = 80
_LONG_TEXT: Final = 2_000
"""Characters from which on names are looked for by how they begin; a shorter text is read faster than asked about."""
# What is between a name and its value: `"name": "…`, `\\"name\\": \\"…`, `name=…`, `x["name"] = '…`, `<name>…`.
_BETWEEN: Final = re.compile(
    r"(?P<close>(?:\\{0,15}[\"'`])?\]?)(?P<wide>[ \t]{0,4})(?P<sign>=>|[:?]=|!={1,2}|={1,3}|:|>)(?P<gap>\s{0,200})"
    # Some languages write a letter or a sign before a text; YAML an anchor, a tag, or the start of a list.
    r"(?:(?:&\w{1,40}|!{1,2}[a-z]{1,20})[ \t]{1,4})?(?:\[[ \t]?(?=\\{0,15}[\"']))?"
    r"(?:(?:[bBrRuUfFL]{1,2}|[$@])(?=\\{0,15}[\"']))?(?P<open>(?P<quote>\\{0,15}[\"'`])(?:(?P=quote)(?P=quote))?)?"
)
# A text that is given to a variable whose type stands behind its name.
_ANNOTATED: Final = re.compile(
    r":[ \t]{0,4}&?'?[A-Za-z_][\w.\[\]|:, ]{0,60}=[ \t]{0,4}[bBrRuUfF]{0,2}(\\{0,15}[\"'`])"
)
_END_OF_TEXT: Final = re.compile(r"</?|[\"\\]")
_ROW: Final = re.compile(
    r"[`*]{0,2} {0,200}\| {0,200}`?([^\s|`\"'\\]{1,200})`? {0,200}\|[ \t\r]{0,9}(?=[\n\"\\]|\Z)"
)
_ROW_OF_TWO: Final = re.compile(r"\"?[,;\t]\"?([^\s,;\"'\\]{8,200})\"?[ \t\r]{0,9}(?=[\n\"\\]|\Z)")
_QUOTE: Final = re.compile(r"(\\*)([\"'`])|\n")
_FIELD: Final = re.compile(r"[^&#\s\"'`<>\\]+")
_SETTING: Final = re.compile(r"[^&\s\"'`<>\\]+")
# What a header holds, and a sentence about one does not.
_HEADER_VALUE: Final = re.compile(
    r"(?:(?:bearer|basic|token|digest|aws4-[\w-]{1,30})\s+)?(?:[^\s=]{1,200}=|[^\s`]*\d[^\s`]*\s*$)",
    re.IGNORECASE,
)
_REST_OF_LINE: Final = re.compile(r"[^\r\n\"'\\]+(?:\r?\n[ \t]+[^\r\n\"'\\]+)*")
# The text that a setter is called with.
_SETTER: Final = re.compile(r"\(\s{0,9}(\\{0,15}[\"'`])")
_NEAR: Final = re.compile(
    r"[\"'`)]?(?:\s{1,3}(?:is|was|are|of|for|to|as|be|named|called|value|here|you|provided|supplied|given|sent|used|entered|passed|"
    r"not|valid|invalid|found|asked)|\s{1,3}(?:for|of|in|on|to|at|from)\s(?:the\s)?[\w.-]{1,30}){0,4}[\s:=\"'`*(>,-]{1,6}([A-Za-z0-9+/_.~-]{16,256})"
)
# How the text goes on of which the first 256 characters were judged.
_NEAR_REST: Final = re.compile(r"[A-Za-z0-9+/_.~-]*={0,2}")
_BARE: Final = 3
"""The group of a flag's value that is not quoted."""
_FLAG_VALUE: Final = re.compile(
    r"[ \t]+(?:\\{0,7}\"([^\"\n\\]{1,200})\\{0,7}\"|'([^'\n]{1,200})'|([^\s\"'`]+))"
)
# A text of YAML that stands in the lines below.
_BLOCK: Final = re.compile(r":[ \t]{1,4}[|>][+-]?\d?[ \t]*\r?\n((?:[ \t]+[^\n\"]+(?:\n(?=[ \t])|))+)")
# The value beside a name, in YAML and in Terraform's language.
_BESIDE: Final = re.compile(
    r"[\"']?(?:[ \t]*\r?\n[ \t]*value:[ \t]*|[ \t]*\{\s*(?:(?!default)\w[^{}\n]*\n\s*){0,6}default[ \t]*=[ \t]*)"
    r"(?:\"([^\"\n]{1,1000})\"|'([^'\n]{1,1000})'|([^\s\"'\\#{}\[]{1,1000}))"
)
_NAMES_IT: Final = re.compile(r"(?:\b(?:name|key):|\bvariable)[ \t]{1,4}[\"']?\Z")
# The next word of a command that is a list.
_NEXT_WORD: Final = re.compile(r"(\\{0,7}[\"']),\s{0,60}\1([^\s\"'\\]{1,200})\1(?!\s{0,9}:)")
_END_OF_FLAG: Final = re.compile(r"[\"'`]|[ \t]{0,9}(?:\Z|\n|[|;&]|--?[A-Za-z])")
_LEAST_OF_FLAG: Final = 8
_PART_OF_PATH: Final = re.compile(r":[^\s\"'`]")
_COMPARISONS: Final = ("==", "===", "!=", "!==")
_BEHIND_TEXT: Final = ("}", "]", ",")
_AFTER_TEXT: Final = re.compile(r"[\s)\]},;+]|\Z")
_LONGEST_LINE: Final = 500
_LINES_OF_HEADERS: Final = ("authorization", "cookie")

_BEARER: Final = re.compile(r"\b(?:bearer|(basic))\s{1,20}([\w.~+/-]{6,}=*)", re.IGNORECASE)
_LEAST_SURE: Final = 16
_LOGIN: Final = re.compile(r"([^/\s:@\"'\\]{0,100}):([^/\s\"'\\]{1,200})@")
_LOGIN_TOKEN: Final = re.compile(r"([^/\s:@\"'\\]{8,200})(:?)@")
_NO_PASSWORDS: Final = ("x", "x-oauth-basic", "x-access-token")
"""What some write as the password where the key is the login's name."""
_LOGPROBS: Final = ("logprob", '"bytes"', '"rank"', '"prob"', "token_id")
_ASIDE: Final = 90
_HINTS: Final = (*hints(), "eyj", "bearer", "basic")
_ASCII_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def looks_clean(text: str, lowered: str, own: OwnSecrets) -> bool:
    """Whether a text has nothing in it that any of these rules starts from."""
    return (
        not any(hint in lowered for hint in _HINTS)
        and _pattern(own).pattern.search(lowered) is None
        and BOT_TOKEN.search(text) is None
        and not ("://" in text and "@" in text)
        and not may_have_passwords(lowered)
    )


def find_secrets(text: str, sought: Sought = NOTHING_ELSE) -> list[Span]:
    """Return where a text, as it stands, holds credentials; they may overlap."""
    lowered = lower(text)
    return [
        *known(text, sought.keys),
        *(Span(start, end, kind, text[start:end]) for start, end, kind in passwords(text, lowered)),
        *(Span(*place) for place in sought.own.found(text)),
        *(Span(*place) for place in shaped(text, lowered)),
        *_authorizations(text, lowered),
        *_logins(text),
        *_named(text, lowered, sought.own),
        *(Span(start, end, kind, text[start:end]) for start, end, kind in in_elements(text, sought.own)),
    ]


def lower(text: str) -> str:
    """Return a text in lower case, with every letter where it was."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.translate(_ASCII_LOWER)


def known(text: str, keys: Iterable[str]) -> Iterator[Span]:
    """Yield where secrets stand that were learned; a short one counts as a word of its own."""
    for key in keys:
        at = text.find(key)
        while at >= 0:
            end = at + len(key)
            if len(key) >= WHOLE_WORDS or not (
                text[at - 1 : at].isalnum() or (end < len(text) and text[end].isalnum())
            ):
                yield Span(at, end, KNOWN)
            at = text.find(key, at + 1)


def _authorizations(text: str, lowered: str) -> Iterator[Span]:
    if "bearer" not in lowered and "basic" not in lowered:
        return
    for match in _BEARER.finditer(text):
        value = match[2]
        has_digit = any(map(str.isdigit, value))
        if match[1]:
            login = base64_text(value)
            sure = ":" in login or (len(value) >= _LEAST_SURE and has_digit)
            learned = login.partition(":")[2] if ":" in login else value
        else:
            mixed = value != value.lower() and value != value.upper()
            sure = has_digit or (len(value) >= _LEAST_SURE and mixed)
            learned = value
        if sure and not is_placeholder(value):
            yield Span(*match.span(2), "an authorization", learned)


def _logins(text: str) -> Iterator[Span]:
    at = text.find("://")
    while at >= 0:
        login = _LOGIN.match(text, at + 3)
        if login is not None:
            if login[2] in _NO_PASSWORDS and _is_key(login[1], has_colon=True):
                yield Span(*login.span(1), "a token in an address", login[1])
            elif not is_placeholder(login[2]):
                yield Span(*login.span(2), "a password in an address", login[2])
        elif (alone := _LOGIN_TOKEN.match(text, at + 3)) is not None and _is_key(
            alone[1], has_colon=bool(alone[2])
        ):
            yield Span(*alone.span(1), "a token in an address", alone[1])
        at = text.find("://", at + 3)


def _is_key(value: str, *, has_colon: bool) -> bool:
    """Whether the name of a login is a key; one with a colon behind it has no password by design."""
    digits = sum(map(str.isdigit, value))
    mixed = value != value.lower() and value != value.upper()
    if is_placeholder(value):
        return False
    sure = looks_random(value) or (digits >= 2 and (mixed or has_colon)) or (mixed and len(value) >= 20)
    return sure or (has_colon and (len(value) >= 16 or (mixed and digits > 0)))


def _named(text: str, lowered: str, own: OwnSecrets) -> Iterator[Span]:
    """Yield what has a telling name: a member, a field, a variable, a header, an element, or a string beside a name."""
    done = 0
    cells = []
    for match in _ends_of_names(lowered, own):
        if match.start() < done:
            continue
        span = None
        if is_cell(text, start := _start_of_name(text, match.start()), match.end()):
            cells.append(start)
            span = _in_row(text, start, match.end(), own)
        span = span or _after_name(text, match, own)
        if span is not None:
            done = max(span.end, match.end())
            if span.kind:
                yield span
    yield from _under_names(text, cells, own)


def _in_row(text: str, start: int, end: int, own: OwnSecrets) -> Span | None:
    """Return what stands in a table's row of a telling name and a value: `| password | x |`, `password,x`."""
    row = _ROW_OF_TWO.match(text, end) if text[max(0, start - 1) : start] in ("", "\n", '"') else None
    if row is not None:
        return _of_cell(text, (start, end), row.span(1), own)
    row = _ROW.match(text, end)
    left = text.rfind("|", max(0, start - _LONGEST_NAME), start)
    return _of_cell(text, (left + 1, end), row.span(1), own) if row is not None and left >= 0 else None


def _under_names(text: str, places: list[int], own: OwnSecrets) -> Iterator[Span]:
    """Yield what stands in a column of a table under a telling name."""
    for place, cell in columns_under(text, places):
        span = _of_cell(text, place, cell, own)
        if span is not None:
            yield span


def _of_cell(text: str, place: tuple[int, int], cell: tuple[int, int], own: OwnSecrets) -> Span | None:
    """Return what a cell holds that is called by the name at a place, if it is a secret."""
    name, value = text[slice(*place)].strip(" *`"), text[slice(*cell)].strip("`")
    if own.is_name(name):
        counts = not is_placeholder(value)
    elif is_secret_name(name):
        counts = is_telling(name, value, upper=False) and (
            NUMBER.fullmatch(value) is None or may_be_number(name, value, own)
        )
    else:
        counts = is_vague_name(name) and looks_random(value)
    return Span(*cell, f"a value named {name!r}", value) if counts else None


def _ends_of_names(lowered: str, own: OwnSecrets) -> Iterator[re.Match[str]]:
    names = _pattern(own)
    if len(lowered) < _LONG_TEXT:
        return names.pattern.finditer(lowered)
    return names.matches(Places(lowered, _first_of_names(own)), 0, len(lowered))


@lru_cache(maxsize=16)
def _first_of_names(own: OwnSecrets) -> Needles:
    return Needles(sorted(_pattern(own).long))


@lru_cache(maxsize=16)
def _pattern(own: OwnSecrets) -> Beginning:
    """Return what ends a telling name, in a text in lower case."""
    if not own.names:
        return Beginning(_NAMES)
    names = "|".join("[_-]?".join(map(re.escape, name)) for name in sorted(own.names))
    return Beginning(rf"(?:{names})(?![a-z0-9_])|{_NAMES}")


def _start_of_name(text: str, start: int) -> int:
    least = max(0, start - _LONGEST_NAME)
    while start > least and (text[start - 1].isalnum() or text[start - 1] in "_-"):
        start -= 1
    return start


def _after_name(text: str, match: re.Match[str], own: OwnSecrets) -> Span | None:
    """Return the value of the name that ends there; one without a kind was looked at and is no secret."""
    start, end = _start_of_name(text, match.start()), match.end()
    name = text[start:end]
    sure = is_secret_name(name, own)
    before = text[start - 1] if start else ""
    if before == ":" and _PART_OF_PATH.match(text, end):
        # A part of a path, as AWS writes them.
        return None
    between = _BETWEEN.match(text, end)
    if between is not None and _is_fitting(between, before):
        span = _value(text, name, between, before, own, sure=sure)
        if span is not None:
            return span
    apart = _BLOCK.match(text, end) or _BESIDE.match(text, end) if sure else None
    if apart is not None and (apart.re is _BLOCK or _NAMES_IT.search(text, max(0, start - 20), start)):
        value = apart[apart.lastindex or 0]
        shown = is_placeholder(value) or not value.strip()
        return None if shown else Span(*apart.span(apart.lastindex or 0), f"a value named {name!r}", value)
    annotated = _ANNOTATED.match(text, end) if sure else None
    if annotated is not None:
        stop = _closing(text, annotated.end(), annotated[1])
        value = text[annotated.end() : stop]
        return (
            None if is_placeholder(value) else Span(annotated.end(), stop, f"a value named {name!r}", value)
        )
    setter = _SETTER.match(text, end) if sure and name.lower().startswith(("set", "with")) else None
    if setter is not None:
        stop = _closing(text, setter.end(), setter[1])
        value = text[setter.end() : stop]
        return (
            None
            if is_placeholder(value) or value.lstrip().startswith(_BEHIND_TEXT)
            else Span(setter.end(), stop, f"a value named {name!r}", value)
        )
    listed = _NEXT_WORD.match(text, end) if sure and name.startswith("--") else None
    if listed is not None and is_value(name, listed[2]) and not listed[2].startswith("-"):
        return Span(*listed.span(2), f"a value named {name!r}", listed[2])
    flag = _FLAG_VALUE.match(text, end) if sure and name.startswith("--") else None
    if flag is not None:
        value = flag[flag.lastindex or 0]
        telling = is_value(name, value) if flag.lastindex != _BARE else _is_of_flag(text, name, flag)
        if telling and not value.startswith("-"):
            return Span(*flag.span(flag.lastindex or 0), f"a value named {name!r}", value)
    near = _NEAR.match(text, end)
    if near is not None and ("--" in text[end : near.start(1) + 2] or _is_path(text, before, near)):
        # What a public key begins with, or the parts of a form; private ones have a shape. And where S3 keeps a file.
        return None
    if (
        near is not None
        and (sure or is_vague_name(name))
        and looks_random(near[1])
        and "/" not in near[1][:2]
    ):
        rest = _NEAR_REST.match(text, near.end())
        stop = rest.end() if rest is not None else near.end()
        return Span(near.start(1), stop, f"a random text beside {name!r}", text[near.start(1) : stop])
    return None


def _is_of_flag(text: str, name: str, flag: re.Match[str]) -> bool:
    """Whether what stands behind `--password` is one: it tells, or the command ends or goes on with another flag."""
    value = flag[_BARE]
    ends = len(value) >= _LEAST_OF_FLAG and not value.isupper() and _END_OF_FLAG.match(text, flag.end())
    return is_telling(name, value, upper=False) or (bool(ends) and is_value(name, value))


def _is_path(text: str, before: str, near: re.Match[str]) -> bool:
    """Whether an element `<Key>` holds where a file is kept."""
    return (
        before == "<" and "/" in near[1] and "+" not in near[1] and text[near.end() : near.end() + 1] != "="
    )


def _is_fitting(between: re.Match[str], before: str) -> bool:
    if between["sign"] == ">":
        return before == "<" and not between["close"] and not between["wide"] and not between["open"]
    return True


def _value(
    text: str, name: str, between: re.Match[str], before: str, own: OwnSecrets, *, sure: bool
) -> Span | None:
    kind = f"a value named {name!r}"
    start = between.end()
    quoted = bool(between["close"].strip("]")) and between["sign"] == ":"
    if between["open"]:
        return _quoted_value(text, name, between, sure=sure)
    if between["sign"] == ">":
        end = _end_of_element(text, start)
        value = text[start:end]
        return Span(start, end, kind, value) if sure and value.strip() and not is_placeholder(value) else None
    if quoted:
        number = NUMBER.match(text, start)
        return (
            Span(*number.span(), kind)
            if number and may_be_number(name, number[0], own) and number[0] != "0"
            else None
        )
    query = (
        (before in ("?", "&", ";", "#") or (before == "[" and between["close"] == "]"))
        and not between["wide"]
        and between["sign"] == "="
        and not between["gap"]
    )
    if query or (start > 0 and between["sign"] == "=" and _is_field(text, name, between)):
        field = (_SETTING if before == ";" else _FIELD).match(text, start)
        more = bare_value(text, name, between, own) if sure and not query else None
        if more is not None and (field is None or more[1] > field.end()):
            return Span(*more, kind, text[slice(*more)])
        telling = sure or (
            field is not None
            and (
                (is_secret_parameter(name) and len(field[0]) >= LEAST_RANDOM)
                or (is_vague_name(name) and looks_random(field[0]))
            )
        )
        return (
            Span(*field.span(), f"the parameter {name!r}", field[0])
            if field and telling and not is_placeholder(field[0])
            else None
        )
    if "\n" in between["gap"]:
        return None
    if between["sign"] == ":" and folded(name).endswith(_LINES_OF_HEADERS):
        line = _REST_OF_LINE.match(text, start)
        if line and _HEADER_VALUE.match(line[0]) and not is_placeholder(line[0]):
            return Span(*line.span(), kind)
    bare = bare_value(text, name, between, own) if sure else None
    return Span(*bare, kind, text[slice(*bare)]) if bare is not None else None


def _quoted_value(text: str, name: str, between: re.Match[str], *, sure: bool) -> Span | None:
    """Return the value in quotes behind a name; one without a kind is no secret."""
    start = between.end()
    if not between["close"] and _closes(text, between.start("open"), start, between["open"]):
        return None
    if between["open"] == between["quote"]:
        end = _closing(text, start, between["open"])
    else:
        end = text.find(between["open"], start)
        end = end if end >= 0 else len(text)
    value = text[start:end]
    # The quote that closes a text around this one, and what comes after it there.
    if value.lstrip().startswith(_BEHIND_TEXT):
        return None
    counts = sure or (is_vague_name(name) and looks_random(value))
    if between["sign"] in _COMPARISONS:
        # What a program compares something with.
        counts = counts and is_telling(name, value, upper=False)
    if not counts:
        return None
    shown = is_placeholder(value) or _is_of_tokenizer(text, name, start, end)
    return Span(start, end, "" if shown else f"a value named {name!r}", value)


def _end_of_element(text: str, start: int) -> int:
    """Return where the text of an element ends: of one that is not closed, with a word that tells."""
    stop = _END_OF_TEXT.search(text, start)
    if stop is not None and stop[0] == "</":
        return stop.start()
    word = WORD.match(text, start)
    return word.end() if word is not None and any(map(str.isdigit, word[0])) else start


def _is_field(text: str, name: str, between: re.Match[str]) -> bool:
    """Whether `name=` starts a text, so that it is the first field of a form."""
    return between.start() == len(name) and not between["wide"] and not between["gap"]


def _closes(text: str, at: int, start: int, quote: str) -> bool:
    """Whether the quote behind `Password: ` ends the text that this stands in."""
    left = max(text.rfind("\n", max(0, at - _LONGEST_LINE), at) + 1, at - _LONGEST_LINE, 0)
    before = text.rfind(quote, left, at)
    # A quote with a letter behind it starts a text.
    starts = before >= 0 and text[before + len(quote)].isalnum()
    return starts and _AFTER_TEXT.match(text, start) is not None


def _is_of_tokenizer(text: str, name: str, start: int, end: int) -> bool:
    """Whether a member `token` is a piece of a reply, with its probability beside it."""
    around = text[max(0, start - _ASIDE) : start] + text[end : end + _ASIDE]
    return folded(name) == "token" and any(word in around for word in _LOGPROBS)


def _closing(text: str, start: int, opening: str) -> int:
    """Return where a quoted text ends: at a quote with as many backslashes as its first one, or with its line."""
    depth = len(opening) - 1
    for match in _QUOTE.finditer(text, start):
        if not match[2]:
            return match.start()
        slashes = len(match[1])
        if match[2] == opening[-1] and (slashes == depth or (depth == 0 and slashes % 2 == 0)):
            return match.end() - len(opening) if slashes == depth else match.start(2)
        if slashes < depth and match[2] == opening[-1]:
            # The quote of the text around it: this one was cut off.
            return match.start()
    return len(text)
