"""The fake LLM: a function from HTTP request to answer, with a script, faults and a journal behind it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from statek_sim.clock import EPOCH
from statek_sim.errors import (
    BadInput,
    BadRequest,
    ScriptError,
    StatekSimError,
    UnmatchedRequest,
    UnusedReplies,
)
from statek_sim.providers.delivery import Styles, manner
from statek_sim.providers.lane import Entry, Lane
from statek_sim.providers.mismatch import PendingReply, unused_text
from statek_sim.providers.protocol import ChatRequest, ChatStyleName
from statek_sim.providers.script import Chat, Computed, RawStream, ScriptEntry, UsageKind, as_reply
from statek_sim.providers.scripted import EVERYBODY, Script, lanes_of
from statek_sim.providers.wire.compact import compact
from statek_sim.providers.wire.format import WireFormat
from statek_sim.providers.wire.formats import FORMATS
from statek_sim.server.exchange import Answer, Incoming, Silence, Streamed, Whole
from statek_sim.server.fault import Fate, Fault, FaultRule, HttpError, NoAnswerAtAll
from statek_sim.server.journal import Journal, JournalEntry
from statek_sim.server.known import ReadRequest, model_tokenizer, read_request
from statek_sim.server.models import model_body, models_body
from statek_sim.server.nearest import exhausted, unmatched
from statek_sim.server.rendering import Pacing, Renderer, http_error
from statek_sim.server.routes import JOURNAL, UNUSED, Place, Route, route
from statek_sim.values import JSON

JOB_HEADER: Final = "x-statek-job"
AGENT_HEADER: Final = "x-statek-agent"
RETRY_HEADER: Final = "x-stainless-retry-count"
"""How the official SDKs of OpenAI and Anthropic count their retries: 0 for the first attempt."""

MISMATCH_STATUS: Final = 422
"""The status for a request that the script has no answer to: no client tries again after it."""

DEFAULT_MODELS: Final = ("gpt-4o",)


class FakeLLM:
    """Answers chat requests from a script, in OpenAI's, Anthropic's and Gemini's format, streaming and not.

    `script` and `styles` are those of `ScriptedLLM`; a script by role goes by the header `x-statek-agent`, or else by
    the model. The job is what `x-statek-job` says, or `http`; the turn is one more than the model has spoken in the
    request; the attempt follows the SDKs' retry header. Virtual time is what the answers so far took.

    Usage is counted with the model's tokenizer for replies that do not say theirs, unless `count_usage` is off.
    `faults` strike requests by position, rate or condition. `pacing` says how much real time latencies take.
    A request without an answer gets status 422 with the nearest script entry, and fails `check_finished`.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        styles: Styles | ChatStyleName | None = None,
        faults: Sequence[FaultRule] = (),
        models: Sequence[str] = DEFAULT_MODELS,
        count_usage: bool = True,
        pacing: Pacing | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._manner = manner(styles, None)
        self._pacing = pacing or Pacing()
        self._count_usage = count_usage
        self._models = tuple(models)
        self.play(script, faults=faults)

    def play(
        self,
        script: Script,
        *,
        faults: Sequence[FaultRule] = (),
        styles: Styles | ChatStyleName | None = None,
    ) -> None:
        """Start anew with this script and these faults; the journal and virtual time start anew too.

        `styles`, if they are said, replace those of before.
        """
        spoken = self._manner if styles is None else manner(styles, None)
        lanes = lanes_of(_counting(script) if self._count_usage else script)
        with self._lock:
            self._lanes = lanes
            self._fate = Fate(faults)
            self._fallible = bool(faults)
            self._at = 0.0
            self._manner = spoken
            self._renderer = Renderer(spoken, self._pacing)
            self.journal = Journal()

    def warm_up(self) -> None:
        """Load the vocabularies that usage is counted with, so that the first request need not wait for them."""
        if self._count_usage:
            for model in self._models:
                model_tokenizer(model).count("warm")

    def answer(self, request: Incoming) -> Answer:
        """Answer one HTTP request."""
        found = route(request.method, request.target)
        if found.place is Place.CHAT:
            with self._lock:
                return self._chat(request, found, FORMATS[found.wire])
        return self._elsewhere(request, found)

    def unused(self) -> list[PendingReply]:
        """Return the replies that were given too seldom; for one that repeats forever, once is enough."""
        with self._lock:
            return [entry for lane in self._lanes.values() for entry in lane.unused()]

    def check_finished(self) -> None:
        """Raise when a request found no reply (`UnmatchedRequest`) or a reply or fault no request (`UnusedReplies`)."""
        problems = self.journal.problems
        if problems:
            more = f"\n\nand {len(problems) - 1} more" if len(problems) > 1 else ""
            raise UnmatchedRequest(f"{problems[0]}{more}")
        left = self.unused()
        if left:
            raise UnusedReplies(unused_text(left))
        missed = self._fate.left()
        if missed:
            raise UnusedReplies(f"{missed[0]} met no request; {self.journal.total} came")

    # One chat request.

    def _chat(self, incoming: Incoming, found: Route, wire: WireFormat) -> Answer:
        number = self.journal.total + 1
        try:
            read = read_request(found.wire, found.path, incoming.body)
        except (BadRequest, ValueError, RecursionError) as error:
            problem = f"the request cannot be read: {error}"
            answer = http_error(wire, 400, message=problem)
            self._note(number, incoming, found, answer, problem=f"request {number} ({found.path}): {problem}")
            return answer
        request = self._request(incoming, read, found)
        faults = self._fate.faults(request, number) if self._fallible else ()
        early = _instead(faults, wire)
        if early is not None:
            self._note(number, incoming, found, early, faults=faults)
            return early
        return self._scripted(number, incoming, found, wire, request, read, faults)

    def _scripted(
        self,
        number: int,
        incoming: Incoming,
        found: Route,
        wire: WireFormat,
        request: ChatRequest,
        read: ReadRequest,
        faults: tuple[Fault, ...],
    ) -> Answer:
        entry: Entry | None = None
        problem, latency = None, 0.0
        try:
            entry = self._take(request, incoming, number)
            latency = entry.reply.latency
            answer = self._renderer.render(entry, request, read, wire, number, faults)
            if isinstance(entry.reply.answer, RawStream):
                latency += entry.reply.answer.seconds
            elif isinstance(answer, Streamed) and answer.frames:
                latency += self._pacing.token_seconds * (len(answer.frames) - 1)
        except Exception as error:  # noqa: BLE001  # a script may call the user's code
            problem = str(error) if isinstance(error, StatekSimError) else f"{type(error).__name__}: {error}"
            status = MISMATCH_STATUS if isinstance(error, ScriptError) else 500
            answer = http_error(wire, status, message=problem)
        self._at += latency
        self._note(
            number, incoming, found, answer, entry=entry, faults=faults, problem=problem, latency=latency
        )
        return answer

    def _request(self, incoming: Incoming, read: ReadRequest, found: Route) -> ChatRequest:
        headers, asked = incoming.headers, read.asked
        retries = headers.get(RETRY_HEADER, "0")
        return ChatRequest(
            job_id=headers.get(JOB_HEADER, "http"),
            role=headers.get(AGENT_HEADER, asked.model),
            turn=read.turn,
            attempt=int(retries) + 1 if retries.isdecimal() and len(retries) < 4 else 1,
            at=self._at,
            model=asked.model,
            messages=asked.messages,
            tools=asked.tools,
            temperature=asked.temperature,
            bytes_sent=len(incoming.body),
            wire=found.wire,
            headers=headers,
        )

    def _take(self, request: ChatRequest, incoming: Incoming, number: int) -> Entry:
        """Return the entry that answers; a `ScriptError` says why there is none."""
        lanes = self._lanes
        lane = lanes.get(f"job:{request.job_id}") or lanes.get(request.role) or lanes.get(EVERYBODY)
        entry = None if lane is None else lane.take(request)
        if entry is None:
            raise UnmatchedRequest(self._mismatch(request, incoming, number, lane))
        return entry

    def _mismatch(self, request: ChatRequest, incoming: Incoming, number: int, lane: Lane | None) -> str:
        path = incoming.target.partition("?")[0]
        asked = f"request {number} (POST {path}, model {request.model!r}, turn {request.turn})"
        if lane is None:
            known = ", ".join(map(repr, self._lanes)) or "nobody"
            return (
                f"{asked} is for {request.role!r}, but there are scripts for {known} only; "
                f"the header {AGENT_HEADER} names another one"
            )
        script = f"script {lane.key!r}" if lane.key else "the script"
        pending = lane.pending()
        if not pending:
            return exhausted(asked, request, script, lane.total)
        return unmatched(asked, request, script, pending)

    def _note(
        self,
        number: int,
        incoming: Incoming,
        found: Route,
        answer: Answer,
        *,
        entry: Entry | None = None,
        faults: tuple[Fault, ...] = (),
        problem: str | None = None,
        latency: float = 0.0,
    ) -> None:
        status = 0 if isinstance(answer, Silence) else answer.status
        self.journal.add(
            JournalEntry(
                number,
                found.wire,
                incoming.target,
                incoming.headers,
                incoming.body,
                status,
                entry,
                faults,
                problem,
                latency,
            )
        )

    # Everything else.

    def _elsewhere(self, request: Incoming, found: Route) -> Answer:
        wire = FORMATS["anthropic" if "anthropic-version" in request.headers else found.wire]
        created = int(EPOCH.timestamp())
        match found.place:
            case Place.MODELS:
                return Whole(status=200, body=models_body(wire.NAME, self._models, created))
            case Place.MODEL if found.model in self._models:
                return Whole(status=200, body=model_body(wire.NAME, found.model, created))
            case Place.JOURNAL:
                return _page([entry.record() for entry in self.journal.entries()])
            case Place.UNUSED:
                return _page([str(reply) for reply in self.unused()])
            case _:
                status, message = self._refusal(request.method, found)
                if request.method == "POST":
                    # A client that asks for what is not there fails its test, whatever it makes of the answer.
                    self.journal.add_problem(f"POST {found.path}: {message}")
                return http_error(wire, status, message=message)

    def _refusal(self, method: str, found: Route) -> tuple[int, str]:
        """Return the status and the words for a request that leads nowhere."""
        match found.place:
            case Place.MODEL:
                return 404, f"no model {found.model!r}; there are {', '.join(self._models)}"
            case Place.WRONG_METHOD:
                return 405, f"{method} is not what {found.path} is for"
            case Place.NO_EVENTS:
                return 400, f"{found.path} streams events only: add ?alt=sse"
            case _:
                return 404, _nowhere(found)


