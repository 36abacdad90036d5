"""Computes how many tokens of context fit on graphics cards: the key-value cache gets 70 % of the free memory.

A model is a `config.json` in the common format, or a known model by name. Every layer is counted with the whole
context, so a model with sliding-window layers has more room than reported. Models that compress their cache
(`kv_lora_rank`) are not supported.

Source: the agent document §5.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from statek_sim.did_you_mean import with_suggestion
from statek_sim.errors import BadInput
from statek_sim.input_files import read_text
from statek_sim.values import JSON

MIB: Final = 1024 * 1024
"""Bytes per mebibyte, the unit used by `nvidia-smi`."""

SHARE: Final = 0.70
"""The fraction of free memory to use (agent document §5, "to avoid thrashing")."""

KV_TYPES: Final[Mapping[str, Fraction]] = {
    "f32": Fraction(4),
    "f16": Fraction(2),
    "bf16": Fraction(2),
    "q8_0": Fraction(34, 32),
    "q5_1": Fraction(24, 32),
    "q5_0": Fraction(22, 32),
    "q4_1": Fraction(20, 32),
    "q4_0": Fraction(18, 32),
}
"""Bytes per number in the cache. A quantised block holds 32 numbers and their scale (llama.cpp `ggml-common.h`).

This is independent of how the weights are quantised.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model: its number of layers, the cached numbers per token and layer, and its longest context in tokens."""

    name: str
    layers: int
    numbers: int
    longest: int
    source: str

    def bytes_per_token(self, kv: str = "f16") -> Fraction:
        """Return the cache size per token in bytes; raises `BadInput` for an unknown cache type."""
        if kv not in KV_TYPES:
            problem = f"unknown cache type {kv!r}; expected {', '.join(KV_TYPES)}"
            raise BadInput(with_suggestion(problem, kv, KV_TYPES))
        return KV_TYPES[kv] * self.layers * self.numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFit:
    """The context that fits, in `tokens`, and what limits it; `usable` is the memory for the cache in bytes."""

    tokens: int
    bound: str
    usable: int


def fitting(model: Model, free: Sequence[int], *, kv: str = "f16", weights: int = 0) -> ContextFit:
    """Return the context that fits on graphics cards; `free` is the free memory of each card in bytes.

    `weights` is the model's size in bytes, if it is not loaded yet and its memory still counts as free. The model is
    assumed to be split across all cards, as in llama.cpp and vLLM.
    """
    if not free or min(free) < 0 or weights < 0:
        raise BadInput(
            f"free memory is {list(free)!r}, weights are {weights}; expected sizes in bytes, at least 0"
        )
    usable = int(max(0, sum(free) - weights) * SHARE)
    tokens = int(usable / model.bytes_per_token(kv))
    if tokens >= model.longest:
        return ContextFit(tokens=model.longest, bound="the model's longest context", usable=usable)
    return ContextFit(tokens=tokens, bound="memory", usable=usable)


# -- models -----------------------------------------------------------------------------------------------------


def model_of_config(config: Mapping[str, JSON], name: str, source: str) -> Model:
    """Return the model described by a `config.json`; raises `BadInput` that names a missing or invalid field.

    For a multimodal model, its `text_config` is used.
    """
    inner = config.get("text_config")
    fields = {**config, **inner} if isinstance(inner, dict) else dict(config)
    if fields.get("kv_lora_rank") is not None:
        raise BadInput(f"{source}: models with a compressed cache (kv_lora_rank) are not supported")

    def number(key: str, *, default: int | None = None) -> int:
        value = fields.get(key)
        value = default if value is None else value
        if type(value) is not int or value < 1:
            raise BadInput(f"{source}: {key} must be a positive integer, got {value!r}")
        return value

    heads = number("num_attention_heads")
    size = number("head_dim", default=number("hidden_size", default=heads) // heads)
    return Model(
        name=name,
        layers=number("num_hidden_layers"),
        numbers=2 * number("num_key_value_heads", default=heads) * size,
        longest=number("max_position_embeddings"),
        source=source,
    )


@cache
def known_models() -> Mapping[str, Model]:
    """Return the models in `models.json`, keyed by name, smallest first."""
    text = resources.files("statek_sim.agent.context").joinpath("models.json").read_text(encoding="utf-8")
    document = json.loads(text)
    return {
        entry["name"]: model_of_config(
            entry["config"], entry["name"], f"{document['sources'][entry['source']]}: {entry['key']}"
        )
        for entry in document["models"]
    }


def model_called(name: str) -> Model:
    """Return a known model, or the one in a `config.json`; raises `BadInput` if `name` is neither."""
    known = known_models()
    if name in known:
        return known[name]
    path = Path(name)
    if path.is_dir():
        path /= "config.json"
    if path.suffix == ".json":
        return model_of_config(_config(path), path.parent.name or path.name, str(path))
    problem = f"{name!r}: expected a config.json, a folder with one, or one of {', '.join(known)}"
    raise BadInput(with_suggestion(problem, name, known))


def _config(path: Path) -> Mapping[str, JSON]:
    try:
        document = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadInput(f"{path}: expected an object, as in a model's config.json")
    return document


# -- cards ------------------------------------------------------------------------------------------------------

QUERY: Final = (
    "nvidia-smi",
    "--query-gpu=index,name,memory.total,memory.used,memory.free",
    "--format=csv,noheader,nounits",
)
_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A graphics card. Memory is in MiB; `used` is allocated by this and other programs."""

    index: int
    name: str
    total: int
    used: int
    free: int


def nvidia_smi() -> str:
    """Return `nvidia-smi` output that describes the cards."""
    try:
        done = subprocess.run(QUERY, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except FileNotFoundError:
        raise BadInput("nvidia-smi was not found; give the free memory with --free MIB") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise BadInput(f"nvidia-smi: {error}; give the free memory with --free MIB") from None
    return done.stdout


def cards(run: Callable[[], str] = nvidia_smi) -> list[Card]:
    """Return all cards; raises `BadInput` for an invalid line, or if there are no cards."""
    found = [_card(line) for line in run().splitlines() if line.strip()]
    if not found:
        raise BadInput("nvidia-smi lists no cards; give the free memory with --free MIB")
    return found


def _card(line: str) -> Card:
    # A name may contain a comma, a number never does.
    parts = [part.strip() for part in line.split(",")]
    try:
        total, used, free = (int(part) for part in parts[-3:])
        return Card(index=int(parts[0]), name=", ".join(parts[1:-3]), total=total, used=used, free=free)
    except ValueError:
        raise BadInput(
            f"nvidia-smi: {line.strip()!r}: expected index, name, total, used and free memory in MiB; for "
            "a card without its own memory ([N/A]), use --free MIB"
        ) from None
