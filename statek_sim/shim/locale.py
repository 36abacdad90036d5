"""`statek.locale`: languages and countries, and the locale that jobs may be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from statek_sim.runtime.agents.history import HINTS, RULES
from statek_sim.shim.memo import enum, memo
from statek_sim.shim.store import open_store

_LANGUAGES: Final = (
    "AR BG CS DA DE EL EN ES ET FI FR HE HI HR HU IT JA KO LT LV NL NO PL PT RO RU SK SL SR SV TH TR UK VI ZH"
)
_COUNTRIES: Final = (
    "AE AR AT AU BE BG BR CA CH CL CN CO CZ DE DK EE EG ES FI FR GB GR HR HU ID IE IL IN IT JP "
    "KR LT LV MX MY NL NO NZ PH PL PT RO RS RU SA SE SG SI SK TH TR UA US VN ZA"
)
StatekLangCode: Final = enum("StatekLangCode", _LANGUAGES.split())
StatekCountryCode: Final = enum("StatekCountryCode", _COUNTRIES.split())


@memo
@dataclass
class StatekLocale:
    """A language and a country."""

    lang_code: Any
    country_code: Any


_MADE: dict[tuple[int, str], StatekLocale] = {}


def resolve_locale(locale_str: str) -> StatekLocale:
    """Return the locale of a text such as `PL-PL`, the same one each time within a test."""
    key = (id(open_store()), locale_str.upper())
    if key not in _MADE:
        language, country = key[1].split("-", 1)
        _MADE[key] = StatekLocale(StatekLangCode[language], StatekCountryCode[country])
    return _MADE[key]


def get_language_rule(lang_code: Any) -> str | None:
    """Return what follows the system prompt for a language, None for most."""
    return RULES.get(str(lang_code))


def get_language_hint(lang_code: Any) -> str | None:
    """Return what follows a message of the user for a language, None for most."""
    return HINTS.get(str(lang_code))