def _counting(script: Script) -> Script:
    """Return `script` with usage counted wherever a reply does not say its own."""
    if isinstance(script, Mapping):
        return {key: _counted(key, entries) for key, entries in script.items()}
    return _counted(EVERYBODY, script)


def _counted(key: str, entries: Sequence[ScriptEntry]) -> list[ScriptEntry]:
    if isinstance(entries, str | bytes) or not isinstance(entries, Sequence):
        raise BadInput(f"{f'script {key!r}' if key else 'a script'} is a list of replies, not {entries!r}")
    replies = map(as_reply, entries)
    return [
        replace(reply, usage=UsageKind.MEASURED)
        if reply.usage is UsageKind.ABSENT and isinstance(reply.answer, Chat | Computed)
        else reply
        for reply in replies
    ]


def _instead(faults: tuple[Fault, ...], wire: WireFormat) -> Answer | None:
    """Return the answer of a fault that takes the place of the script's."""
    for fault in faults:
        if isinstance(fault, HttpError):
            return http_error(wire, fault.status, fault.retry_after)
        if isinstance(fault, NoAnswerAtAll):
            return Silence()
    return None


def _page(items: Sequence[JSON]) -> Whole:
    return Whole(status=200, body=compact(list(items)).encode())


def _nowhere(found: Route) -> str:
    return (
        f"nothing at {found.path}; there are /v1/chat/completions, /v1/messages, "
        f"/v1beta/models/MODEL:generateContent, /v1/models, {JOURNAL} and {UNUSED}"
    )
