"""Plays one script for the fake server: its requests, faults, responses and virtual time."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from statek_sim.cassettes.redaction import ends_without_secrets
from statek_sim.errors import (
    BadRequest,
    InvalidFormat,
    ScriptError,
    StatekSimError,
    UnmatchedRequest,
    UnusedReplies,
)
from statek_sim.providers.delivery import Manner
from statek_sim.providers.mismatch import Entry, shorten, unused_text
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.script import RawStream
from statek_sim.providers.wire import responses
from statek_sim.providers.wire.format import FORMATS, WireFormat
from statek_sim.providers.wire.reply import MALFORMED
from statek_sim.providers.wire.request import WireRequest, openai_call
from statek_sim.server.demands import LOGPROBS, check_logprobs
from statek_sim.server.embedding import EmbeddingRequest, joined, read_embeddings
from statek_sim.server.exchange import (
    SCRIPTED_PLACES,
    Answer,
    Incoming,
    Place,
    Route,
    Silence,
    Streamed,
    Whole,
)
from statek_sim.server.fault import FaultRule, FaultSchedule
from statek_sim.server.journal import Journal, JournalEntry
from statek_sim.server.parsed_request import ParsedRequest, read_request
from statek_sim.server.refusals import check_refusals, out_of_turn
from statek_sim.server.rendering import (
    Pacing,
    ServedRequest,
    embeddings,
    http_error,
    render,
    replacement,
    token_count,
    with_faults,
)
from statek_sim.server.script_lookup import AGENT_HEADER, PlayedScript
from statek_sim.values import JSON, Message

_MOST_KEPT: Final = 1000


class Conversations:
    """The latest 1,000 conversations that `previous_response_id` can continue, keyed by the id of the last response."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Message, ...]] = {}

    def continued(self, request: WireRequest) -> WireRequest:
        """Return a request with the messages from the conversation that it continues, without earlier instructions.

        Raises `BadRequest` if the conversation is unknown.
        """
        before = self._kept.get(request.previous or "")
        if before is None:
            raise BadRequest(
                f"Previous response with id {request.previous!r} not found: it was created before the script was set, "
                "its request had store=false, or newer responses replaced it",
                parameter="previous_response_id",
                code="previous_response_not_found",
            )
        prompt = request.messages[: _instructed(request)]
        return replace(request, messages=(*prompt, *before, *request.messages[len(prompt) :]))

    def keep(self, request: WireRequest, answer: Answer) -> None:
        """Store a request and its response for later requests, unless `store` is false or there is no reply."""
        if isinstance(answer, Silence) or answer.status != 200 or (request.echo or {}).get("store") is False:
            return
        try:
            streamed = b"" if isinstance(answer, Whole) else b"".join(frame.data for frame in answer.frames)
            body = answer.body if isinstance(answer, Whole) else responses.join_stream(streamed)
            name, reply = str(json.loads(body)["id"]), responses.read_reply(body)
        except (InvalidFormat, *MALFORMED):
            return  # a fault or a raw body, without an id to continue from
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
    """Return the number of instruction messages at the start of the request: 0 or 1."""
    return int("instructions" in (request.echo or {}))


JOB_HEADER: Final = "x-statek-job"
RETRY_HEADER: Final = "x-stainless-retry-count"
"""The header in which the OpenAI and Anthropic SDKs send the number of retries (0 on the first attempt)."""

MISMATCH_STATUS: Final = 422
"""The status sent for a request without a scripted reply; clients do not retry it."""

_LONGEST_MESSAGE: Final = 2000
"""The maximum length, in characters, of an error message about an invalid request."""


