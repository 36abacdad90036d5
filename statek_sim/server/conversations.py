"""Conversations that a provider keeps, so that a client need send only what is new: `previous_response_id`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from statek_sim.errors import BadRequest, InvalidFormat
from statek_sim.providers.wire import responses
from statek_sim.providers.wire.reply import ParsedReply
from statek_sim.providers.wire.request import WireRequest
from statek_sim.server.exchange import Answer, Silence, Whole
from statek_sim.server.known import ReadRequest
from statek_sim.values import JSON, Message

_MOST_KEPT: Final = 1000


class Conversations:
    """What was said up to each answer that was stored, by the answer's id; the latest 1,000."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Message, ...]] = {}

    def goes_on(self, read: ReadRequest) -> ReadRequest:
        """Return a request with what was said before it; `BadRequest` when nothing of it was kept.

        Instructions are not carried over, as the API has it.
        """
        request = read.asked
        before = self._kept.get(request.previous or "")
        if before is None:
            raise BadRequest(
                f"Previous response with id {request.previous!r} not found: it was not given since the script was set, "
                "was asked for with store=false, or had to make room",
                parameter="previous_response_id",
                code="previous_response_not_found",
            )
        prompt = request.messages[:1] if _instructed(request) else ()
        return ReadRequest(
            replace(request, messages=(*prompt, *before, *request.messages[len(prompt) :])), read.size
        )

    def keep(self, request: WireRequest, answer: Answer) -> None:
        """Keep what was asked and answered, unless the client said not to, or the answer is none."""
        if isinstance(answer, Silence) or answer.status != 200 or (request.echo or {}).get("store") is False:
            return
        body = answer.body if isinstance(answer, Whole) else b"".join(frame.data for frame in answer.frames)
        try:
            whole = body if isinstance(answer, Whole) else responses.join_stream(body)
            name, reply = json.loads(whole)["id"], responses.read_reply(whole)
        except (InvalidFormat, RuntimeError, ValueError, LookupError, TypeError, AttributeError):
            return  # a fault or a raw body: no client has an id to go on from
        messages = request.messages[_instructed(request) :]
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[str(name)] = (*messages, _message(reply))


def _instructed(request: WireRequest) -> bool:
    return "instructions" in (request.echo or {})


def _message(reply: ParsedReply) -> Message:
    calls: list[JSON] = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for call in reply.tool_calls
    ]
    return {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
