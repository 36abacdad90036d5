"""What a provider keeps of its answers: to go on from (`previous_response_id`), to read again, and to forget."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from statek_sim.errors import BadRequest, InvalidFormat
from statek_sim.providers.wire import responses
from statek_sim.providers.wire.encoding import compact
from statek_sim.providers.wire.reply import MALFORMED, ParsedReply
from statek_sim.providers.wire.request import WireRequest, openai_call
from statek_sim.server.exchange import Answer, Silence, Whole
from statek_sim.server.parsed_request import ParsedRequest
from statek_sim.values import JSON, Message

_MOST_KEPT: Final = 1000
_MOST_BYTES: Final = 64 * 1024 * 1024
"""Bytes of the answers that are kept and of the requests before each of them, those of a conversation once for each."""
_WHY_NOT: Final = (
    "it was not given since the script was set, was asked for with store=false, was deleted, "
    "or had to make room"
)


class UnknownAnswer(LookupError):
    """No answer of this id is kept."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer as it was given, and what had been said up to it, the answer with it: `size` bytes of bodies."""

    body: bytes
    messages: tuple[Message, ...]
    size: int


class Conversations:
    """What was said up to each answer that was stored, by the answer's id; the latest 1,000, and 64 MiB of them."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0

    def stored(self, method: str, name: str, options: Sequence[str]) -> bytes:
        """Return what GET or DELETE of `/v1/responses/NAME` answers; `options` are the names in the query.

        Raises `UnknownAnswer` for an id that is not kept, `BadRequest` for what is not honoured of a stored answer.
        """
        answer, _, part = name.partition("/")
        if part:
            raise BadRequest(f"of a stored answer only itself is honoured here (GET, DELETE), not its {part}")
        if method not in ("GET", "HEAD", "DELETE"):
            raise BadRequest(f"a stored answer is read (GET) or forgotten (DELETE) here, got {method}")
        if options:
            raise BadRequest(
                f"{options[0]} is not honoured for a stored answer: leave it out", parameter=options[0]
            )
        if answer not in self._kept:
            raise UnknownAnswer(f"Response with id {answer!r} not found: {_WHY_NOT}")
        if method == "DELETE":
            self._forget(answer)
            return compact({"id": answer, "object": "response", "deleted": True}).encode()
        return self._kept[answer].body

    def continued(self, read: ParsedRequest) -> ParsedRequest:
        """Return a request with what was said before it; `BadRequest` when nothing of it was kept.

        Instructions are not carried over, as the API has it.
        """
        request = read.asked
        before = self._kept.get(request.previous or "")
        if before is None:
            raise BadRequest(
                f"Previous response with id {request.previous!r} not found: {_WHY_NOT}",
                parameter="previous_response_id",
                code="previous_response_not_found",
            )
        prompt = request.messages[:1] if _instructed(request) else ()
        return ParsedRequest(
            replace(request, messages=(*prompt, *before.messages, *request.messages[len(prompt) :])),
            read.size,
        )

    def keep(self, read: ParsedRequest, answer: Answer) -> None:
        """Keep what was asked and answered, unless the client said not to, or the answer is none.

        What is more than all that is kept may be is not kept either.
        """
        request = read.asked
        if isinstance(answer, Silence) or answer.status != 200 or (request.echo or {}).get("store") is False:
            return
        body = answer.body if isinstance(answer, Whole) else b"".join(frame.data for frame in answer.frames)
        try:
            whole = body if isinstance(answer, Whole) else responses.join_stream(body)
            name, reply = json.loads(whole)["id"], responses.read_reply(whole)
        except (InvalidFormat, *MALFORMED):
            return  # a fault or a raw body: no client has an id to go on from
        messages = request.messages[_instructed(request) :]
        before = self._kept.get(request.previous or "")
        # All of the conversation, as each answer holds all of it: its first turns may have made room by themselves.
        size = read.size + len(whole) + (0 if before is None else before.size)
        if size > _MOST_BYTES:
            return
        self._forget(str(name))
        while len(self._kept) >= _MOST_KEPT or self._bytes + size > _MOST_BYTES:
            self._forget(next(iter(self._kept)))
        self._kept[str(name)] = _Kept(whole, (*messages, _message(reply)), size)
        self._bytes += size

    def _forget(self, name: str) -> None:
        forgotten = self._kept.pop(name, None)
        self._bytes -= 0 if forgotten is None else forgotten.size


def _instructed(request: WireRequest) -> bool:
    return "instructions" in (request.echo or {})


def _message(reply: ParsedReply) -> Message:
    calls: list[JSON] = [
        openai_call(call.id, call.name, json.dumps(call.arguments, ensure_ascii=False))
        for call in reply.tool_calls
    ]
    return {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
