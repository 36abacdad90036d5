"""What a model's cache of keys and values (KV) takes: read from a `config.json`, or the table of common models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.input_files import text_of
from statek_sim.values import JSON

KV_TYPES: Final[Mapping[str, Fraction]] = {
    "f32": Fraction(4),
    "f16": Fraction(2),
    "bf16": Fraction(2),
    "q8_0": Fraction(34, 32),
    "q5_1": Fraction(24, 32),
    "q5_0": Fraction(22, 32),
    "q4_1": Fraction(20, 32),
    "q4_0": Fraction(18, 32),
    "iq4_nl": Fraction(18, 32),
}
"""Bytes of one number in the cache. A quantised block is 32 numbers with their scale (llama.cpp `ggml-common.h`).

What the weights are quantised to has nothing to do with it.
"""

_PATTERNS: Final[Mapping[str, int]] = {
    "gemma2": 2,
    "gemma3": 6,
    "gemma3_text": 6,
    "gpt-oss": 2,
    "gpt_oss": 2,
    "cohere2": 4,
}
"""Architectures in which one layer of so many sees everything, the others a window, where their file does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Numbers that one layer keeps for each token, keys and values together, for at most `window` tokens."""

    numbers: int
    window: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KvShape:
    """A model's layers, and the longest context that it was made for (None: it does not say)."""

    layers: tuple[Layer, ...]
    longest: int | None
    source: str = ""

    def bytes_per_token(self, kv: str = "f16") -> Fraction:
        """Return the bytes that one token takes while no window is full."""
        return kv_bytes(kv) * sum(layer.numbers for layer in self.layers)

    def bytes_for(self, tokens: int, kv: str = "f16", *, windows: bool = True) -> Fraction:
        """Return the bytes that a context takes; `windows` off: every layer keeps everything, as some servers do."""
        kept = (
            layer.numbers * (min(tokens, layer.window) if windows and layer.window is not None else tokens)
            for layer in self.layers
        )
        return kv_bytes(kv) * sum(kept)

    def tokens_in(self, free: int, kv: str = "f16", *, windows: bool = True) -> int | None:
        """Return how many tokens fit into `free` bytes; None: any number, because every layer has a window."""
        low, high = 0, 1
        most = self.bytes_for(2**62, kv, windows=windows)
        if most <= free or not self.layers:
            return None
        while self.bytes_for(high, kv, windows=windows) <= free:
            high *= 2
        while low < high - 1:
            half = (low + high) // 2
            if self.bytes_for(half, kv, windows=windows) <= free:
                low = half
            else:
                high = half
        return low


def kv_bytes(kv: str) -> Fraction:
    """Return the bytes of one number of this type; `BadInput` for an unknown type."""
    if kv not in KV_TYPES:
        problem = (
            f"no type of cache is called {kv!r}, expected {', '.join(KV_TYPES)}.{suggestion(kv, KV_TYPES)}"
        )
        raise BadInput(problem.removesuffix("."))
    return KV_TYPES[kv]


def shape_of_config(config: Mapping[str, JSON], source: str) -> KvShape:
    """Return the shape that a `config.json` describes; `BadInput` names what is missing.

    Of a model that sees as well as reads it is the `text_config`.
    """
    inner = config.get("text_config")
    metadata: Mapping[str, JSON] = {**config, **inner} if isinstance(inner, dict) else config
    fields = _Fields(metadata, source)
    layers = fields.number("num_hidden_layers", "n_layer")
    numbers = _numbers(fields)
    windows = _windows(metadata, layers, fields)
    return KvShape(
        layers=tuple(Layer(numbers=numbers, window=window) for window in windows),
        longest=fields.optional("max_position_embeddings", "n_positions"),
        source=source,
    )


def _numbers(fields: _Fields) -> int:
    """Return the numbers that a layer keeps per token: keys and values, or DeepSeek's one vector."""
    compressed = fields.optional("kv_lora_rank")
    if compressed is not None:
        return compressed + fields.number("qk_rope_head_dim")
    heads = fields.number("num_attention_heads", "n_head")
    kv_heads = fields.optional("num_key_value_heads", "n_head_kv") or heads
    size = fields.optional("head_dim") or fields.number("hidden_size", "n_embd") // heads
    return 2 * kv_heads * size


def _windows(config: Mapping[str, JSON], layers: int, fields: _Fields) -> list[int | None]:
    window = fields.optional("sliding_window")
    if window is None or config.get("use_sliding_window") is False:
        return [None] * layers
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        return [window if kind == "sliding_attention" else None for kind in kinds]
    every = fields.optional("sliding_window_pattern") or _PATTERNS.get(str(config.get("model_type")))
    return [window if every is None or (at + 1) % every else None for at in range(layers)]


@dataclass(frozen=True, slots=True)
class _Fields:
    """A mapping with numbers, and where it came from."""

    metadata: Mapping[str, JSON]
    source: str

    def optional(self, *names: str) -> int | None:
        """Return the first of these numbers that is there."""
        for name in names:
            value = self.metadata.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise BadInput(f"{self.source}: {name} is {value!r}, expected a whole number")
            return value
        return None

    def number(self, *names: str) -> int:
        """Return the first of these numbers above 0; `BadInput` where there is none."""
        value = self.optional(*names)
        if not value:
            raise BadInput(f"{self.source}: {' or '.join(names)} is missing, expected a whole number above 0")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model and its shape."""

    name: str
    shape: KvShape


@cache
def known_models() -> Mapping[str, Model]:
    """Return the models of the table by name, the smallest first."""
    text = resources.files("statek_sim.agent.context").joinpath("models.json").read_text(encoding="utf-8")
    document = json.loads(text)
    found = {}
    for entry in document["models"]:
        source = f"{document['sources'][entry['source']]}: {entry['key']}"
        found[entry["name"]] = Model(name=entry["name"], shape=shape_of_config(entry["config"], source))
    return found


def model_called(name: str) -> Model:
    """Return a model of the table, or the one in a file; `BadInput` when there is neither."""
    known = known_models()
    if name in known:
        return known[name]
    path = Path(name)
    if path.is_dir():
        path /= "config.json"
    if path.suffix == ".json":
        return Model(name=str(path.parent.name or path.name), shape=shape_of_config(_config(path), str(path)))
    problem = f"{name!r} is no config.json, no folder with one, and none of {', '.join(known)}."
    raise BadInput((problem + suggestion(name, known)).removesuffix("."))


def _config(path: Path) -> Mapping[str, JSON]:
    try:
        document = json.loads(text_of(path))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise BadInput(f"{path}: expected an object, like the config.json of a model")
    return document
