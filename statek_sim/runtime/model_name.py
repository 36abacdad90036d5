"""Model selection strings: which model a job asks for, and under which name (behaviour 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl

from statek_sim.errors import BadSetting
from statek_sim.harness.difficulty import TaskDifficulty, parse_difficulty

_KEEPS_FAMILY: Final = frozenset({"OPENROUTER"})
"""Providers whose model ids are `family/model`."""


class BadModelName(BadSetting, ValueError):  # named like the other Bad* errors
    """A model selection string that STATEK refuses. Also a `ValueError`, as in STATEK."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """The parts of a model selection string; a part it does not have is None."""

    provider: str | None
    model_family: str | None
    model: str | None
    # A mapping has no hash; equal names have equal params, so leaving it out is sound.
    params: Mapping[str, str] = field(hash=False)


@lru_cache(maxsize=1024)
def parse_model_name(text: str) -> ModelName:
    """Return the parts of `model`, `family/model` or `provider/family/model`, any with `/key=value&...`.

    An empty part counts as missing; slashes after the third part belong to the model. `BadModelName` for an
    empty text and for parameters that are no URL query.
    """
    path, params = _split_params(text.strip())
    if not path and not params:
        raise BadModelName(f"model {text!r}: expected 'model', 'family/model' or 'provider/family/model'")
    parts = [part.strip() or None for part in path.split("/", 2)]
    missing: list[str | None] = [None] * (3 - len(parts))
    provider, family, model = missing + parts
    return ModelName(provider, family, model, MappingProxyType(params))


def model_provider(text: str, default: str | None = None) -> str | None:
    """Return the provider that `text` names, else `default`."""
    return parse_model_name(text).provider or default


def model_for_provider(text: str, provider: str | None) -> str:
    """Return the model id sent upstream: the model alone, or `family/model` for OpenRouter.

    `provider` counts in any letter case. `BadModelName` if `text` has no model part.
    """
    name = parse_model_name(text)
    if name.model is None:
        raise BadModelName(f"model {text!r}: expected a model after the last '/'")
    if name.model_family is not None and provider is not None and provider.upper() in _KEEPS_FAMILY:
        return f"{name.model_family}/{name.model}"
    return name.model


@lru_cache(maxsize=1024)
def models_by_difficulty(text: str) -> Mapping[TaskDifficulty, str]:
    """Return the model for each difficulty from `MODEL` metadata: one model, or `L:a,M:b,H:c`.

    Labels may share an entry (`LM:a,H:b`); each level must be named exactly once. Any ":" makes the text a
    difficulty mapping, so `llama3.1:8b` alone is `BadModelName`.
    """
    stripped = text.strip()
    if not stripped:
        raise BadModelName(f"MODEL {text!r}: expected a model, or a model for each of L, M and H")
    if ":" not in stripped:
        return MappingProxyType(dict.fromkeys(TaskDifficulty, stripped))
    models: dict[TaskDifficulty, str] = {}
    for entry in stripped.split(","):
        for difficulty, model in _entry(text, entry):
            if difficulty in models:
                raise BadModelName(f"MODEL {text!r}: difficulty {difficulty} is named twice")
            models[difficulty] = model
    missing = [level for level in TaskDifficulty if level not in models]
    if missing:
        raise BadModelName(f"MODEL {text!r}: no model for {', '.join(missing)}; expected L, M and H")
    return MappingProxyType(models)


def _split_params(text: str) -> tuple[str, dict[str, str]]:
    """Return `text` without its last part and that part as a query, if it has a "="."""
    path, _, last = text.rpartition("/")
    if "=" not in last:
        return text, {}
    try:
        return path, dict(parse_qsl(last, keep_blank_values=True, strict_parsing=True))
    except ValueError:
        raise BadModelName(f"model {text!r}: expected parameters as 'key=value&...', got {last!r}") from None


def _entry(text: str, entry: str) -> list[tuple[TaskDifficulty, str]]:
    """Return what one entry such as `LM:model` says, a pair for each of its labels."""
    labels, _, model = (piece.strip() for piece in entry.partition(":"))
    try:
        if labels and model:
            return [(parse_difficulty(label), model) for label in labels]
    except ValueError:
        pass
    raise BadModelName(
        f"MODEL {text!r}: a ':' means difficulty labels; "
        f"expected 'L:', 'M:' or 'H:' and a model, got {entry!r}"
    )
