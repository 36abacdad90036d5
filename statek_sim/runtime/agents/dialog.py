"""The dialog with a user: delivering messages (behaviour 6.4), reading them from the chat log, and building requests.

Request messages are in OpenAI's format, byte for byte as STATEK writes them. `style` may be None for a job
without a chat style, which is treated like CONSOLE. `xml_tag` is the tag name from STATEK_XML_BOX_CONSOLE, or
None. `plain` selects the form used by STATEK's Anthropic and Gemini adapters (behaviour 12): tool results are
not wrapped, and arguments are left unchanged.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from statek_sim.runtime.agents.agent import Agent, JobDef
from statek_sim.runtime.state.access import FULL, current_access
from statek_sim.runtime.state.chat_log import (
    PYTHON_CLI,
    CallSpec,
    ChatItem,
    CodeBlock,
    LLM_LogItem,
    UserLogItem,
    WarmupLogItem,
)
from statek_sim.runtime.state.chat_style import ChatStyle, dialog_messages, extract_dialog, strip_markup
from statek_sim.runtime.state.context import Host
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.state.tool_loop import Running
from statek_sim.runtime.stored.containers import Dict
from statek_sim.values import JSON, Message


def deliver(job: LoggedJob, text: str) -> Generator[Running, None, None]:
    """Send a reply's dialog text with the agent's `send_message`; raises TypeError if the agent has none.

    If `send_message` is async, the generator yields each task that must finish before the generator
    continues.
    """
    send_message = getattr(job.agent, "send_message", None)
    if send_message is None:
        raise TypeError(
            f"MD_DIALOG/DIRECT chat style requires a DialogAgent, got {type(job.agent).__name__}."
        )
    for body, media in dialog_messages(text):
        result = send_message(body=body) if media is None else send_message(body=body, media=media)
        if inspect.iscoroutine(result):
            sending = job.host.start(result)
            if not sending.done():
                yield sending
            sending.result()


class DialogItem(NamedTuple):
    """A message between the user and the agent; `role` is `user` or `assistant`."""

    role: str
    message: str


def dialog_of(job: LoggedJob) -> Iterator[DialogItem]:
    """Yield the messages between the user and the agent, oldest first, including those sent with the `answer` tool."""
    for index, item in enumerate(job.chat_log):
        if isinstance(item, str | UserLogItem):
            text = item if isinstance(item, str) else item.message
            if text:
                yield DialogItem("user", text)
        elif isinstance(item, LLM_LogItem | WarmupLogItem):
            entry = _dialog_text(job, item)
            if entry is not None:
                yield DialogItem("assistant", entry)
            for body in _answers(job, index):
                yield DialogItem("assistant", body)


def chat_responses(job: LoggedJob) -> Iterator[str]:
    """Yield the agent's messages to its user, oldest first. If the job has no dialog style, yield all replies."""
    for index, item in enumerate(job.chat_log):
        if isinstance(item, LLM_LogItem) and faces_user(job, item):
            _refuse_agent_code(job.chat_style is None, "chat_style")
            response = item.llm_resp
            text = response.code if isinstance(response, CodeBlock) else response
            if isinstance(response, str) or text:
                yield text or ""
        if isinstance(item, LLM_LogItem | WarmupLogItem):
            yield from _answers(job, index)


def count_llm_actions(job: LoggedJob) -> int:
    """Return how many actions the model has taken in a job: code blocks, tool calls, and messages to the user."""
    return sum(_actions(job, item) for item in job.chat_log)


def faces_user(job: LoggedJob, item: LLM_LogItem) -> bool:
    """Return whether a turn counts as a message to the user.

    If the job has no dialog style, every turn with a reply counts.
    """
    response = item.llm_resp
    if job.chat_style is ChatStyle.DIRECT:
        return isinstance(response, str) and bool(response.strip())
    if job.chat_style is ChatStyle.MD_DIALOG:
        return isinstance(response, str) and any(line.startswith("# ") for line in response.splitlines())
    return response is not None


def _actions(job: LoggedJob, item: ChatItem) -> int:
    response = item.llm_resp if isinstance(item, LLM_LogItem) else None
    if isinstance(response, CodeBlock):
        return len(response.tool_calls) + bool(response.code and response.code.strip())
    return int(isinstance(item, LLM_LogItem) and isinstance(response, str) and faces_user(job, item))


def _dialog_text(job: LoggedJob, item: LLM_LogItem | WarmupLogItem) -> str | None:
    """Return a turn's message to the user, or None; in MD_DIALOG with tool calls, this is the text around the code."""
    if not isinstance(item, LLM_LogItem):
        return None
    response = item.llm_resp
    if isinstance(response, str) and faces_user(job, item):
        return response
    if job.chat_style is ChatStyle.MD_DIALOG and isinstance(response, CodeBlock):
        return extract_dialog(response.code or "") or None
    return None


_LOGGED: Final = "log:"


