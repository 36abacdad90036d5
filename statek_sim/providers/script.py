"""A scripted LLM's replies as frozen values, and a short constructor for each kind of reply.

    [code("item = fetch_next_item(owner)"), fault(429), tool_call("close_item", item="item"),
     text("Approved.").when(tool_result="approval").after(2.0), code("exit('ok')")]

In a script, a string is shorthand for `code(...)`, and a callable is shorthand for `computed(...)`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from statek_sim.errors import BadInput
from statek_sim.providers.condition import Condition, TextMatch, contains, equals
from statek_sim.providers.protocol import CLIENT_TIMEOUT, ChatRequest, Place
from statek_sim.providers.wire.reply import Citation, ReportedUsage, ScoredToken
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call in a reply. `id` defaults to `call-2-1` for the first call in a reply on turn 2, and so on.

    `arguments` is `args` as JSON text. Raises `BadInput` if they cannot be serialized to JSON.
    """

    name: str
    args: Mapping[str, JSON]
    id: str | None = None
    arguments: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            arguments = json.dumps(dict(self.args), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise BadInput(
                f"the arguments of tool call {self.name!r} cannot be serialized to JSON: {error}"
            ) from error
        # The only way to set a derived field of a frozen dataclass.
        object.__setattr__(self, "arguments", arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat message with any combination of text, code and tool calls. The chat style determines how code is sent.

    `thinking` is the model's thinking before the message. `refuses` marks the text as a refusal. `citations` and
    `tokens` (with log probabilities) describe parts of `text`.
    """

    text: str | None = None
    code: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    thinking: str = ""
    refuses: bool = False
    citations: tuple[Citation, ...] = ()
    tokens: tuple[ScoredToken, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error with an HTTP status from 400 to 599; `retry_after` is in seconds, and STATEK ignores it.

    As an injected fault, the error replaces a response without using a reply, so that a retry gets the pending reply.
    """

    status: int = 500
    retry_after: float | None = None

    def __post_init__(self) -> None:
        if not 400 <= self.status <= 599:
            raise BadInput(f"expected an HTTP error status from 400 to 599, got {self.status!r}")


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No response before the client times out."""


@dataclass(frozen=True, slots=True)
class RawBody:
    """A successful response with exactly this body, which need not be well-formed."""

    body: bytes


@dataclass(frozen=True, slots=True)
class RawStream:
    """A successful response as server-sent events, in chunks of (delay in seconds, bytes).

    A client that did not request a stream gets the combined body.
    """

    pieces: tuple[tuple[float, bytes], ...]

    @property
    def body(self) -> bytes:
        """All chunks, joined."""
        return b"".join(piece for _, piece in self.pieces)

    @property
    def seconds(self) -> float:
        """The stream's duration in virtual seconds."""
        return sum(seconds for seconds, _ in self.pieces)


@dataclass(frozen=True, slots=True)
class Computed:
    """An answer computed from the request by a callable."""

    function: ReplyFunction


@dataclass(frozen=True, slots=True)
class Vector:
    """The embedding of one input string, for the fake server."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values or not all(math.isfinite(value) for value in self.values):
            raise BadInput(f"an embedding requires one or more finite numbers, got {self.values!r}")


Answer = Chat | HttpError | NoAnswer | RawBody | RawStream | Vector | Computed
"""A scripted reply's answer."""


class UsageKind(Enum):
    """How a reply reports usage if the script gives no numbers."""

    ABSENT = "absent"
    """The body contains no `usage` key."""
    NULL = "null"
    """The body contains `"usage": null`, which ends a STATEK job."""
    MEASURED = "measured"
    """The body reports the counts from the scripted LLM's `measure` function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A script entry: an answer, the requests that it answers, and how it is delivered.

    - `latency`: virtual seconds until the answer or failure arrives.
    - `condition`: the requests that the reply answers; None accepts every request.
    - `repeat`: how often the reply may be used; None means forever.
    - `job`: the only job that may use the reply.
    - `truncated`: the last tool call's arguments, or the content, are cut in half, with finish reason `length`.
    - `malformed_arguments`: a string that replaces the arguments of the last tool call.
    - `fence`: whether code is fenced; None leaves this to the chat style.
    - `place`: the kind of request that the reply answers; kinds other than `chat` exist only over HTTP.
    - `is_mistaken`: the calls may name tools or arguments that the request does not offer.
    """

    answer: Answer
    latency: float = 0.0
    usage: ReportedUsage | UsageKind = UsageKind.ABSENT
    condition: Condition | None = None
    repeat: int | None = 1
    job: str | None = None
    truncated: bool = False
    malformed_arguments: str | None = None
    fence: bool | None = None
    place: Place = "chat"
    is_mistaken: bool = False

    def __post_init__(self) -> None:
        cost = self.usage.cost if isinstance(self.usage, ReportedUsage) else None
        if cost is not None and not math.isfinite(cost):
            raise BadInput(f"expected a finite reported cost, got {cost!r}")
        if isinstance(self.answer, Vector) and self.place != "embeddings":
            raise BadInput("a vector can answer only an embedding request; use embedding(...)")
        if not (math.isfinite(self.latency) and self.latency >= 0):
            raise BadInput(f"expected a finite latency of 0 seconds or more, got {self.latency!r}")
        if self.repeat is not None and self.repeat < 1:
            raise BadInput(f"expected repeat to be 1 or more, or None for no limit, got {self.repeat!r}")
        if not isinstance(self.answer, Chat | Computed):
            self._refuse_message_options()

    def _refuse_message_options(self) -> None:
        options = {
            "usage": self.usage is not UsageKind.ABSENT,
            "truncated": self.truncated,
            "malformed_arguments": self.malformed_arguments is not None,
            "fence": self.fence is not None,
        }
        for option in (name for name, given in options.items() if given):
            raise BadInput(f"{option!r} requires a reply with a message, got {type(self.answer).__name__}")

    def after(self, seconds: float) -> Reply:
        """Delay the reply until `seconds` of virtual time after the request."""
        return replace(self, latency=seconds)

    def when(
        self,
        last_message: str | TextMatch | None = None,
        *,
        tool_result: str | TextMatch | None = None,
        turn: int | None = None,
        attempt: int | None = None,
        at: float | None = None,
    ) -> Reply:
        """Answer only requests that meet these conditions (see `Condition`); a string means `contains(...)`."""
        return replace(
            self,
            condition=Condition(
                last_message=_text_match(last_message),
                tool_result=_text_match(tool_result),
                turn=turn,
                attempt=attempt,
                at=at,
            ),
        )

    def on(
        self,
        last_message: str | TextMatch | None = None,
        *,
        tool_result: str | TextMatch | None = None,
        model: str | TextMatch | None = None,
        headers: Mapping[str, str | TextMatch] | None = None,
    ) -> Reply:
        """Answer only requests that contain exactly these strings.

        Pass `contains(...)` or `matches(...)` to match part of a string. Header names are case-insensitive.
        """
        return replace(
            self,
            condition=Condition(
                last_message=_exactly(last_message),
                tool_result=_exactly(tool_result),
                model=_exactly(model),
                headers=tuple(
                    (name.lower(), equals(wanted) if isinstance(wanted, str) else wanted)
                    for name, wanted in (headers or {}).items()
                ),
            ),
        )

    def times(self, count: int) -> Reply:
        """Answer `count` requests instead of one."""
        return replace(self, repeat=count)

    def forever(self) -> Reply:
        """Answer any number of requests. If the reply has no condition, later replies are never used."""
        return replace(self, repeat=None)

    def mistaken(self) -> Reply:
        """Allow calls with tools or arguments that the request does not offer, as a deliberate mistake by the model."""
        return replace(self, is_mistaken=True)

    def thinking(self, thought: str) -> Reply:
        """Add visible thinking before the answer, as each format represents it.

        Anthropic: a signed block. Responses: the summary of a reasoning item. Gemini: a part marked as a thought. Chat
        Completions: `reasoning_content`, as in DeepSeek and vLLM. The fake server fails a request that does not ask for
        thinking.
        """
        if not isinstance(self.answer, Chat):
            raise BadInput(f"thinking() requires a reply with a message, got {type(self.answer).__name__}")
        return replace(self, answer=replace(self.answer, thinking=thought))

    def citing(self, url: str, *, title: str = "", span: str = "", quote: str = "") -> Reply:
        """Cite a web page for `span`, a part of the text (default: the whole text), as each format represents it.

        `quote` is the text quoted from the page (default: the span); only Anthropic sends it. The spans of any two
        citations must be equal or disjoint. Chat Completions and Responses: the annotation `url_citation`. Anthropic:
        text blocks with `web_search_result_location`. Gemini: `groundingMetadata`. Raises `BadInput` for a span that is
        not in the text.
        """
        chat = self._text_message("citing")
        text, cited = chat.text or "", Citation(url, title, span, quote)
        place = cited.place(text)
        if place is None:
            raise BadInput(f"citing(span={span!r}): expected a part of the text {text!r}")
        for other in chat.citations:
            start, end = other.place(text) or (0, 0)
            if (start, end) != place and start < place[1] and place[0] < end:
                raise BadInput(
                    f"citing(span={span!r}): overlaps the span {other.span or text!r}; spans must be equal or disjoint"
                )
        return replace(self, answer=replace(chat, citations=(*chat.citations, cited)))

    def logprobs(self, *tokens: tuple[str, float] | tuple[str, float, Mapping[str, float]]) -> Reply:
        """Send the log probabilities of the text's tokens: `(token, logprob)`, or `(token, logprob, {other: logprob})`.

        When joined, the tokens must equal the text. A stream sends one token per chunk. Chat Completions:
        `logprobs.content`. Responses: `logprobs` of the text. Gemini: `logprobsResult`. Anthropic does not support log
        probabilities. The fake server fails a request that does not ask for them.
        """
        chat = self._text_message("logprobs")
        scored = tuple(ScoredToken(token[0], token[1], tuple(dict(*token[2:]).items())) for token in tokens)
        if not scored or "".join(token.text for token in scored) != chat.text:
            raise BadInput(
                f"logprobs(): expected the tokens of {chat.text!r}, got {[one.text for one in scored]!r}"
            )
        for token in scored:
            for text, logprob in ((token.text, token.logprob), *token.others):
                if not (math.isfinite(logprob) and logprob <= 0):
                    raise BadInput(
                        f"logprobs(): the log probability of {text!r} is {logprob!r}, expected 0 or less"
                    )
        return replace(self, answer=replace(chat, tokens=scored))

    def _text_message(self, word: str) -> Chat:
        chat = self.answer
        if not isinstance(chat, Chat) or not chat.text or chat.code is not None or chat.refuses:
            raise BadInput(f"{word}() requires a reply with text and without code or a refusal")
        return chat

    def only_for(self, job: str) -> Reply:
        """Answer only requests from the job with this id."""
        return replace(self, job=job)

    def reporting(
        self,
        *,
        prompt: int | None = 0,
        completion: int | None = 0,
        cached: int | None = 0,
        cost: float | None = None,
    ) -> Reply:
        """Report this usage in tokens, and this cost in the provider's currency; a count of None is sent as null."""
        return self.with_usage(ReportedUsage(prompt=prompt, completion=completion, cached=cached, cost=cost))

    def with_usage(self, usage: ReportedUsage | UsageKind) -> Reply:
        """Report this usage: explicit numbers or a `UsageKind`."""
        return replace(self, usage=usage)

    def cut_short(self) -> Reply:
        """Cut the answer in half, with finish reason `length`."""
        return replace(self, truncated=True)

    def with_arguments(self, raw: str) -> Reply:
        """Send `raw`, which need not be JSON, as the arguments of the last tool call."""
        return replace(self, malformed_arguments=raw)

    def fenced(self, *, fence: bool) -> Reply:
        """Send the code with or without a fence, regardless of the chat style."""
        return replace(self, fence=fence)


ReplyFunction = Callable[[ChatRequest], Reply | str | bytes]
"""Returns the reply to a request: a `Reply`, a string of code, or a raw body as bytes."""

ScriptEntry = Reply | str | ReplyFunction
"""A script entry: a reply, a string of code, or a callable that returns the reply."""


def code(source: str) -> Reply:
    """Answer with Python code, sent in the form that the agent's chat style executes."""
    return Reply(answer=Chat(code=source))


def text(content: str) -> Reply:
    """Answer with exactly this content."""
    return Reply(answer=Chat(text=content))


def refusal(content: str) -> Reply:
    """Refuse to answer, with this explanation, as each format represents it.

    OpenAI: `refusal` instead of the content. Anthropic: stop reason `refusal`. Gemini: finish reason `SAFETY` and no
    text.
    """
    return Reply(answer=Chat(text=content, refuses=True))


def tool_call(name: str, arguments: Mapping[str, JSON] | None = None, /, **args: JSON) -> Reply:
    """Answer with one tool call. Pass a mapping for arguments whose names are not Python identifiers."""
    if not isinstance(arguments, Mapping | None):
        raise BadInput(
            f"tool call {name!r} got {arguments!r}; pass arguments by keyword: tool_call({name!r}, name=value)"
        )
    return tool_calls(ScriptedCall(name, {**(arguments or {}), **args}))


def tool_calls(*calls: ScriptedCall | Reply, text: str | None = None, code: str | None = None) -> Reply:
    """Answer with several calls, `tool_calls(tool_call(...), tool_call(...))`, and optionally text or code.

    Use `ScriptedCall` for a call with an id of your choice.
    """
    made = tuple(part for number, call in enumerate(calls, 1) for part in _calls_of(call, number))
    return Reply(answer=Chat(text=text, code=code, calls=made))


def _calls_of(call: object, number: int) -> tuple[ScriptedCall, ...]:
    if isinstance(call, ScriptedCall):
        return (call,)
    made = call.answer.calls if isinstance(call, Reply) and isinstance(call.answer, Chat) else ()
    if not made or call != Reply(answer=Chat(calls=made)):
        raise BadInput(
            f"argument {number} of tool_calls is not a plain tool_call(...); pass text and code by "
            "keyword and set options on the result: tool_calls(tool_call(...), tool_call(...)).after(2)"
        )
    return made


def python(source: str) -> Reply:
    """Answer with one `python_cli` tool call."""
    return tool_call("python_cli", code=source)


def fault(status: int, *, retry_after: float | None = None) -> Reply:
    """Fail with an HTTP status, such as 429 or 500."""
    return Reply(answer=HttpError(status, retry_after))


def timeout() -> Reply:
    """Do not answer. The client times out after 60 virtual seconds, or earlier with `.after(seconds)`."""
    return Reply(answer=NoAnswer(), latency=CLIENT_TIMEOUT)


def embedding(*values: float) -> Reply:
    """Answer one string in an embedding request with this vector; the fake server computes all other vectors."""
    return Reply(answer=Vector(tuple(map(float, values))), place="embeddings")


def raw(body: bytes | str | Mapping[str, JSON]) -> Reply:
    """Answer with exactly this body; a mapping is sent as compact JSON."""
    if isinstance(body, bytes):
        return Reply(answer=RawBody(body))
    document = (
        body if isinstance(body, str) else json.dumps(dict(body), ensure_ascii=False, separators=(",", ":"))
    )
    return Reply(answer=RawBody(document.encode(errors="surrogatepass")))


def raw_stream(pieces: Iterable[tuple[float, bytes]]) -> Reply:
    """Answer with exactly these server-sent events, as pairs of (delay in seconds, bytes)."""
    return Reply(answer=RawStream(tuple(pieces)))


def computed(function: ReplyFunction) -> Reply:
    """Answer with the reply that `function` returns for the request."""
    return Reply(answer=Computed(function))


def as_reply(entry: ScriptEntry | bytes) -> Reply:
    """Convert a script entry or a callable's result to a reply; raises `BadInput` if it is neither."""
    if isinstance(entry, Reply):
        return entry
    if isinstance(entry, str):
        return code(entry)
    if isinstance(entry, bytes):
        return raw(entry)
    if callable(entry):
        return computed(entry)
    if isinstance(entry, list | tuple):
        raise BadInput(
            "a list is not a reply; for several calls in one reply, use tool_calls(tool_call(...), tool_call(...))"
        )
    raise BadInput(f"expected a Reply, a string of code, bytes or a callable, got {entry!r}")


def reply_list(entries: object, role: str = "", advice: str = "") -> list[ScriptEntry]:
    """Return a script's entries; raises `BadInput` with `advice` if the script is not a list.

    `role` names the script in the message.
    """
    if isinstance(entries, Iterable) and not isinstance(entries, str | bytes | Mapping):
        return list(entries)
    given, advice = (
        ("Reply(...)", advice or "; put it in a list: [text('a')]")
        if isinstance(entries, Reply)
        else (repr(entries), advice)
    )
    name = f"script {role!r}" if role else "a script"
    raise BadInput(f"{name}: expected a list of replies, got {given}{advice}")


def replies_by_role(by_role: Mapping[str, Iterable[ScriptEntry]]) -> dict[str, list[ScriptEntry]]:
    """Return the entries of scripts passed by keyword, `script(worker=[...])`; raises `BadInput` for non-lists."""
    return {role: reply_list(entries, role, f"; write {role}=[...]") for role, entries in by_role.items()}


def _exactly(wanted: str | TextMatch | None) -> TextMatch | None:
    return equals(wanted) if isinstance(wanted, str) else wanted


def _text_match(wanted: str | TextMatch | None) -> TextMatch | None:
    return contains(wanted) if isinstance(wanted, str) else wanted
