"""Finds personal data, using patterns and check digits.

It covers the kinds in the harness document §3 (US social security numbers, Taiwanese national IDs and mobile numbers)
and other common ones. Phone numbers from other countries are recognized by `phonenumbers` if it is installed (extra
`pii`), and otherwise only in international form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from statek_sim.agent.guards.normalization import View, near

Check = Callable[[str], bool]
"""A condition that all valid data of a kind meets, such as a correct check digit."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of personal data. `hint` is a fast pattern for part of any occurrence; all `checks` must hold."""

    name: str
    hint: re.Pattern[str]
    pattern: re.Pattern[str]
    checks: Mapping[str, Check]

    def is_valid(self, text: str) -> bool:
        """Return whether a candidate is valid."""
        return all(check(text) for check in self.checks.values())


_NUMBER: Final = re.compile(r"[0-9](?:[ .-]?[0-9]){6}")
_AT: Final = re.compile("@")
_PLUS: Final = re.compile(r"\+[1-9]")
_REACH: Final = 100
"""A kind is matched only within this many characters of a hint."""


def _kind(name: str, hint: re.Pattern[str], pattern: str, checks: Mapping[str, Check] | None = None) -> Kind:
    # `\b` has no boundary between a digit and a Chinese character. `[0-9]` suffices, because views are ASCII.
    return Kind(name, hint, re.compile(rf"(?<![A-Za-z0-9_])(?:{pattern})(?![A-Za-z0-9_])"), checks or {})


def _digits(text: str) -> str:
    return re.sub(r"[^0-9]", "", text)


_SSN_CHECKS: Final[Mapping[str, Check]] = {
    "no area 000": lambda text: _digits(text)[:3] != "000",
    "no area 666": lambda text: _digits(text)[:3] != "666",
    "no area 9xx": lambda text: _digits(text)[0] != "9",
    "no group 00": lambda text: _digits(text)[3:5] != "00",
    "no serial 0000": lambda text: _digits(text)[5:] != "0000",
}
"""Conditions that every US social security number meets."""


_TAIWAN_LETTERS: Final = {letter: 10 + at for at, letter in enumerate("ABCDEFGHJKLMNPQRSTUVXYWZIO")}


def is_taiwan_id(text: str) -> bool:
    """Return whether the check digit of a national ID or resident certificate is correct."""
    text = text.upper()
    first = _TAIWAN_LETTERS[text[0]]
    second = _TAIWAN_LETTERS[text[1]] % 10 if text[1].isalpha() else int(text[1])
    weighted = first // 10 + first % 10 * 9 + second * 8
    weighted += sum(
        int(digit) * weight for digit, weight in zip(text[2:], (7, 6, 5, 4, 3, 2, 1, 1), strict=True)
    )
    return weighted % 10 == 0


def _has_luhn_digit(text: str) -> bool:
    """Return whether a payment card number has a correct check digit."""
    doubled = [int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(_digits(text)))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


_CARD_CHECKS: Final[Mapping[str, Check]] = {
    "digits that differ": lambda text: len(set(_digits(text))) > 1,
    "Luhn's digit": _has_luhn_digit,
}


_IBAN_LENGTHS: Final = {
    "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "EE": 20, "ES": 24, "FI": 18,
    "FR": 27, "GB": 22, "GR": 27, "HR": 21, "HU": 28, "IE": 22, "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20,
    "LV": 21, "MC": 27, "MT": 31, "NL": 18, "NO": 15, "PL": 28, "PT": 25, "RO": 24, "SE": 24, "SI": 19, "SK": 24,
    "SM": 27, "TR": 26, "UA": 29, "SA": 24, "AE": 23, "IL": 23, "BR": 29,
}  # fmt: skip


def _has_iban_length(text: str) -> bool:
    bare = text.replace(" ", "")
    return _IBAN_LENGTHS.get(bare[:2].upper()) == len(bare)


def _has_iban_sum(text: str) -> bool:
    bare = text.replace(" ", "")
    return int("".join(str(int(one, 36)) for one in bare[4:] + bare[:4])) % 97 == 1


_IBAN_CHECKS: Final[Mapping[str, Check]] = {
    "its country's length": _has_iban_length,
    "check sum": _has_iban_sum,
}
"""Conditions that every IBAN (international bank account number, ISO 13616) meets."""


def _is_phone(text: str) -> bool:
    """Return whether an international phone number is possible."""
    read = _phone_reader()
    return 8 <= len(_digits(text)) <= 15 if read is None else read(text)


@cache
def _phone_reader() -> Callable[[str], bool] | None:
    if find_spec("phonenumbers") is None:
        return None
    phonenumbers = import_module("phonenumbers")

    def is_possible(text: str) -> bool:
        try:
            return bool(phonenumbers.is_valid_number(phonenumbers.parse(text, None)))
        except phonenumbers.NumberParseException:
            return False

    return is_possible


KINDS: Final = (
    _kind("us-ssn", _NUMBER, r"[0-9]{3}([- .])[0-9]{2}\1[0-9]{4}", _SSN_CHECKS),
    _kind("taiwan-id", _NUMBER, r"[A-Za-z][A-Da-d1289][0-9]{8}", {"check digit": is_taiwan_id}),
    _kind("taiwan-mobile", _NUMBER, r"(?:\+?886[- ]?|0)9[0-9]{2}[- ]?[0-9]{3}[- ]?[0-9]{3}"),
    _kind("card", _NUMBER, r"[0-9](?:[ -]?[0-9]){12,18}", _CARD_CHECKS),
    _kind(
        "iban", _NUMBER, r"[A-Za-z]{2}[0-9]{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,3})?", _IBAN_CHECKS
    ),
    _kind("email", _AT, r"[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}"),
    _kind("phone", _PLUS, r"(?<!\w)\+[1-9][0-9]{0,2}(?:[ ().-]{0,2}[0-9]){6,13}", {"can exist": _is_phone}),
)
"""All known kinds, in the order in which they are matched."""

BY_NAME: Final = {kind.name: kind for kind in KINDS}


def found_in(view: View, kinds: tuple[Kind, ...] = KINDS) -> Iterator[tuple[str, int, int]]:
    """Yield the kind, start and end of each piece of personal data in a view, as positions in the original text."""
    taken = bytearray(len(view.text))
    parts: dict[re.Pattern[str], list[tuple[int, int]]] = {}
    for kind in kinds:
        if kind.hint not in parts:
            places = [found.start() for found in kind.hint.finditer(view.text)]
            parts[kind.hint] = near(places, _REACH, len(view.text))
        for first, last in parts[kind.hint]:
            for start, end in _valid(kind, view.text, first, last):
                if not any(taken[start:end]):
                    taken[start:end] = b"\1" * (end - start)
                    yield kind.name, *view.span(start, end)


def _valid(kind: Kind, text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of valid data of a kind in part of a text.

    A match may be shortened until it is valid, because the characters after the data may look like part of it.
    """
    found = kind.pattern.search(text, first, last)
    while found is not None:
        start, end = found.span()
        while end > start and not _is(kind, text, start, end):
            end -= 1
        if end > start:
            yield start, end
        found = kind.pattern.search(text, end if end > start else start + 1, last)


def _is(kind: Kind, text: str, start: int, end: int) -> bool:
    cut = text[end : end + 1]
    whole = not (cut.isascii() and (cut.isalnum() or cut == "_")) and kind.pattern.fullmatch(text, start, end)
    return bool(whole) and kind.is_valid(text[start:end])
