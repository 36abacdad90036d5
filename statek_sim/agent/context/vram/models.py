"""Common models by name, and models in files: a `config.json`, or a folder with one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from statek_sim.agent.context.vram.shape import KvShape, shape_of_config
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.input_files import text_of
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model and its shape."""

    name: str
    shape: KvShape


@cache
def known_models() -> Mapping[str, Model]:
    """Return the models of the table by name, the smallest first."""
    text = (
        resources.files("statek_sim.agent.context.vram").joinpath("models.json").read_text(encoding="utf-8")
    )
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
