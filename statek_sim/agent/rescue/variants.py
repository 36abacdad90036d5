"""Named variants of rescue parsing: every rule on which document 004's code and a good part differ.

`document` reads replies as the code of document 004, section 6, component 1, does. `hardened`, the default, reads
what models really write, and refuses what it would have to guess. `forge` reads the formats of document 004's
project of that name: plain and fenced JSON, Mistral's and Qwen's, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from statek_sim.errors import BadInput

Dialect = Literal["json", "fence", "hermes", "mistral", "markup", "keys", "python", "tokens"]
"""A family of formats, see docs/rescue.md."""

ALL_DIALECTS: Final[frozenset[Dialect]] = frozenset(
    ("json", "fence", "hermes", "mistral", "markup", "keys", "python", "tokens")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RescueRules:
    """One consistent set of answers. Sources: document 004, section 6; what its code does was checked by running it."""

    name: str

    extraction: Literal["greedy", "scanner"]
    """How a call is found in text: `\\{.*\\}` from the first brace to the last, so that `{call} see {x}` is nothing, or
    a scanner that knows strings."""

    repairs: Literal["raw text", "values"]
    """What is repaired: the whole reply by three replacements, strings of arguments included, and prose around a
    call makes it fail; or a value while it is read, strings untouched."""

    accepts: Literal["any JSON", "calls"]
    """Whether `42`, `[1]` and NaN count as a parsed reply (the caller then fails), or only calls."""

    dialects: frozenset[Dialect]
    """The formats that are read."""

    duplicate_keys: Literal["last", "refused"]
    """What `{"a": 1, "a": 2}` is."""

    not_numbers: Literal["accepted", "refused"]
    """What NaN, Infinity, 1e999 and integers beyond 64 bits are."""

    control_characters: Literal["dropped", "kept"]
    """What raw control characters in a string become: dropped everywhere (newline and tab then still fail), or kept."""

    checks_tools: bool
    """Whether a call must name an offered tool and fit its schema."""

    max_depth: int | None
    """The most containers inside each other; None: until the interpreter's stack ends (RecursionError)."""

    reformat_errors: Literal["hidden", "raised"]
    """What an error of the optional last stage is: `except Exception` hides even a missing client, or it is raised."""


DOCUMENT: Final = RescueRules(
    name="document",
    extraction="greedy",
    repairs="raw text",
    accepts="any JSON",
    dialects=frozenset(("json",)),
    duplicate_keys="last",
    not_numbers="accepted",
    control_characters="dropped",
    checks_tools=False,
    max_depth=None,
    reformat_errors="hidden",
)
HARDENED: Final = RescueRules(
    name="hardened",
    extraction="scanner",
    repairs="values",
    accepts="calls",
    dialects=ALL_DIALECTS,
    duplicate_keys="refused",
    not_numbers="refused",
    control_characters="kept",
    checks_tools=True,
    max_depth=64,
    reformat_errors="raised",
)
FORGE: Final = RescueRules(
    name="forge",
    extraction="scanner",
    repairs="values",
    accepts="calls",
    dialects=frozenset(("json", "fence", "mistral", "markup")),
    duplicate_keys="refused",
    not_numbers="refused",
    control_characters="kept",
    checks_tools=True,
    max_depth=64,
    reformat_errors="raised",
)
RULES: Final = {rules.name: rules for rules in (DOCUMENT, HARDENED, FORGE)}


def rescue_rules(name: str) -> RescueRules:
    """Return the variant called `name`, or raise BadInput."""
    if name not in RULES:
        raise BadInput(f"no variant of rescue parsing is called {name!r}: {', '.join(RULES)}")
    return RULES[name]
