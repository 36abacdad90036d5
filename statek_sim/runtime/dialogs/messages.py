"""Wire messages: the pieces of a conversation in the OpenAI shape, byte for byte as STATEK writes them.

Every `style` argument takes None for a job without a chat style, which looks like CONSOLE.
`xml_tag` is the name of STATEK_XML_BOX_CONSOLE, or None.

`plain` is how STATEK's adapters for Anthropic and Gemini see the same history (behaviour 12): tool results without
the style's wrapping, and arguments as the model gave them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from statek_sim.runtime.agents.agent import Agent
from statek_sim.runtime.agents.job_def import JobDef
from statek_sim.runtime.dialogs.markup import strip_markup
from statek_sim.runtime.state.calls import PYTHON_CLI, CallSpec
from statek_sim.runtime.state.chat_log import ChatItem
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.host import Host
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.stored.containers import Dict
from statek_sim.values import JSON, Message


def system_message(text: str) -> Message:
    """Return a `system` message: the prompt, a reminder or a notice."""
    return {"role": "system", "content": text}


def user_message(text: str) -> Message:
    """Return a `user` message that a person wrote."""
    return {"role": "user", "content": text}


def console_message(text: str, style: ChatStyle | None, xml_tag: str | None) -> Message:
    """Return the `user` message that shows console output."""
    return {"role": "user", "content": console_text(text, style, xml_tag)}


def console_text(text: str, style: ChatStyle | None, xml_tag: str | None) -> str:
    """Return console output as `style` shows it (behaviour 6.5)."""
    shown = _styled_console(text, style)
    return f"<{xml_tag}>\n{shown}\n</{xml_tag}>" if xml_tag else shown


def _styled_console(text: str, style: ChatStyle | None) -> str:
    """Return console output in the style's own wrapping, without the configured tag."""
    if style is ChatStyle.MARKDOWN or style is ChatStyle.DIRECT:
        return text
    if style is ChatStyle.MD_DIALOG:
        return f"<CONSOLE>\n{text}\n</CONSOLE>"
    return "> " + text.replace("\n", "\n> ") if text else ""


def assistant_code(code: str, style: ChatStyle | None) -> Message:
    """Return the `assistant` message that shows code: fenced in every style but DIRECT."""
    content = code if style is ChatStyle.DIRECT else f"```python\n{code}\n```"
    return {"role": "assistant", "content": content}


def assistant_calls(content: str | None, calls: Sequence[CallSpec], *, plain: bool = False) -> Message:
    """Return the `assistant` message that requests `calls`; empty content is sent as null."""
    return {
        "role": "assistant",
        "content": content or None,
        "tool_calls": [_wire_call(call, plain=plain) for call in calls],
    }


def tool_message(
    content: str, call_id: JSON, style: ChatStyle | None, xml_tag: str | None, *, plain: bool = False
) -> Message:
    """Return the `tool` message that answers call `call_id`; results are shown like console output."""
    shown = content if plain else console_text(content, style, xml_tag)
    return {"role": "tool", "content": shown, "tool_call_id": call_id}


def _wire_call(call: CallSpec, *, plain: bool) -> JSON:
    """Return one entry of `tool_calls`. Positional arguments are not sent (behaviour 6.5)."""
    arguments = json.dumps(dict(call.kwargs)) if plain else arguments_json(call)
    function: dict[str, JSON] = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def arguments_json(call: CallSpec) -> str:
    """Return the keyword arguments as the JSON text of `function.arguments`.

    The code of a `python_cli` call loses its fences. A value that JSON cannot hold is a `TypeError`.
    """
    kwargs = dict(call.kwargs)
    code = kwargs.get("code")
    if call.name == PYTHON_CLI and isinstance(code, str) and "```" in code:
        kwargs["code"] = strip_markup(code, strict=False)
    return json.dumps(kwargs, default=_jsonable)


def _jsonable(value: object) -> object:
    """Return a list or dict for other collections; sets come in the order of their items' repr."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, Mapping | Dict):
        return {key: value[key] for key in value}
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class LoggedJob(Protocol):
    """A job, as far as its conversation is concerned; `runtime.jobs.job.Job` is one."""

    chat_log: list[ChatItem]
    chat_style: ChatStyle | None
    host: Host
    job_def: JobDef
    py_env: PyEnv

    @property
    def agent(self) -> Agent:
        """The agent that does the work."""

    @property
    def raised_at(self) -> list[int]:
        """Lengths of the chat log at rises of the difficulty."""

    @property
    def console_pos(self) -> int:
        """The length of the console."""

    def spend(self, seconds: float) -> None:
        """Note virtual seconds that a tool slept."""
