"""The agents of a scenario as STATEK's own."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import dbzero
from statek.agents import DialogAgent
from statek.agents.agent import SupervisedAgent
from statek.prompt_config import make_system_prompt

from statek_sim.backends.installed import stored_world
from statek_sim.backends.written_agents import metadata_of
from statek_sim.scenario.schema import AgentText


class UnusableTool(Exception):
    """A tool of the user's own cannot be had in this interpreter; the message says why."""


@dbzero.memo
class Agent(SupervisedAgent):
    """An agent that jobs can be created for; its class has the name that the reference runtime shows in errors."""


def make_agent(role: str, text: AgentText) -> Any:
    """Return an agent as a scenario describes it; its store must be open."""
    metadata = metadata_of(text)
    own = [_tool(name) for name in text.tools]
    prompt = make_system_prompt(text.prompt) if text.prompt else None
    if text.dialog:
        agent = DialogAgent(_send, tools=own, role=role, add_answer_tool=text.answer_tool, _metadata=metadata)
        agent._system_prompt = prompt
    else:
        agent = Agent(role=role, _system_prompt=prompt, _tools=own, _metadata=metadata)
    if text.reminder is not None:
        agent.set_new_reminder(text.reminder.text, min_dialog_len=text.reminder.min_dialog_len)
    if text.warmup is not None:
        agent.update_warmup_def(text.warmup)
    return agent


def _tool(name: str) -> Callable[..., Any]:
    """Return a tool by built-in name or `module:attribute`."""
    if ":" not in name:
        return stored_world.TOOLS[name]
    found = _attribute(name)
    if not hasattr(found, "tool_hidden") or found not in stored_world.registered_tools():
        raise UnusableTool(
            f"{name!r} is no tool of STATEK's; on the installed package tools say: from statek import tool"
        )
    return found  # type: ignore[no-any-return]  # checked just above


def is_async(name: str) -> bool:
    """Return whether a tool is a coroutine function."""
    return inspect.iscoroutinefunction(inspect.unwrap(_tool(name)))


def _attribute(name: str) -> Any:
    """Import `module:attribute`."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:  # importing runs the user's code
        raise UnusableTool(
            f"{name!r} cannot be imported: {type(error).__name__}: {error}{_hint(module, error)}"
        ) from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UnusableTool(f"module {module!r} has no {path!r}") from None
    return found


def _hint(module: str, error: Exception) -> str:
    """Return what to do about a module that is not there; nothing for one that fails."""
    if isinstance(error, ModuleNotFoundError) and error.name is not None:
        if module == error.name or module.startswith(f"{error.name}."):
            return (
                "; run this in the folder that holds it, add that folder to PYTHONPATH, or install it there"
            )
        return f"; install {error.name} for that interpreter, which imports {module} by itself"
    return ""


class _Outbox:
    """Where messages to users go."""

    deliver: Callable[[str, Any], None] | None = None


outbox = _Outbox()


def _send(body: str, media: str | None = None) -> None:
    """The user of every dialog agent: reads and stays silent. What was sent is in the trace."""
    # Up to 1.2 that is the description of a tool, so it is the same as in the reference backend.
    if outbox.deliver is not None:
        outbox.deliver(body, media)
