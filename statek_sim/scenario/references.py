"""What `{$world: ...}` and `{$job: ...}` in a job's locals stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

from statek_sim.scenario.problem import Keypath
from statek_sim.values import JSON

WorldKind = Literal["owner", "queue", "item", "future"]
WORLD_KINDS: Final[tuple[WorldKind, ...]] = get_args(WorldKind)


@dataclass(frozen=True, slots=True)
class WorldReference:
    """An object of the built-in world; `name` is set for an item, a future, and another owner than the queue's."""

    kind: WorldKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class JobReference:
    """A declared job."""

    name: str


def as_reference(value: JSON) -> WorldReference | JobReference | None:
    """Return what `value` refers to, None when it is plain; raises ValueError when it is malformed."""
    if not isinstance(value, dict) or not any(key.startswith("$") for key in value):
        return None
    if len(value) != 1:
        raise ValueError("a reference is a mapping with one key, $world or $job")
    (key, target), *_ = value.items()
    if key == "$job" and isinstance(target, str):
        return JobReference(target)
    if key == "$world" and isinstance(target, str):
        return _world_reference(target)
    raise ValueError(f"expected {{$world: text}} or {{$job: text}}, got the key {key!r}")


def references_in(
    value: JSON, keypath: Keypath = ()
) -> Iterator[tuple[Keypath, WorldReference | JobReference]]:
    """Yield every reference in `value` with its key path; raises ValueError at a malformed one."""
    reference = as_reference(value)
    if reference is not None:
        yield keypath, reference
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from references_in(inner, (*keypath, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from references_in(inner, (*keypath, position))


def _world_reference(target: str) -> WorldReference:
    kind, colon, name = target.partition(":")
    for known in WORLD_KINDS:
        named = bool(colon and name)
        if kind == known and (named == (known in ("item", "future")) or (known == "owner" and named)):
            return WorldReference(known, name)
    raise ValueError(f"expected owner, owner:ID, queue, item:ID or future:NAME, got {target!r}")
