"""From values that a scenario's file has to what its jobs are given, on any runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from statek_sim.backends.side import DrivenWorld
from statek_sim.scenario.references import JobReference, WorldReference, as_reference
from statek_sim.values import JSON


def world_object(world: DrivenWorld, reference: WorldReference) -> object:
    """Return what a reference to the world stands for."""
    match reference.kind:
        case "owner":
            return world.owner_named(reference.name)
        case "queue":
            return world.queue_value
        case "item":
            return world.queue.items[reference.name]
        case "future":
            return world.events[reference.name]
        case _:
            assert_never(reference.kind)


def argument(value: JSON, world: DrivenWorld, job: Callable[[str], Any]) -> Any:
    """Return what `value` stands for; references are looked up in `world` and by `job`, new containers hold them."""
    reference = as_reference(value)
    if isinstance(reference, JobReference):
        return job(reference.name)
    if reference is not None:
        return world_object(world, reference)
    if isinstance(value, list):
        return [argument(item, world, job) for item in value]
    if isinstance(value, dict):
        return {key: argument(item, world, job) for key, item in value.items()}
    return value
