"""From a scenario's file to what any runtime is given: prompt metadata, chat styles, and values for jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from statek_sim.backends.runtime_port import DrivenWorld
from statek_sim.scenario.part import JobReference, WorldReference, as_reference
from statek_sim.scenario.schema import AgentText, Scenario
from statek_sim.values import JSON


def metadata_of(text: AgentText) -> dict[str, str]:
    """Return the metadata of an agent's prompt, its MODEL included."""
    metadata = {"MODEL": text.model, **{key: str(value) for key, value in text.metadata.items()}}
    if text.chat_style is not None and text.dialog:
        metadata["CHAT_STYLE"] = text.chat_style
    if text.tools_scope is not None:
        metadata["LLM_TOOLS_SCOPE"] = text.tools_scope
    if text.temperature is not None:
        metadata["TEMPERATURE"] = str(text.temperature)
    return metadata


def style_of_all(scenario: Scenario) -> str | None:
    """Return the chat style that every agent but dialog agents has, which STATEK then gets as its setting."""
    styles = {text.chat_style for text in scenario.agents.values() if not text.dialog}
    return styles.pop() if len(styles) == 1 else None


def style_of_definitions(text: AgentText, of_all: str | None) -> str | None:
    """Return the chat style that an application gives to the definition of each of an agent's jobs, None for none.

    There is no other way for a plain agent to have a style that is not the setting's (`of_all`): only dialog agents
    read theirs from their metadata. A definition that was given one is no other job's (`find_existing_job_def`).
    """
    return None if text.dialog or text.chat_style == of_all else text.chat_style


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
