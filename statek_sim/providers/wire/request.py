"""The content of a request, in a common form for all formats.

Messages use the OpenAI format. An assistant message can also contain the key `NATIVE_ANTHROPIC` or `NATIVE_GEMINI` with
the provider's own blocks, such as signed thoughts, which must be sent back unchanged. In that case, the blocks replace
`content` and `tool_calls`.
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
    """The data that a format needs to build a request body; implemented by `ChatRequest` and `WireRequest`.

    An initial message with the role `system` is the system prompt. Formats that do not allow later system messages omit
    them, as STATEK does.
    """

    @property
    def model(self) -> str:
        """The model name that the provider uses."""

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation in the OpenAI format."""

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """The offered tools in the OpenAI format."""

    @property
    def temperature(self) -> float | None:
        """The sampling temperature, or None if it is not set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """The requirements that a request sets for any reply.

    A reply ends before any of the `stop` sequences and after at most `max_tokens` tokens. With `json_object`, the text
    must be a JSON object. `calls` is whether the reply may, must or must not call tools, and `call_names` lists the
    tools that it may call (empty: all). With `one_call`, the reply may contain only one call.
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
    """A request as parsed by a server.

    `stream_usage`: the client requests usage at the end of the stream. `refused`: unsupported or unknown parameters,
    and parameters with invalid values. `echo`: the fields that a response in the `responses` format repeats.
    `previous`: the id of the response that a request in this format continues. `thinks`: the model signs its thoughts,
    and the client must send them back with the calls that follow. `shows_thinking` and `logprobs` are True if the
    request asks for visible thinking or log probabilities, or else the name of the parameter that would do so.
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
        """The maximum number of tokens in the reply, or None for no limit."""
        return self.demands.max_tokens

    @property
    def last_message(self) -> str:
        """The last message's text, or an empty string."""
        return text_in(self.messages[-1].get("content")) if self.messages else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Request settings other than the conversation.

    `prompt_caching` (STATEK's `CLAUDE_USE_PROMPT_CACHING`) marks text for Anthropic's cache; other formats ignore it.
    `max_tokens` limits the answer; STATEK itself sets a limit only for Anthropic.
    """

    prompt_caching: bool = False
    max_tokens: int | None = None


PLAIN: Final = ClientOptions()
"""STATEK's defaults."""


def split_prompt(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the system prompt (empty if there is none) and all messages that are not system messages."""
    prompt = messages[0].get("content") if messages and messages[0].get("role") == "system" else ""
    rest = [message for message in messages if message.get("role") != "system"]
    return (prompt if isinstance(prompt, str) else ""), rest


def text_in(content: JSON) -> str:
    """Return a message's content if it is a string, or else its text parts joined by newlines."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def text_of(content: JSON, *, where: str) -> JSON:
    """Return a message's content: a string, None, or text parts joined by newlines.

    A list that contains parts other than text is returned as a list. Raises `BadRequest` for any other content.
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
    """Return the value of `mapping` under `key`; raises `BadRequest` unless it is an instance of `kind`."""
    found = mapping.get(key)
    if not isinstance(found, kind):
        what = "nothing" if key not in mapping else repr(found)
        raise BadRequest(f"{where}{key}: expected {_NAMES[kind]}, got {what}", parameter=f"{where}{key}")
    return found


def body_object(body: JSON) -> dict[str, JSON]:
    """Return a request body if it is a JSON object; raises `BadRequest` for any other body."""
    if not isinstance(body, dict):
        raise BadRequest(f"the body: expected an object, got {body!r}")
    return body


def openai_call(call_id: JSON, name: JSON, arguments: JSON) -> dict[str, JSON]:
    """Return a tool call in the OpenAI format."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def openai_tool(name: JSON, description: JSON, parameters: JSON) -> dict[str, JSON]:
    """Return a tool in the OpenAI format."""
    function: dict[str, JSON] = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def user_messages(
    parts: Sequence[dict[str, JSON]],
    result_of: Callable[[dict[str, JSON]], Message | None],
    *,
    where: str,
) -> Iterator[Message]:
    """Yield a user turn's messages in the OpenAI format.

    A part for which `result_of` returns a message is a tool result; the parts between results form user messages.
    """
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
    """Return the function of a tool or a call, in the OpenAI format."""
    assert isinstance(holder, dict), "messages are in OpenAI's shape"
    function = holder["function"]
    assert isinstance(function, dict), "messages and tools are in OpenAI's shape"
    return function


def calls_of(message: Message) -> Iterator[tuple[JSON, JSON, JSON]]:
    """Yield the id, the function name and the arguments of each tool call in a message in the OpenAI format."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            yield call.get("id"), function.get("name"), function.get("arguments")


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
    """Return a requested maximum as an integer; raises `BadRequest` unless it is None or a whole number above 0."""
    if number is not None and number % 1:
        raise BadRequest(f"{where}: expected a whole number, got {number!r}", parameter=where)
    if number is not None and number < 1:
        raise BadRequest(f"{where}: expected 1 or more, got {number!r}", parameter=where)
    return None if number is None else int(number)


def stops_of(given: JSON, *, where: str) -> tuple[str, ...]:
    """Return a request's stop sequences; raises `BadRequest` unless `given` is a string, a list of strings or None."""
    listed = [given] if isinstance(given, str) else given or []
    if not isinstance(listed, list) or not all(isinstance(stop, str) for stop in listed):
        raise BadRequest(f"{where}: expected a string or a list of strings, got {given!r}", parameter=where)
    return tuple(str(stop) for stop in listed if stop)


def number_or_none(body: Mapping[str, JSON], key: str) -> float | None:
    """Return the number in `body` under `key`, or None if there is none.

    Raises `BadRequest` for any other value, and for a number beyond the range of a float.
    """
    found = body.get(key)
    if found is None:
        return None
    # Numbers beyond a float's range become infinity. Compare instead of converting: an integer may be too large for
    # float().
    if isinstance(found, int | float) and not isinstance(found, bool) and found not in (math.inf, -math.inf):
        return found
    raise BadRequest(f"{key}: expected a number, got {found!r}", parameter=key)
