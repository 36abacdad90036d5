"""Compares the model's replies in two recordings of the same requests, ignoring transport details."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from statek_sim.cassettes.bodies import NotJson, parsed
from statek_sim.cassettes.exchange import Exchange, Request, Response
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.recording_lookup import Recordings, differences
from statek_sim.errors import InvalidFormat
from statek_sim.providers.wire.format import WireFormat, format_at
from statek_sim.providers.wire.reply import MALFORMED
from statek_sim.values import JSON

_CHANGES_ALWAYS: Final = frozenset(
    {"created", "id", "request_id", "responseId", "system_fingerprint", "createTime"}
)


def changes(old: Sequence[Exchange], new: Sequence[Exchange], matching: Matching) -> list[str]:
    """Return the differences between two cassettes, one per line. Replies to equal requests are compared in order."""
    recordings = Recordings(old, matching)
    lines: list[str] = []
    for exchange in new:
        before = recordings.play(matching.fingerprint(exchange.request))
        lines += (
            [f"+ {_named(exchange)}: only in the new cassette"]
            if before is None
            else _reply_changes(before, exchange)
        )
    gone = [old[number] for number in recordings.unplayed()]
    return [*(f"- {_named(exchange)}: only in the old cassette" for exchange in gone), *lines]


def _reply_changes(old: Exchange, new: Exchange) -> list[str]:
    found = list(differences(said(old), said(new)))
    if not found:
        return []
    lines = [f"~ {_named(new)} (old: line {old.line})"]
    for difference in found:
        before, after = difference.shown()
        lines += [f"    {difference.place}", f"      old: {before}", f"      new: {after}"]
    return lines


def said(exchange: Exchange) -> dict[str, JSON]:
    """Return the parts of a response to compare: the status and, for an LLM, the reply, tool calls, usage and model.

    For a response that is not an LLM reply, compare the JSON without ids and times, or the text.
    """
    response = exchange.response
    reply = None if (format_ := _format_of(exchange)) is None else _readable(format_, response)
    return {"status": response.status, **({"body": _plain(response)} if reply is None else reply)}


def unread(exchanges: Iterable[Exchange]) -> list[str]:
    """Return a line for each response that is not in the format expected at its URL."""
    return [
        f"{_named(exchange)}: response is not in this URL's format; compared as JSON or text"
        for exchange in exchanges
        if (format_ := _format_of(exchange)) is not None and _readable(format_, exchange.response) is None
    ]


def _format_of(exchange: Exchange) -> WireFormat | None:
    """Return the format for a request's URL, or None for an unknown URL or an error response."""
    return format_at(exchange.request.uri) if exchange.response.status < 400 else None


def _readable(format_: WireFormat, response: Response) -> dict[str, JSON] | None:
    """Return a reply's content, or None if the reply is not in this format."""
    try:
        reply = _reply(format_, response)
    except (InvalidFormat, *MALFORMED):
        return None
    return reply if reply["reply"] or reply["tool_calls"] or any(_counted(reply["usage"])) else None


def _counted(usage: JSON) -> Iterable[JSON]:
    return usage.values() if isinstance(usage, dict) else ()


def _reply(format_: WireFormat, response: Response) -> dict[str, JSON]:
    body = format_.join_stream(response.body) if response.is_stream else response.body
    reply, whole = format_.read_reply(body), parsed(body)
    members: dict[str, JSON] = {}
    if isinstance(whole, dict):
        members["model"] = whole.get("model", whole.get("modelVersion"))
    members["reply"] = reply.text
    members["tool_calls"] = [
        f"{call.name}({json.dumps(call.arguments, ensure_ascii=False, sort_keys=True)})"
        for call in reply.tool_calls
    ]
    usage = reply.usage
    members["usage"] = {"prompt": usage.prompt, "completion": usage.completion, "cached": usage.cached}
    return members


def _plain(response: Response) -> JSON:
    try:
        return _lasting(parsed(response.body))
    except NotJson:
        return response.body.decode("utf-8", "backslashreplace")


def _lasting(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in _CHANGES_ALWAYS}
    return [_lasting(item) for item in value] if isinstance(value, list) else value


def _named(exchange: Exchange) -> str:
    return f"line {exchange.line} {exchange.request.method} {exchange.request.uri}{_asked(exchange.request)}"


def _asked(request: Request) -> str:
    """Return the start of a request's last message, which identifies the turn to a reader."""
    try:
        body = parsed(request.body)
    except NotJson:
        return ""
    texts = list(_texts(body)) if isinstance(body, dict) else []
    return f" {texts[-1][:40]!r}" if texts else ""


def _texts(body: dict[str, JSON]) -> Iterator[str]:
    for turns in (body.get("messages"), body.get("contents")):
        for turn in turns if isinstance(turns, list) else ():
            yield from _strings(turn.get("content", turn.get("parts")) if isinstance(turn, dict) else None)


def _strings(value: JSON) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item.get("text") if isinstance(item, dict) else item)
