"""Run trajectories, from a server's journal, a cassette, a trace, or an application.

run = trajectory(statek_llm_server)  # or `statek_cassette`, a guest, an `AgentHarness`, a `Trace`, `statek_app`
run.expect_calls(call("get_weather", city="Oslo"), call("send", ..., to=re.compile("@example.org")))
run.never_called("delete_*")
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from statek_sim.errors import BadInput, InvalidFormat
from statek_sim.observed_calls import Call, Request, Trajectory
from statek_sim.observed_trace import traced, what_came_last, written_arguments
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.wire.format import FORMATS
from statek_sim.providers.wire.reply import MALFORMED
from statek_sim.providers.wire.request import FormatName, calls_of
from statek_sim.server.exchange import Place, route
from statek_sim.server.journal import JournalEntry
from statek_sim.server.parsed_request import ParsedRequest, read_request
from statek_sim.trace import Trace
from statek_sim.values import JSON, Message

if TYPE_CHECKING:
    from statek_sim.cassettes.exchange import Exchange


@runtime_checkable
class _Traced(Protocol):
    @property
    def trace(self) -> Trace: ...


@runtime_checkable
class _Served(Protocol):
    @property
    def requests(self) -> tuple[JournalEntry, ...]: ...


@runtime_checkable
class _Recorded(Protocol):
    def readable(self) -> Sequence[Exchange]: ...


@runtime_checkable
class _Application(Protocol):
    @property
    def requests(self) -> tuple[ChatRequest, ...]: ...

    @property
    def jobs(self) -> tuple[Any, ...]: ...


def trajectory(source: _Served | _Traced | _Application | _Recorded | Trace) -> Trajectory:
    """Return a run's requests, calls and answer so far.

    `source` is a fake LLM server, a cassette, a guest, an agent, a trace, or an application. For a server or cassette,
    calls come from the responses, and results from later requests. Several conversations form one trajectory, in
    response order. An application (`statek_app`) has no token counts and no turns. Raises `BadInput` for any other
    source.
    """
    if isinstance(source, Trace):
        return traced(source)
    if isinstance(source, _Traced):
        return traced(source.trace)
    if isinstance(source, _Application):
        return _of_application(source)
    if isinstance(source, _Recorded):
        return _of_conversation([one for exchange in source.readable() if (one := _recorded(exchange))])
    if isinstance(source, _Served):
        return _of_conversation([one for entry in source.requests if (one := _served(entry))])
    raise BadInput(
        f"{source!r} contains neither requests nor a trace; pass a fake LLM server, a cassette, a guest, an agent or a "
        "trace"
    )


def _of_application(app: _Application) -> Trajectory:
    calls = [
        Call(use.name, written_arguments(use.arguments), use.result, use.error, 0)
        for job in app.jobs
        for use in job.tools
    ]
    requests = tuple(
        Request(number, request.model, tuple(request.messages), None, 0, 0)
        for number, request in enumerate(app.requests, 1)
    )
    last = app.jobs[-1] if app.jobs else None
    answer = last.exit if last is not None and isinstance(last.exit, str) else None
    return Trajectory(tuple(calls), requests, answer, last.stop if last is not None else None)


# ---- from a server, from a cassette


@dataclass(frozen=True, slots=True)
class _Observed:
    """A parsed request (None if invalid) and its response, which is either an `error`, or calls and text.

    `calls` is None if the response cannot be parsed; its calls are then known only from a later request. `tokens` are
    the prompt and completion token counts.
    """

    read: ParsedRequest | None
    error: str | None = None
    calls: Sequence[tuple[str, Any]] | None = None
    text: str | None = None
    tokens: tuple[int, int] = (0, 0)


def _of_conversation(observed: Sequence[_Observed]) -> Trajectory:
    calls: list[Call] = []
    requests: list[Request] = []
    answer, turn = None, 0
    conversations = [() if one.read is None else one.read.request.messages for one in observed]
    for number, (exchange, messages) in enumerate(zip(observed, conversations, strict=True), 1):
        model = "" if exchange.read is None else exchange.read.request.model
        if exchange.error is not None:
            requests.append(Request(0, model, messages, exchange.error, 0, 0))
            continue
        turn += 1
        made = list(_answered(exchange.calls, messages, conversations[number:], turn))
        calls += made
        answer = None if made else exchange.text
        requests.append(Request(turn, model, messages, None, *exchange.tokens))
    return Trajectory(tuple(calls), tuple(requests), answer, what_came_last(requests, calls))


def _served(entry: JournalEntry) -> _Observed | None:
    if route("POST", entry.raw_target).place is not Place.CHAT:
        return None
    read, error = _read(entry.wire, entry.raw_target, entry.body), _why_unanswered(entry)
    if error is not None or entry.reply is None:
        return _Observed(read, error or "no answer")
    message, tokens = entry.message, _tokens(entry, read)
    if message is None:
        return _Observed(read, tokens=tokens)
    calls = [(one.name, _read_arguments(one.arguments)) for one in message.calls]
    return _Observed(read, None, calls, message.text, tokens)


def _recorded(exchange: Exchange) -> _Observed | None:
    request, response = exchange.request, exchange.response
    found = route(request.method, request.uri)
    if found.place is not Place.CHAT:
        return None
    wire, read = FORMATS[found.wire], _read(found.wire, found.path, request.body)
    if response.status != 200:
        return _Observed(read, f"HTTP {response.status}")
    try:
        reply = wire.read_reply(wire.join_stream(response.body) if response.is_stream else response.body)
    except (InvalidFormat, *MALFORMED) as error:
        return _Observed(read, f"cannot parse the response: {error}")
    calls = [(one.name, one.arguments) for one in reply.tool_calls]
    return _Observed(read, None, calls, reply.text, (reply.usage.prompt or 0, reply.usage.completion or 0))


def _read(wire: FormatName, target: str, body: bytes) -> ParsedRequest | None:
    try:
        return read_request(wire, target, body)
    except ValueError:
        return None


def _why_unanswered(entry: JournalEntry) -> str | None:
    """Return why the client did not receive a complete response, or None if it did."""
    if entry.problem is not None:
        return entry.problem.partition("\n")[0]
    if not entry.is_answered or entry.reply is None:
        return ", ".join(map(str, entry.faults)) or f"HTTP {entry.status}"
    return None if entry.status == 200 else f"HTTP {entry.status}"


def _tokens(entry: JournalEntry, read: ParsedRequest | None) -> tuple[int, int]:
    """Return the prompt and completion token counts, either as reported or as counted with the model's tokenizer."""
    message = entry.message
    if read is None:
        return 0, 0
    if message is None:
        return read.prompt_tokens(), 0
    if message.usage is not None and message.usage.present:
        return message.usage.prompt or 0, message.usage.completion or 0
    texts = [message.thinking, message.text or ""]
    texts += [part for one in message.calls for part in (one.name, one.arguments)]
    return read.prompt_tokens(), read.text_tokens(texts)


