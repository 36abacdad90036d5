"""The request parameters that the fake server accepts, from `parameters.toml`.

The server rejects unsupported parameters that would change a provider's response. Like the providers, it also rejects
unknown parameters and invalid values, such as a temperature of 9.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, NamedTuple

from statek_sim.values import JSON

Test = Callable[[JSON], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of parameter value. `fits` checks a value; `words` follows "expected" in the error message."""

    words: str
    fits: Test


class Refusal(NamedTuple):
    """A reason for a 400 status: the rejected parameter, the error message, and OpenAI's error code."""

    parameter: str
    why: str
    code: str = "invalid_value"


def _number(low: str, high: str) -> Kind:
    """Accept numbers from `low` to `high`, but not booleans."""
    least, most = float(low), float(high)

    def fits(value: JSON) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most

    return Kind(f"a number from {low} " + (f"to {high}" if most < math.inf else "on"), fits)


def _whole(low: str | None = None) -> Kind:
    """Accept integers (including 3.0) that are at least `low`, or any integer."""

    def fits(value: JSON) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
            return False
        return low is None or value >= int(low)

    return Kind("a whole number" if low is None else f"a whole number of at least {low}", fits)


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(map(repr, words))


def _word(*words: str) -> Kind:
    return Kind(f"one of {_listed(words)}", lambda value: value in words)


def _choice(*words: str) -> Kind:
    return Kind(
        f"one of {_listed(words)} or an object with a type",
        lambda value: value in words or (isinstance(value, dict) and isinstance(value.get("type"), str)),
    )


def _typed(*types: str) -> Kind:
    return Kind(
        f"an object whose type is one of {_listed(types)}",
        lambda value: isinstance(value, dict) and value.get("type") in types,
    )


def _members(*names: str) -> Kind:
    """Accept objects that contain only these keys, in camel case or snake case."""
    known = {name.lower() for name in names}
    return Kind(
        f"an object with only {', '.join(names)}",
        lambda value: isinstance(value, dict) and {key.replace("_", "").lower() for key in value} <= known,
    )


def _texts(value: JSON) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


_KINDS: Final[Mapping[str, Callable[..., Kind]]] = {
    "number": _number,
    "whole": _whole,
    "word": _word,
    "choice": _choice,
    "typed": _typed,
    "members": _members,
    "flag": lambda: Kind("true or false", lambda value: isinstance(value, bool)),
    "text": lambda: Kind("a string", lambda value: isinstance(value, str)),
    "object": lambda: Kind("an object", lambda value: isinstance(value, dict)),
    "list": lambda: Kind("a list", lambda value: isinstance(value, list)),
    "texts": lambda: Kind("a list of strings", _texts),
    "stops": lambda: Kind(
        "a string or a list of up to 4 strings", lambda value: not isinstance(value, list) or len(value) <= 4
    ),
}
"""Maps names to kinds; in `parameters.toml`, a kind's arguments follow its name."""

_OFF: Final[Mapping[str, Test]] = {
    "empty": lambda value: not value,
    "one": lambda value: value == 1,
    "automatic": lambda value: value in ("auto", "disabled"),
    "text only": lambda value: isinstance(value, list) and {str(kind).lower() for kind in value} <= {"text"},
    "no logprobs": lambda value: (
        isinstance(value, list) and not any("logprobs" in str(included) for included in value)
    ),
}
"""Maps names to tests for values that do not enable an unsupported parameter's feature."""

_LONGEST_SHOWN: Final = 80
"""The maximum length of an invalid value in an error message."""

Api = Literal[
    "openai", "responses", "anthropic", "anthropic_count", "gemini", "gemini_config", "embeddings", "gemini_embedding",
    "gemini_batch",
]  # fmt: skip


@cache
def _tables() -> dict[str, Any]:
    text = (resources.files("statek_sim.providers.wire") / "parameters.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def parameters_of(api: Api) -> tuple[frozenset[str], Mapping[str, Test], Mapping[str, Kind]]:
    """Return an API's accepted parameters, and two tables by parameter name.

    The first table contains tests for values that turn an unsupported parameter off; the second contains the valid
    kinds.
    """
    table = _tables()[api]
    kinds = {
        name: _KINDS[words[0]](*words[1:]) for name, text in table["kinds"].items() if (words := text.split())
    }
    off = {name: _OFF[test] for name, test in table.get("off", {}).items()}
    return frozenset(table["accepted"].split()), off, kinds


def refused_parameters(api: Api, body: Mapping[str, JSON], *, within: str = "") -> tuple[Refusal, ...]:
    """Return a refusal for each unsupported parameter in `body`, then for each invalid value.

    `within` is a prefix for the names in messages, such as `generationConfig.`.
    """
    accepted, off, kinds = parameters_of(api)
    given = [(name, value) for name, value in body.items() if value is not None]
    unsupported = [
        _unsupported(f"{within}{name}")
        for name, value in given
        if name not in accepted and not (name in off and off[name](value))
    ]
    wrong = [
        Refusal(f"{within}{name}", f"{within}{name}: expected {kind.words}, got {_shown(value)}")
        for name, value in given
        if (kind := kinds.get(name)) is not None and not kind.fits(value)
    ]
    return (*unsupported, *wrong)


def _unsupported(name: str) -> Refusal:
    why = (
        f"Unsupported parameter `{name}`: remove it, or accept and ignore it "
        f"(script([...], ignored=[{name!r}]), or serve --ignore {name})"
    )
    return Refusal(name, why, "unsupported_parameter")


def _shown(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