def _answers(job: LoggedJob, index: int) -> Iterator[str]:
    """Yield the messages sent with the `answer` tool during a turn, read from the turn's console output."""
    log = job.chat_log
    later = (item.console_pos for item in log[index + 1 :] if isinstance(item, LLM_LogItem | WarmupLogItem))
    item = log[index]
    start = item.console_pos if isinstance(item, LLM_LogItem | WarmupLogItem) else 0
    for output in job.py_env.lines[start : next(later, None)]:
        _refuse_agent_code(bool(output), "_chat_response_from_tool_log")
        for line in output.splitlines() if _LOGGED in output else ():
            if line.startswith(_LOGGED) and (body := _answer_body(line.removeprefix(_LOGGED).strip())):
                yield body


def _refuse_agent_code(trips: bool, name: str) -> None:
    """Raise STATEK's error if agent code reads the value.

    In STATEK, a generator has the access rights of the code that reads it. Therefore, agents without a chat
    style cannot read the value of `delegate_mute_task` (checked with 1.2.7 and 1.4.2).
    """
    if trips and current_access() != FULL:
        raise AttributeError(f"Restricted memo attribute access denied: {name}")


def _answer_body(text: str) -> str | None:
    try:
        call = ast.parse(text, mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "answer":
            return None
        values = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        first = ast.literal_eval(call.args[0]) if call.args else None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    body = values.get("content", values.get("body", first))
    return body if isinstance(body, str) else None


def system_message(text: str) -> Message:
    """Return a `system` message: the prompt, a reminder or a notice."""
    return {"role": "system", "content": text}


def user_message(text: str) -> Message:
    """Return a `user` message with the user's text."""
    return {"role": "user", "content": text}


def console_message(text: str, style: ChatStyle | None, xml_tag: str | None) -> Message:
    """Return the `user` message that contains console output."""
    return {"role": "user", "content": console_text(text, style, xml_tag)}


def console_text(text: str, style: ChatStyle | None, xml_tag: str | None) -> str:
    """Return console output wrapped for `style`, and in the tag `xml_tag` if there is one (behaviour 6.5)."""
    shown = _styled_console(text, style)
    return f"<{xml_tag}>\n{shown}\n</{xml_tag}>" if xml_tag else shown


def _styled_console(text: str, style: ChatStyle | None) -> str:
    """Return console output wrapped for `style`, without the configured tag."""
    if style is ChatStyle.MARKDOWN or style is ChatStyle.DIRECT:
        return text
    if style is ChatStyle.MD_DIALOG:
        return f"<CONSOLE>\n{text}\n</CONSOLE>"
    return "> " + text.replace("\n", "\n> ") if text else ""


def assistant_code(code: str, style: ChatStyle | None) -> Message:
    """Return the `assistant` message that contains code, fenced unless the style is DIRECT."""
    content = code if style is ChatStyle.DIRECT else f"```python\n{code}\n```"
    return {"role": "assistant", "content": content}


def assistant_calls(content: str | None, calls: Sequence[CallSpec], *, plain: bool = False) -> Message:
    """Return the `assistant` message that requests `calls`; empty content becomes null."""
    return {
        "role": "assistant",
        "content": content or None,
        "tool_calls": [_wire_call(call, plain=plain) for call in calls],
    }


def tool_message(
    content: str, call_id: JSON, style: ChatStyle | None, xml_tag: str | None, *, plain: bool = False
) -> Message:
    """Return the `tool` message with the result of call `call_id`, wrapped like console output."""
    shown = content if plain else console_text(content, style, xml_tag)
    return {"role": "tool", "content": shown, "tool_call_id": call_id}


def _wire_call(call: CallSpec, *, plain: bool) -> JSON:
    """Return an entry for `tool_calls`, without positional arguments (behaviour 6.5)."""
    arguments = json.dumps(dict(call.kwargs)) if plain else arguments_json(call)
    function: dict[str, JSON] = {"name": call.func_name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def arguments_json(call: CallSpec) -> str:
    """Return a call's keyword arguments as JSON for `function.arguments`.

    Fences around the code in a `python_cli` call are removed. Raises TypeError for a value that cannot be
    serialized to JSON.
    """
    kwargs = dict(call.kwargs)
    code = kwargs.get("code")
    if call.func_name == PYTHON_CLI and isinstance(code, str) and "```" in code:
        kwargs["code"] = strip_markup(code, strict=False)
    return json.dumps(kwargs, default=_jsonable)


def _jsonable(value: object) -> object:
    """Convert another collection type to a list or dict; sets are sorted by their items' `repr`."""
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, Mapping | Dict):
        return {key: value[key] for key in value}
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


class LoggedJob(Protocol):
    """The job interface from which messages are built; implemented by `runtime.jobs.job.Job`."""

    chat_log: list[ChatItem]
    chat_style: ChatStyle | None
    host: Host
    job_def: JobDef
    py_env: PyEnv

    @property
    def agent(self) -> Agent:
        """The job's agent."""

    def system_prompt(self) -> str:
        """Return the agent's prompt, filled in with the job's parameters."""

    @property
    def console_pos(self) -> int:
        """The console's length."""
