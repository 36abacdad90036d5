"""Parsing of `MODEL` metadata: providers, model ids, and models by difficulty (behaviour 11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl

from statek_sim.errors import BadSetting
from statek_sim.harness.settings import TaskDifficulty, parse_difficulty

_KEEPS_FAMILY: Final = frozenset({"OPENROUTER"})
"""Providers with model ids of the form `family/model`."""


class BadModelName(BadSetting, ValueError):
    """Raised for a model name that STATEK rejects.

    Like STATEK's exception, it is also a `ValueError`, and it appears under this name on consoles.
    """


BadModelName.__name__ = BadModelName.__qualname__ = ValueError.__name__


@dataclass(frozen=True, slots=True)
class ModelName:
    """The parts of a model name such as `provider/family/model`; missing parts are None."""

    provider: str | None
    model_family: str | None
    model: str | None
    # Excluded from the hash, because a mapping has no hash.
    params: Mapping[str, str] = field(hash=False)


@lru_cache(maxsize=1024)
def parse_model_name(text: str) -> ModelName:
    """Parse `model`, `family/model` or `provider/family/model`, each optionally followed by `/key=value&...`.

    An empty part counts as missing. Any further slashes belong to the model. Raises `BadModelName`
    for an empty string and for parameters that are not a URL query, with STATEK's message and a note with
    details.
    """
    path, params = _split_params(text.strip())
    if not path and not params:
        raise _with_note(
            BadModelName("model name must not be empty"),
            f"MODEL {text!r}: expected 'model', 'family/model' or 'provider/family/model'",
        )
    parts = [part.strip() or None for part in path.split("/", 2)]
    missing: list[str | None] = [None] * (3 - len(parts))
    provider, family, model = missing + parts
    return ModelName(provider, family, model, MappingProxyType(params))


def model_provider(text: str) -> str | None:
    """Return the provider in the model name `text`, or None if there is none."""
    return parse_model_name(text).provider


def model_for_provider(text: str, provider: str | None) -> str:
    """Return the model id for requests to a provider: `family/model` for OpenRouter, otherwise just the model.

    `provider` may be in any letter case. Raises `BadModelName` if `text` has no model part.
    """
    name = parse_model_name(text)
    if name.model is None:
        raise _with_note(
            BadModelName("model name must include a model component"),
            f"MODEL {text!r}: expected a model after the last '/'",
        )
    if name.model_family is not None and provider is not None and provider.upper() in _KEEPS_FAMILY:
        return f"{name.model_family}/{name.model}"
    return name.model


def check_reasoning(text: str) -> None:
    """Raise `BadModelName` for an invalid reasoning level, or a positive one, which needs a provider configuration."""
    params = parse_model_name(text).params
    levels = {params[key].strip() for key in ("rl", "reasoning_level") if key in params}
    if len(levels) > 1:
        raise BadModelName("rl and reasoning_level specify conflicting values")
    if not levels <= set(map(str, range(101))):
        raise BadModelName("reasoning level must be an integer from 0 through 100")
    if levels - {"0"}:
        raise BadModelName("positive reasoning level requires a provider configuration")


@lru_cache(maxsize=1024)
def models_by_difficulty(text: str) -> Mapping[TaskDifficulty, str]:
    """Return the model for each difficulty, given `MODEL` metadata: one model, or `L:a,M:b,H:c`.

    Labels may share an entry (`LM:a,H:b`); each level must occur exactly once. A string with ":" is always a
    mapping by difficulty, so `llama3.1:8b` alone raises `BadModelName`, with STATEK's message and a note with
    details.
    """
    # When searching for an existing definition, STATEK first parses the whole string as one name.
    parse_model_name(text)
    stripped = text.strip()
    if ":" not in stripped:
        return MappingProxyType(dict.fromkeys(TaskDifficulty, stripped))
    models: dict[TaskDifficulty, str] = {}
    for entry in stripped.split(","):
        for difficulty, model in _entry(text, entry):
            if difficulty in models:
                raise _refused(text, f"Duplicate MODEL metadata for difficulty {difficulty}")
            models[difficulty] = model
    if len(models) < len(TaskDifficulty):
        raise _refused(text, "MODEL metadata must specify all difficulty levels when using difficulty labels")
    return MappingProxyType(models)


def _split_params(text: str) -> tuple[str, dict[str, str]]:
    """Return `text` without its last part, and that part's parameters, if the part contains "="."""
    path, _, last = text.rpartition("/")
    if "=" not in last:
        return text, {}
    try:
        return path, dict(parse_qsl(last, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        raise _with_note(
            BadModelName("model parameters must use URL query syntax"),
            f"MODEL {text!r}: expected parameters as 'key=value&...', got {last!r}",
        ) from None


def _entry(text: str, entry: str) -> Iterator[tuple[TaskDifficulty, str]]:
    """Yield a (difficulty, model) pair for each label in an entry such as `LM:model`."""
    labels, colon, model = (piece.strip() for piece in entry.partition(":"))
    if not colon:
        raise _refused(
            text, "MODEL metadata must use either a single model or difficulty labels for all entries"
        )
    if not (labels and model):
        raise _refused(text, "MODEL metadata difficulty labels and model names must be non-empty")
    for label in labels.upper():
        try:
            difficulty = parse_difficulty(label)
        except ValueError:
            raise _refused(text, f"Invalid task difficulty: {label!r}") from None
        yield difficulty, model


def _refused(text: str, reason: str) -> BadModelName:
    return _with_note(
        BadModelName(reason),
        f"MODEL {text!r}: a ':' means difficulty labels; expected one model without ':', or 'L:', 'M:' and 'H:', each "
        "with a model, as in 'LM:small,H:large'",
    )


def _with_note(error: BadModelName, note: str) -> BadModelName:
    error.add_note(note)
    return error
