"""The contents of a request, in one shape for all formats.

Messages are in OpenAI's shape. Content that OpenAI's format cannot express is in one more key of an assistant message:
`NATIVE_ANTHROPIC` or `NATIVE_GEMINI` holds the turn's own blocks (a model's signed thoughts must be sent back
unchanged), and then overrides `content` and `tool_calls`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeVar

from statek_sim.errors import BadRequest
from statek_sim.providers.wire.parameters import Refusal
from statek_sim.values import JSON, Message, ToolSpec

FormatName = Literal["openai", "responses", "anthropic", "gemini"]

NATIVE_ANTHROPIC: Final = "anthropic_content"
NATIVE_GEMINI: Final = "gemini_parts"

T = TypeVar("T", str, int)
_NAMES: Final[Mapping[type, str]] = {str: "a string", int: "a whole number"}


class RequestContent(Protocol):
    """The source of a request body: `ChatRequest` and `WireRequest` both implement it.

    A first message with the role `system` is the system prompt. Formats that do not support later ones leave them out,
    as STATEK does.
    """

    @property
    def model(self) -> str:
        """The model's name upstream."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation in OpenAI's shape."""

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The offered tools in OpenAI's shape."""

    @property
    def temperature(self) -> float | None:
        """The sampling temperature, None if not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """A request's requirements on the form of any reply.

    `stop`: texts before which a reply ends. `max_tokens`: the maximum length. `json_object`: its text must be a JSON
    object. `calls`: whether it may, must or must not call tools; `call_names` are the allowed tools, all if empty.
    `one_call`: at most one call.
    """

    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    json_object: bool = False
    calls: Literal["may", "must", "must not"] = "may"
    call_names: tuple[str, ...] = ()
    one_call: bool = False


NO_DEMANDS: Final = Demands()
"""No requirements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request as a server reads it. `stream_usage`: the client wants usage at the end of the stream.

    `refused`: parameters that are unsupported or unknown, or have invalid values. `echo`: the parts that a `responses`
    answer repeats; `previous`: the answer that such a request continues; `thinks`: the model signs its thoughts, which
    must be sent back with the calls that followed them. `shows_thinking`: answers may show the model's thinking; if
    not, the name of the parameter that requests it. `logprobs`: the answer is to have log probabilities; if not, the
    name of the parameter that requests them.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    demands: Demands = NO_DEMANDS
    stream: bool = False
    stream_usage: bool = False
    refused: tuple[Refusal, ...] = ()
    echo: Mapping[str, JSON] | None = None
    previous: str | None = None
    thinks: bool = False
    shows_thinking: Literal[True] | str = True
    logprobs: Literal[True] | str = ""

    @property
    def max_tokens(self) -> int | None:
        """The maximum length of the reply, in tokens."""
        return self.demands.max_tokens

    @property
    def last_message(self) -> str:
        """The text of the last message, or the empty string."""
        return text_in(self.messages[-1].get("content")) if self.messages else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Settings of requests besides the conversation.

    `prompt_caching` (STATEK's `CLAUDE_USE_PROMPT_CACHING`) marks text for Anthropic's cache; other formats ignore it.
    `max_tokens` limits the answer, in tokens; STATEK itself limits only Anthropic's.
    """

    prompt_caching: bool = False
    max_tokens: int | None = None


PLAIN: Final = ClientOptions()
"""STATEK's defaults."""


def split_prompt(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the system prompt, "" without one, and the messages that are not system messages."""
    prompt = messages[0].get("content") if messages and messages[0].get("role") == "system" else ""
    rest = [message for message in messages if message.get("role") != "system"]
    return (prompt if isinstance(prompt, str) else ""), rest


def text_in(content: JSON) -> str:
    """Return the text of a message's content: itself, or its text parts joined by newlines. Images have no text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def text_of(content: JSON, *, where: str) -> JSON:
    """Return the text of a message's content: a string, None, or text parts joined by newlines.

    A list with other parts stays a list. Raises `BadRequest` for anything else.
    """
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise BadRequest(f"{where}: expected a string or a list of content parts, got {content!r}")
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    if all(isinstance(text, str) for text in texts):
        return "\n".join(map(str, texts))
    return content


def member(mapping: Mapping[str, JSON], key: str, kind: type[T], *, where: str) -> T:
    """Return the value of `mapping` under `key`; raises `BadRequest` unless it exists and is a `kind`."""
    found = mapping.get(key)
    if not isinstance(found, kind):
        what = "nothing" if key not in mapping else repr(found)
        raise BadRequest(f"{where}{key}: expected {_NAMES[kind]}, got {what}", parameter=f"{where}{key}")
    return found


def body_object(body: JSON) -> dict[str, JSON]:
    """Return the body of a request; raises `BadRequest` unless it is an object."""
    if not isinstance(body, dict):
        raise BadRequest(f"the body: expected an object, got {body!r}")
    return body


def openai_call(call_id: JSON, name: JSON, arguments: JSON) -> dict[str, JSON]:
    """Return a call of a tool in OpenAI's shape."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def openai_tool(name: JSON, description: JSON, parameters: JSON) -> dict[str, JSON]:
    """Return a tool in OpenAI's shape."""
    function: dict[str, JSON] = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def user_messages(
    parts: Sequence[dict[str, JSON]],
    result_of: Callable[[dict[str, JSON]], Message | None],
    *,
    where: str,
) -> Iterator[Message]:
    """Yield the contents of a user's turn in OpenAI's shape, where tool results are separate messages."""
    content: list[JSON] = []
    for part in parts:
        result = result_of(part)
        if result is None:
            content.append(part)
            continue
        if content:
            yield {"role": "user", "content": text_of(content, where=where)}
            content = []
        yield result
    if content:
        yield {"role": "user", "content": text_of(content, where=where)}


def function_of(holder: JSON) -> dict[str, JSON]:
    """Return the function of a tool or a call in OpenAI's shape."""
    assert isinstance(holder, dict), "messages are in OpenAI's shape"
    function = holder["function"]
    assert isinstance(function, dict), "messages and tools are in OpenAI's shape"
    return function


def objects(values: JSON, *, where: str) -> list[dict[str, JSON]]:
    """Return a list of JSON objects; raises `BadRequest` for anything else."""
    if not isinstance(values, list):
        raise BadRequest(f"{where}: expected a list, got {values!r}", parameter=where)
    found: list[dict[str, JSON]] = []
    for number, value in enumerate(values):
        if not isinstance(value, dict):
            raise BadRequest(f"{where}[{number}]: expected an object, got {value!r}")
        found.append(value)
    return found


def limit_of(number: float | None, *, where: str) -> int | None:
    """Return a requested maximum, an integer from 1; None if there is none."""
    if number is not None and number % 1:
        raise BadRequest(f"{where}: expected a whole number, got {number!r}", parameter=where)
    if number is not None and number < 1:
        raise BadRequest(f"{where}: expected 1 or more, got {number!r}", parameter=where)
    return None if number is None else int(number)


def stops_of(given: JSON, *, where: str) -> tuple[str, ...]:
    """Return the texts before which a reply ends: one, a list of them, or none."""
    listed = [given] if isinstance(given, str) else given or []
    if not isinstance(listed, list) or not all(isinstance(stop, str) for stop in listed):
        raise BadRequest(f"{where}: expected a string or a list of strings, got {given!r}", parameter=where)
    return tuple(str(stop) for stop in listed if stop)


def number_or_none(body: Mapping[str, JSON], key: str) -> float | None:
    """Return a number, or None if there is none.

    Raises `BadRequest` for anything else, and for one as large as 1e400.
    """
    found = body.get(key)
    if found is None:
        return None
    # Numbers beyond a float's range become infinity. Compare instead of converting: an integer may be too large for
    # float().
    if isinstance(found, int | float) and not isinstance(found, bool) and found not in (math.inf, -math.inf):
        return found
    raise BadRequest(f"{key}: expected a number, got {found!r}", parameter=key)
