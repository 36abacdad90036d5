"""Checks scripted replies against a request's requirements, and truncates replies as the request demands.

The request must offer the tool and arguments of each scripted call, because a typo in a script would make the test
worthless. `mistaken()` and malformed arguments disable this check, so that a script can contain deliberate mistakes.
Replies computed by a function are not checked, nor are replies to requests with the header `UNKNOWN_TOOLS_HEADER`,
which `Guest.ask` sends if the tools are unknown.

A reply is truncated at the request's stop sequences and token limit. A reply that no provider would give to the request
is a script error: for example, text if a tool call is required, two calls if only one is allowed, or text that is not
JSON if JSON is required. `raw(...)` sends such a reply anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import UnmatchedRequest
from statek_sim.providers.mismatch import Entry
from statek_sim.providers.script import Chat, ScriptedCall
from statek_sim.providers.wire.reply import WireReply, WireToolCall
from statek_sim.providers.wire.request import NO_DEMANDS, Demands
from statek_sim.usage.tokenizers import token_pieces
from statek_sim.values import ToolSpec

UNKNOWN_TOOLS_HEADER: Final = "x-statek-tools-unsaid"


def check_offered(entry: Entry, tools: Sequence[ToolSpec]) -> None:
    """Raise `UnmatchedRequest` if the request does not offer a tool or argument that the reply uses."""
    message = entry.reply.answer
    is_meant = entry.reply.is_mistaken or entry.reply.malformed_arguments is not None
    if is_meant or not isinstance(message, Chat):
        return
    offered = dict(_offered(tools))
    for call in message.calls:
        problem = _problem(call, offered)
        if problem is not None:
            raise UnmatchedRequest(
                f"reply {entry.position} {problem} Correct the script; if the mistake is deliberate, use "
                f"tool_call({call.name!r}, ...).mistaken()"
            )


LOGPROBS: Final = frozenset(
    ("logprobs", "top_logprobs", "include", "generationConfig.responseLogprobs", "generationConfig.logprobs")
)
"""Request parameters for log probabilities, supported only if the script has log probabilities."""


def check_logprobs(entry: Entry, wanted: Literal[True] | str) -> None:
    """Raise `UnmatchedRequest` if a request asks for log probabilities and the reply contains none, or vice versa.

    `wanted` is True if the request asks for log probabilities, or else the name of the parameter that would do so.
    """
    chat = entry.reply.answer
    if not isinstance(chat, Chat):
        return
    if chat.tokens and wanted is not True and wanted:
        raise UnmatchedRequest(
            f"reply {entry.position} has log probabilities, but the request does not ask for them ({wanted}), so no "
            "provider would send them; request log probabilities, or remove logprobs(...)"
        )
    if wanted is True and chat.text and not chat.tokens and not chat.refuses:
        raise UnmatchedRequest(
            f"the request asks for log probabilities, but reply {entry.position} has none: "
            f"write text({chat.text!r}).logprobs((token, logprob), ...)"
        )


def _offered(tools: Sequence[ToolSpec]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in tools:
        function: Any = tool.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str):
            schema = function.get("parameters")
            yield name, schema if isinstance(schema, dict) else {}


def _problem(call: ScriptedCall, offered: Mapping[str, Mapping[str, Any]]) -> str | None:
    if call.name not in offered:
        names = ", ".join(offered) or "no tools"
        return f"calls {call.name!r}, but the request offers {names}.{suggestion(call.name, offered)}"
    schema = offered[call.name]
    known, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(known, dict) or not isinstance(required, list):
        return None
    for name in call.args if not schema.get("additionalProperties") else ():
        if name not in known:
            names = ", ".join(known) or "no arguments"
            return f"calls {call.name} with {name!r}, but it takes {names}.{suggestion(name, known)}"
    missing = next((name for name in required if name not in call.args), None)
    return None if missing is None else f"calls {call.name} without {missing!r}, which it requires."


def within_demands(reply: WireReply, demands: Demands, *, model: str, name: str) -> WireReply:
    """Return `reply`, truncated as the request demands; raises `UnmatchedRequest` if it violates a requirement.

    `name` is the reply's name in error messages.
    """
    if demands is NO_DEMANDS:
        return reply
    _check_calls(reply, demands, name)
    reply = _stopped(reply, demands.stop)
    reply = _limited(reply, demands.max_tokens, model)
    if demands.json_object and reply.reason == "stop" and reply.stop_sequence is None:
        _check_json(reply.text or "", name)
    return reply


def _check_calls(reply: WireReply, demands: Demands, name: str) -> None:
    called = [call.name for call in reply.calls]
    if demands.calls == "must" and not called:
        raise _contradiction(name, "calls no tool", "the request requires a call (tool_choice)")
    if demands.calls == "must not" and called:
        raise _contradiction(name, f"calls {called[0]!r}", "the request forbids calls (tool_choice)")
    if demands.one_call and len(called) > 1:
        raise _contradiction(name, f"calls {len(called)} tools", "the request allows one call at a time")
    for called_name in called if demands.call_names else ():
        if called_name not in demands.call_names:
            allowed = ", ".join(demands.call_names)
            raise _contradiction(
                name, f"calls {called_name!r}", f"the request allows {allowed} (tool_choice)"
            )


def _check_json(text: str, name: str) -> None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise _contradiction(name, "is not a JSON object", "the request requires a JSON object")


def _contradiction(name: str, text: str, demanded: str) -> UnmatchedRequest:
    return UnmatchedRequest(
        f"{name} {text}, but {demanded}; no provider would send this: change the reply, or send it with raw(...)"
    )


def _stopped(reply: WireReply, stops: Sequence[str]) -> WireReply:
    """Cut the reply off before the first stop sequence, and drop its calls, which come after the text."""
    text = reply.text or ""
    found = [(at, stop) for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        return reply
    at, stop = min(found)
    return replace(reply, text=text[:at], calls=(), stop="stop", stop_sequence=stop)


def _limited(reply: WireReply, limit: int | None, model: str) -> WireReply:
    """Cut the reply off after `limit` tokens. Its text is counted first, then the names and arguments of its calls."""
    if limit is None or _at_most(reply) <= limit:
        return reply
    left = limit
    text = reply.text
    if text:
        pieces = token_pieces(text, model)
        if len(pieces) > left:
            return replace(reply, text="".join(pieces[:left]), calls=(), stop="length")
        left -= len(pieces)
    calls: list[WireToolCall] = []
    for call in reply.calls:
        left -= len(token_pieces(call.name, model))
        pieces = token_pieces(call.arguments, model)
        if len(pieces) > left:
            calls += [replace(call, arguments="".join(pieces[:left]))] if left > 0 else []
            return replace(reply, calls=tuple(calls), stop="length")
        calls.append(call)
        left -= len(pieces)
    return reply


def _at_most(reply: WireReply) -> int:
    """Return an upper bound on a reply's token count: its size in bytes."""
    texts = (reply.text or "", *(part for call in reply.calls for part in (call.name, call.arguments)))
    return sum(len(text) if text.isascii() else 4 * len(text) for text in texts)
