"""Reads the `@pytest.mark.statek(...)` marker, which contains a test's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from pytest_statek.options import STORAGE_MODES, STRICT, Requested, joined
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.harness.preset import located_preset
from statek_sim.testing import LIMITS, LabSettings
from statek_sim.world.queue import ItemStatus, WorkItem

ARGUMENTS: Final = ("profile", "preset", "limits", "seed", "items", "wall_clock", "allow_network", "storage")
_ITEM_KEYS: Final = ("id", "status", "owner")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """A test's settings: the lab, the clock, network access and how strict the store is."""

    lab: LabSettings
    virtual_wall_clock: bool
    allow_network: bool
    strict_storage: bool


def wishes_of(
    node: pytest.Item, requested: Requested, *, profile: str = "docs", strict_storage: bool = False
) -> Wishes:
    """Return a test's settings, from the nearest marker's arguments or else the run's options.

    `profile` and `strict_storage` are defaults. With strict storage, the test fails if the store loses a value. Raises
    `BadInput` for an unknown or invalid argument.
    """
    arguments = _arguments(node)
    return Wishes(
        lab=LabSettings(
            profile=_profile(arguments.get("profile"), requested, profile),
            preset=_preset(arguments.get("preset"), node.path.parent) or _default_preset(requested),
            limits=_limits(arguments.get("limits", {})),
            seed=_seed(arguments.get("seed"), requested),
            items=_items(arguments.get("items", ())),
        ),
        virtual_wall_clock=_one_of("wall_clock", arguments.get("wall_clock", "virtual"), ("virtual", "real"))
        == "virtual",
        allow_network=_flag("allow_network", arguments.get("allow_network", False))
        or requested.allow_network,
        strict_storage=_strict(arguments.get("storage", requested.storage), strict_storage),
    )


def _arguments(node: pytest.Item) -> dict[str, object]:
    arguments: dict[str, object] = {}
    for mark in node.iter_markers("statek"):
        if mark.args:
            raise BadInput(f"expected keyword arguments, such as profile=..., got {mark.args[0]!r}")
        for name, value in mark.kwargs.items():
            _known("argument", name, ARGUMENTS)
            arguments.setdefault(name, value)
    return arguments


def _profile(argument: object, requested: Requested, otherwise: str) -> str:
    if argument is None and not requested.profiles:
        return otherwise
    from statek_sim.suite.run import profile_known  # noqa: PLC0415  # scenarios, which most tests need not

    return profile_known(requested.profiles[0] if argument is None else _text("profile", argument))


def _strict(argument: object, otherwise: bool) -> bool:
    return otherwise if argument is None else _one_of("storage", argument, STORAGE_MODES) == STRICT


def _preset(argument: object, here: Path) -> str | None:
    """Return a marker's preset: a name, or a file in the test's folder or pytest's working folder."""
    if argument is None:
        return None
    text = str(argument) if isinstance(argument, Path) else _text("preset", argument)
    return located_preset(joined(here, text) if (here / text).is_file() else text)


def _default_preset(requested: Requested) -> str:
    return "default" if requested.preset is None else located_preset(requested.preset)


def _seed(argument: object, requested: Requested) -> int:
    if argument is None:
        return seed_of(requested) or 0
    if isinstance(argument, int) and not isinstance(argument, bool):
        return argument
    raise BadInput(f"seed={argument!r}: expected a whole number")


def _limits(argument: object) -> Mapping[str, object]:
    """Return a marker's limits. Only the names are checked here; the harness checks the values."""
    limits = _mapping("limits", argument)
    for name in limits:
        _known("limit", name, LIMITS)
    return limits


def _items(argument: object) -> tuple[WorkItem, ...]:
    if isinstance(argument, str) or not isinstance(argument, list | tuple):
        raise BadInput(
            f"items={argument!r}: expected a list of ids or of mappings with {', '.join(_ITEM_KEYS)}"
        )
    return tuple(_item(entry) for entry in argument)


def _item(entry: object) -> WorkItem:
    if isinstance(entry, str):
        return WorkItem(entry)
    item = _mapping("items", entry)
    for key in item:
        _known("key of an item", key, _ITEM_KEYS)
    owner = item.get("owner")
    return WorkItem(
        _text("id of an item", item.get("id")),
        ItemStatus(_one_of("status of an item", item.get("status", "READY"), tuple(ItemStatus))),
        None if owner is None else _text("owner of an item", owner),
    )


def _known(kind: str, name: object, names: tuple[str, ...]) -> None:
    if name not in names:
        raise BadInput(f"unknown {kind} {name!r}; expected {', '.join(names)}.{suggestion(str(name), names)}")


def _mapping(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise BadInput(f"{name}: expected a mapping, got {value!r}")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadInput(f"{name}={value!r}: expected a string")
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput(f"{name}={value!r}: expected True or False")
    return value


def _one_of(name: str, value: object, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise BadInput(f"{name}={value!r}: expected {' or '.join(map(repr, map(str, choices)))}")
    return str(value)


def seed_of(requested: Requested) -> int | None:
    """Return the requested seed, or None; raises `BadInput` if it is not an integer."""
    if requested.seed is None:
        return None
    try:
        return int(requested.seed)
    except ValueError:
        raise BadInput(f"statek_seed={requested.seed!r}: expected a whole number") from None