class Play:
    """A script that is being played: its progress, faults and journal, and the virtual time, which starts at 0.

    `ignored` lists unsupported parameters to ignore; any others are answered with 400.
    """

    def __init__(
        self,
        script: PlayedScript,
        faults: Sequence[FaultRule],
        manner: Manner,
        pacing: Pacing,
        ignored: Collection[str],
    ) -> None:
        self.script = script
        self.journal = Journal()
        self._ignored = frozenset(ignored)
        self._schedule = FaultSchedule(faults)
        self._manner = manner
        self._pacing = pacing
        self._conversations = Conversations()
        self._at = 0.0

    def check_finished(self) -> None:
        """Raise `UnmatchedRequest` if no reply matched a request, or `UnusedReplies` if a reply or fault is unused."""
        problems = self.journal.problems
        if problems:
            more = f"\n\nand {len(problems) - 1} more" if len(problems) > 1 else ""
            raise UnmatchedRequest(f"{problems[0]}{more}")
        left = self.script.unused()
        if left:
            raise UnusedReplies(unused_text(left))
        missed = self._schedule.left()
        if missed:
            raise UnusedReplies(f"{missed[0]}; requests: {self.journal.total}")

    def ask(self, incoming: Incoming, found: Route) -> Answer:
        """Answer one request for a reply, embeddings or a token count, and record it in the journal."""
        number, wire = self.journal.total + 1, FORMATS[found.wire]
        name = f"request {number} (POST {found.path}"
        record = partial(JournalEntry, number, found.wire, incoming.target, incoming.headers, incoming.body)
        try:
            read, wanted = self._read(incoming, found)
        except (BadRequest, ValueError) as error:
            refusal, why = _refusal(error, wire)
            self.journal.add(record(refusal.status, problem=f"{name}): {why}"))
            return refusal
        request = _request(incoming, read, found, self._at)
        faults = self._schedule.faults(request, number)
        early = replacement(faults, wire)
        if early is not None:
            self.journal.add(record(_status(early), faults=faults))
            return early
        entry: Entry | None = None
        problem: str | None = None
        latency = 0.0
        try:
            answer, entry = self._answered(ServedRequest(number, name, request, read, wire, faults), wanted)
            latency = _latency(entry, answer, self._pacing)
        except Exception as error:  # noqa: BLE001  # a script may call the user's code
            problem = str(error) if isinstance(error, StatekSimError) else f"{type(error).__name__}: {error}"
            problem = problem if problem.startswith(name) else f"{name}): {problem}"
            status = MISMATCH_STATUS if isinstance(error, ScriptError) else 500
            answer = http_error(wire, status, message=problem)
        self._at += latency
        message = None if isinstance(answer, Silence) else answer.message
        self.journal.add(record(_status(answer), entry, faults, problem, latency, message))
        return answer

    def _read(self, incoming: Incoming, found: Route) -> tuple[ParsedRequest, EmbeddingRequest | None]:
        """Parse a request; raises `BadRequest` if it is unsupported, or `ValueError` if its body is not JSON."""
        encoding = incoming.headers.get("content-encoding", "")
        if encoding.lower() not in ("identity", ""):
            raise EncodedBody(
                f"content-encoding {encoding[:80]!r} is not supported; send the body uncompressed"
            )
        wanted = None
        if found.place is Place.EMBEDDINGS:
            read, wanted = read_embeddings(found.wire, found.path, incoming.body)
        else:
            read = read_request(found.wire, found.path, incoming.body)
        scored = LOGPROBS if self.script.has_logprobs else ()
        check_refusals(read.refused, {*self._ignored, *scored}, incoming.headers.get("anthropic-beta", ""))
        if read.request.previous is not None:
            continued = self._conversations.continued(read.request)
            check_refusals(out_of_turn(continued.messages, found.wire), self._ignored)
            read = ParsedRequest(continued, len(incoming.body))
        return read, wanted

    def _answered(
        self, served: ServedRequest, wanted: EmbeddingRequest | None
    ) -> tuple[Answer, Entry | None]:
        """Return the response and the script entry that it came from, if any."""
        if wanted is not None:
            return self._vectors(served, wanted)
        request, name = served.chat, served.name
        if request.place == "count_tokens":
            recorded = self.script.scripted(request, name)
            if recorded is None:
                return with_faults(token_count(served.read, served.wire), served.faults, served.wire), None
            return self._render(recorded, served), recorded
        entry = self.script.demanded(request, name)
        answer = self._render(entry, served)
        if served.wire.NAME == "responses":
            self._conversations.keep(served.read.request, answer)
        return answer, entry

    def _render(self, entry: Entry, served: ServedRequest) -> Answer:
        if self.script.has_logprobs and self._ignored.isdisjoint(LOGPROBS):
            check_logprobs(entry, served.read.request.logprobs)
        return render(entry, served, self._manner, self._pacing)

    def _vectors(self, served: ServedRequest, wanted: EmbeddingRequest) -> tuple[Answer, Entry | None]:
        def asking(text: str) -> ChatRequest:
            return replace(served.chat, messages=({"role": "user", "content": text},))

        if self.script.is_recorded("embeddings"):
            entry = self.script.demanded(asking(joined(wanted.texts)), served.name)
            return self._render(entry, served), entry
        entries = [self.script.scripted(asking(text), served.name) for text in wanted.texts]
        return embeddings(entries, wanted, served), next(filter(None, entries), None)


def _status(answer: Answer) -> int:
    return 0 if isinstance(answer, Silence) else answer.status


def _refusal(refused: BadRequest | ValueError, wire: WireFormat) -> tuple[Whole, str]:
    """Return the response to a rejected request, and the reason as a string."""
    parameter, code = (refused.parameter, refused.code) if isinstance(refused, BadRequest) else (None, None)
    why = str(refused)
    if len(why) > _LONGEST_MESSAGE:
        # Errors quote the request and are stored; a hundred bodies of 30 MB would fill the memory.
        why = shorten(ends_without_secrets(why), _LONGEST_MESSAGE)
    if not code:
        why = f"cannot parse the request: {why}"
    status = 415 if isinstance(refused, EncodedBody) else 400
    return http_error(wire, status, message=why, parameter=parameter, code=code), why


def _latency(entry: Entry | None, answer: Answer, pacing: Pacing) -> float:
    """Return the virtual seconds from the request to the end of the response."""
    if entry is None:
        return 0.0
    reply = entry.reply
    if isinstance(reply.answer, RawStream):
        return reply.latency + reply.answer.seconds
    if isinstance(answer, Streamed) and answer.frames:
        return reply.latency + pacing.token_seconds * (len(answer.frames) - 1)
    return reply.latency


def _request(incoming: Incoming, read: ParsedRequest, found: Route, at: float) -> ChatRequest:
    headers, params = incoming.headers, read.request
    retries = headers.get(RETRY_HEADER, "0")
    return ChatRequest(
        job_id=headers.get(JOB_HEADER, "http"),
        role=headers.get(AGENT_HEADER, params.model),
        turn=read.turn,
        attempt=int(retries) + 1 if retries.isdecimal() and len(retries) < 4 else 1,
        at=at,
        model=params.model,
        messages=params.messages,
        tools=params.tools,
        temperature=params.temperature,
        bytes_sent=len(incoming.body),
        wire=found.wire,
        headers=headers,
        place=SCRIPTED_PLACES[found.place],
    )


class EncodedBody(BadRequest):
    """Raised if a request body has a content encoding, which the server does not support."""