def _answered(
    known: Sequence[tuple[str, Any]] | None,
    before: tuple[Message, ...],
    later: Sequence[tuple[Message, ...]],
    turn: int,
) -> Iterator[Call]:
    """Yield the calls in one response, with their results from a later request.

    The later request is the first one that continues the conversation `before` with a message containing calls or, if a
    framework rewrites its history, the first one with the same calls. If `known` is None, the calls are taken from the
    later request.
    """
    found = next((rest for rest in _continued(before, later) if _calls_in(rest[0])), None)
    if found is None and known:
        turns = (messages[place:] for messages in later for place in range(len(messages)))
        found = next((rest for rest in turns if [one[:2] for one in _calls_in(rest[0])] == [*known]), None)
    seen = _calls_in(found[0]) if found else []
    results = [message for message in found[1:] if message.get("role") == "tool"] if found else []
    for place, (name, arguments) in enumerate([one[:2] for one in seen] if known is None else known):
        call_id = seen[place][2] if place < len(seen) else None
        result = next((one for one in results if one.get("tool_call_id") == call_id), None)
        if result is not None:
            results.remove(result)
        yield Call(name, arguments, _text(result), None, turn)


def _text(result: Message | None) -> str | None:
    content = result.get("content") if result else None
    return content if content is None or isinstance(content, str) else json.dumps(content)


def _continued(
    before: tuple[Message, ...], later: Iterable[tuple[Message, ...]]
) -> Iterator[tuple[Message, ...]]:
    """Yield the messages added by each later request that continues the conversation `before`."""
    for messages in later:
        if len(messages) > len(before) and messages[: len(before)] == before:
            yield messages[len(before) :]


def _calls_in(message: Message) -> list[tuple[str, Any, str]]:
    """Return the name, arguments and id of each tool call in a message."""
    return [(str(name), _read_arguments(given), str(call_id)) for call_id, name, given in calls_of(message)]


def _read_arguments(text: JSON) -> Any:
    try:
        read = json.loads(str(text))
    except ValueError:
        return str(text)
    return read if isinstance(read, dict) else str(text)
