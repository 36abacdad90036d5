"""What the messages and tools of a request must look like, as each provider checks it.

Parts and tools have a shape of their own, and calls of tools and their results must alternate: OpenAI, Anthropic and
Google refuse a shortened history or a forgotten result with status 400, in words of their own.

The checks stand here and not where formats are read: what STATEK sends, and what a cassette has, is read however it
looks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from statek_sim.providers.wire.request import FormatName
from statek_sim.server.refusals import numbered_objects
from statek_sim.values import JSON, Message

Wrong = Iterator[tuple[str, str]]
"""The parameter that is wrong, and why."""

_PART: Final = frozenset(
    {
        "text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode",
        "codeExecutionResult", "toolCall", "toolResponse", "thought", "thoughtSignature",
    }
)  # fmt: skip
"""What a part may be at Google's."""

_TOOL: Final = frozenset(
    {
        "functionDeclarations", "googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "googleMaps",
        "computerUse", "fileSearch", "retrieval", "enterpriseWebSearch", "mcpServers", "parallelAiSearch",
    }
)  # fmt: skip
"""What a tool may be at Google's."""


def wrong_contents(wire: FormatName, body: JSON) -> Wrong:
    """Yield the parameters whose parts or tools the provider refuses; other shapes are found where they are read."""
    if isinstance(body, dict):
        yield from _CHECKS[wire](body)


def _openai(body: Mapping[str, JSON]) -> Wrong:
    yield from _messages(body, "messages")
    if "tools" in body:
        yield from _typed(body["tools"], "tools", "tools")


def _responses(body: Mapping[str, JSON]) -> Wrong:
    yield from _messages(body, "input")
    yield from _typed(body.get("tools"), "tools", "tools")


def _anthropic(body: Mapping[str, JSON]) -> Wrong:
    yield from _typed(body.get("system"), "system", "system")
    yield from _messages(body, "messages")
    for where, tool in _objects(body.get("tools"), "tools"):
        kind = tool.get("type")
        if kind is not None and not isinstance(kind, str):
            yield "tools", _expected(f"{where}.type", tool, "type")
        elif kind is None and not isinstance(tool.get("name"), str):
            yield "tools", _expected(f"{where}.name", tool, "name")


def _gemini(body: Mapping[str, JSON]) -> Wrong:
    inner = body.get("generateContentRequest")
    members = inner if isinstance(inner, dict) and "contents" not in body else body
    for where, content in _objects(members.get("contents"), "contents"):
        for why in wrong_parts(content.get("parts"), f"{where}.parts"):
            yield "contents", why
    prompt = members.get("systemInstruction")
    if isinstance(prompt, dict):
        for why in wrong_parts(prompt.get("parts"), "systemInstruction.parts"):
            yield "systemInstruction", why
    for where, tool in _objects(members.get("tools"), "tools"):
        if tool and _TOOL.isdisjoint(tool):
            yield "tools", f"{where}: expected a kind of tool, got {', '.join(tool)[:80]}"


_CHECKS: Final[Mapping[FormatName, Callable[[Mapping[str, JSON]], Wrong]]] = {
    "openai": _openai,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


def wrong_parts(parts: JSON, where: str) -> Iterator[str]:
    """Yield why Google refuses some of the parts of a content."""
    for place, part in _objects(parts, where):
        text = part.get("text")
        if _PART.isdisjoint(part):
            yield f"{place}: expected something in it, as text or inlineData"
        elif text is not None and not isinstance(text, str):
            yield _expected(f"{place}.text", part, "text")


def _messages(body: Mapping[str, JSON], parameter: str) -> Wrong:
    messages = body.get(parameter)
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            yield from _typed(content, f"{parameter}[{number}].content", parameter)


def _typed(parts: JSON, where: str, parameter: str) -> Wrong:
    """Yield what is wrong with things each of which says what it is: a part of a message, a block, a tool."""
    for place, part in _objects(parts, where):
        kind = part.get("type")
        if not isinstance(kind, str):
            yield parameter, _expected(f"{place}.type", part, "type")
        elif kind == "text" and parameter != "tools" and not isinstance(part.get("text"), str):
            yield parameter, _expected(f"{place}.text", part, "text")


def _objects(values: JSON, where: str) -> Iterator[tuple[str, dict[str, JSON]]]:
    """Yield the objects of a list, each with where it is."""
    for number, value in numbered_objects(values):
        yield f"{where}[{number}]", value


def _expected(where: str, given: Mapping[str, JSON], member: str) -> str:
    found = f"{str(given[member])[:80]!r}" if member in given else "nothing"
    return f"{where}: expected a string, got {found}"


_WITHOUT_RESULT: Final[Mapping[FormatName, str]] = {
    "openai": "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    "responses": "No tool output found for function call {ids}.",
    "anthropic": "`tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message.",
    "gemini": "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn.",
}
_WITHOUT_CALL: Final[Mapping[FormatName, str]] = {
    "openai": "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
    "'tool_calls'; there is no call {ids}",
    "responses": "No tool call found for function call output with call_id {ids}.",
    "anthropic": "unexpected `tool_use_id` found in `tool_result` blocks: {ids}. Each `tool_result` block must have a "
    "corresponding `tool_use` block in the previous message.",
    "gemini": "Please ensure that function response turn comes immediately after a function call turn.",
}


_MERGED: Final = ("anthropic", "gemini")
"""Where messages of one role in a row are one turn: https://platform.claude.com/docs/en/api/messages."""


def out_of_turn(messages: Sequence[Message], wire: FormatName) -> str | None:
    """Return why the provider of a format refuses a conversation, in OpenAI's shape; None when it does not."""
    open_calls: Counter[str] = Counter()
    role: JSON = None
    for message in messages:
        before, role = role, message.get("role")
        if role == "tool":
            answered = _key(message.get("tool_call_id"), wire)
            if not open_calls[answered]:
                return _WITHOUT_CALL[wire].format(ids=answered)
            open_calls[answered] -= 1
            continue
        calls = Counter(_ids(message.get("tool_calls"), wire))
        if wire in _MERGED and before == role == "assistant":
            calls += open_calls
        elif open_calls.total():
            return _WITHOUT_RESULT[wire].format(ids=_listed(open_calls))
        open_calls = calls
    # Google takes a turn of calls at the end.
    if open_calls.total() and wire != "gemini":
        return _WITHOUT_RESULT[wire].format(ids=_listed(open_calls))
    return None


def _ids(calls: JSON, wire: FormatName) -> Iterable[str]:
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            yield _key(call.get("id"), wire)


def _key(name: JSON, wire: FormatName) -> str:
    """Return what a call and its result are matched by; Google counts them, and their ids may be left out."""
    return "" if wire == "gemini" else str(name)


def _listed(calls: Counter[str]) -> str:
    return ", ".join(name for name, times in calls.items() if times)
