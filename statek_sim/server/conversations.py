"""What was said up to each answer that a provider stored, to go on from (`previous_response_id`)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from statek_sim.errors import BadRequest, InvalidFormat
from statek_sim.providers.wire import responses
from statek_sim.providers.wire.reply import MALFORMED
from statek_sim.providers.wire.request import WireRequest, openai_call
from statek_sim.server.exchange import Answer, Silence, Whole
from statek_sim.values import JSON, Message

_MOST_KEPT: Final = 1000


class Conversations:
    """The messages up to each answer, the answer with them, by its id; those of the latest 1,000."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Message, ...]] = {}

    def continued(self, request: WireRequest) -> WireRequest:
        """Return a request with what was said before it; `BadRequest` when nothing of it was kept.

        Instructions are not carried over, as the API has it.
        """
        before = self._kept.get(request.previous or "")
        if before is None:
            raise BadRequest(
                f"Previous response with id {request.previous!r} not found: it was not given since the script was set, "
                "was asked for with store=false, or had to make room",
                parameter="previous_response_id",
                code="previous_response_not_found",
            )
        prompt = request.messages[: _instructed(request)]
        return replace(request, messages=(*prompt, *before, *request.messages[len(prompt) :]))

    def keep(self, request: WireRequest, answer: Answer) -> None:
        """Keep what was asked and answered, unless the client said not to, or the answer is none."""
        if isinstance(answer, Silence) or answer.status != 200 or (request.echo or {}).get("store") is False:
            return
        try:
            streamed = b"" if isinstance(answer, Whole) else b"".join(frame.data for frame in answer.frames)
            body = answer.body if isinstance(answer, Whole) else responses.join_stream(streamed)
            name, reply = str(json.loads(body)["id"]), responses.read_reply(body)
        except (InvalidFormat, *MALFORMED):
            return  # a fault or a raw body: no client has an id to go on from
        calls: list[JSON] = [
            openai_call(call.id, call.name, json.dumps(call.arguments, ensure_ascii=False))
            for call in reply.tool_calls
        ]
        turn: Message = {"role": "assistant", "content": reply.text or None}
        if calls:
            turn = {**turn, "tool_calls": calls}
        self._kept[name] = (*request.messages[_instructed(request) :], turn)
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]


def _instructed(request: WireRequest) -> int:
    """Return how many messages are instructions of the request's own."""
    return int("instructions" in (request.echo or {}))
