"""The answers of a scripted LLM: frozen replies, and short constructors that read well in a test.

    [code("item = fetch_next_item(owner)"), fault(429), tool_call("close_item", item="item"),
     text("Approved.").when(tool_result="approval").after(2.0), code("exit('ok')")]

A plain string in a script means `code(...)`; a plain callable means `computed(...)`.
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
from statek_sim.providers.wire.reply import Citation, ScoredToken
from statek_sim.values import JSON


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One tool call of a reply. `id` None means `call-<turn>-<n>`, n counting the calls of the reply from 1.

    `arguments` is `args` as the JSON text that is sent.
    """

    name: str
    args: Mapping[str, JSON]
    id: str | None = None
    arguments: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            arguments = json.dumps(dict(self.args), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"the arguments of tool call {self.name!r} are not JSON: {error}") from error
        # The only way to set a derived field of a frozen dataclass.
        object.__setattr__(self, "arguments", arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A chat message: text, code and tool calls in any combination. The chat style determines the form of code.

    `thinking`: the model's thinking before the message. `refuses`: the text says why the model does not answer.
    `citations` and `tokens` (with log probabilities) belong to `text`.
    """

    text: str | None = None
    code: str | None = None
    calls: tuple[ScriptedCall, ...] = ()
    thinking: str = ""
    refuses: bool = False
    citations: tuple[Citation, ...] = ()
    tokens: tuple[ScoredToken, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpFault:
    """An HTTP status from 400 to 599. STATEK ignores `retry_after` (seconds); other clients may use it."""

    status: int
    retry_after: float | None = None

    def __post_init__(self) -> None:
        if not 400 <= self.status <= 599:
            raise BadInput(f"expected the status of an HTTP fault from 400 to 599, got {self.status!r}")


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A provider that does not answer before the client gives up."""


@dataclass(frozen=True, slots=True)
class RawBody:
    """A successful answer with exactly this body, well-formed or not."""

    body: bytes


@dataclass(frozen=True, slots=True)
class RawStream:
    """A successful answer as server-sent events: the recorded pieces, each with the seconds before it.

    A client that did not ask for a stream gets the combined body.
    """

    pieces: tuple[tuple[float, bytes], ...]

    @property
    def body(self) -> bytes:
        """All pieces."""
        return b"".join(piece for _, piece in self.pieces)

    @property
    def seconds(self) -> float:
        """Duration of the stream."""
        return sum(seconds for seconds, _ in self.pieces)


@dataclass(frozen=True, slots=True)
class Computed:
    """An answer that a callable computes from the request."""

    function: ReplyFunction


@dataclass(frozen=True, slots=True)
class Vector:
    """The embedding of one text. Only the fake server gets requests for one."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values or not all(math.isfinite(value) for value in self.values):
            raise BadInput(f"an embedding needs one or more finite numbers, got {self.values!r}")


Answer = Chat | HttpFault | NoAnswer | RawBody | RawStream | Vector | Computed
"""Every possible answer of a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedUsage:
    """Usage reported by the provider: tokens, and cost in its currency. A count of None is sent as null."""

    prompt: int | None = 0
    completion: int | None = 0
    cached: int | None = 0
    cost: float | None = None

    def __post_init__(self) -> None:
        if self.cost is not None and not math.isfinite(self.cost):
            raise BadInput(f"expected a finite reported cost, got {self.cost!r}")


class UsageKind(Enum):
    """Ways to report usage without numbers."""

    ABSENT = "absent"
    """The body has no `usage` key."""
    NULL = "null"
    """The body says `"usage": null`, which ends a STATEK job."""
    MEASURED = "measured"
    """The body reports the counts of the scripted LLM's `measure` function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One entry of a script: an answer, its condition, and how it is sent.

    `latency`: virtual seconds until the answer (or failure) arrives. `condition`: None means "by position". `repeat`:
    how often it may be used; None means forever. `job`: only this job may use it. `truncated`: the last tool call's
    arguments, or the content, are cut in half, with finish reason `length`. `malformed_arguments`: sent verbatim as the
    arguments of the last tool call. `fence`: whether code is fenced; None leaves it to the chat style. `place`: the
    kind of request it answers; places other than `chat` are used over HTTP only. `is_mistaken`: its calls deliberately
    differ from the offered tools.
    """

    answer: Answer
    latency: float = 0.0
    usage: ScriptedUsage | UsageKind = UsageKind.ABSENT
    condition: Condition | None = None
    repeat: int | None = 1
    job: str | None = None
    truncated: bool = False
    malformed_arguments: str | None = None
    fence: bool | None = None
    place: Place = "chat"
    is_mistaken: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.answer, Vector) and self.place != "embeddings":
            raise BadInput("a vector can only answer an embeddings request; use embedding(...)")
        if not (math.isfinite(self.latency) and self.latency >= 0):
            raise BadInput(f"expected a finite latency in seconds, at least 0, got {self.latency!r}")
        if self.repeat is not None and self.repeat < 1:
            raise BadInput(f"expected repeat of 1 or more, or None for no limit, got {self.repeat!r}")
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
        """Arrive `seconds` of virtual time after the request."""
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
        """Answer only matching requests; a plain string means "contains". See `Condition`."""
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
        """Answer only requests with exactly this content; a plain string is the whole text.

        Pass `contains(...)` or `matches(...)` for parts of a text. Names of headers are case-insensitive.
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
        """Answer `count` requests."""
        return replace(self, repeat=count)

    def forever(self) -> Reply:
        """Answer any number of requests. Without a condition, later replies are never used."""
        return replace(self, repeat=None)

    def mistaken(self) -> Reply:
        """Allow calls of tools that are not offered, or with other arguments: a mistake that the agent must handle."""
        return replace(self, is_mistaken=True)

    def thinking(self, thought: str) -> Reply:
        """Show the model's thinking before its answer, in each format's own form.

        Anthropic: a signed block. Responses: the summary of a reasoning item. Gemini: a part marked as a thought. Chat
        completions: `reasoning_content`, as in DeepSeek and vLLM. At the fake server, a request that does not ask for
        thinking fails the test.
        """
        if not isinstance(self.answer, Chat):
            raise BadInput(f"thinking() requires a reply with a message, got {type(self.answer).__name__}")
        return replace(self, answer=replace(self.answer, thinking=thought))

    def citing(self, url: str, *, title: str = "", span: str = "", quote: str = "") -> Reply:
        """Cite a web page for `span`, a part of the text (default: all of it), in each format's own form.

        `quote` is the cited text of the page, which only Anthropic sends (default: the span). Spans of several
        citations must be equal or disjoint. Chat completions and Responses: the annotation `url_citation`. Anthropic:
        text blocks with `web_search_result_location`. Gemini: `groundingMetadata`.
        """
        chat = self._text_message("citing")
        text, cited = chat.text or "", Citation(url, title, span, quote)
        place = cited.place(text)
        if place is None:
            raise BadInput(f"citing(span={span!r}): expected a part of the text, {text!r}")
        for other in chat.citations:
            start, end = other.place(text) or (0, 0)
            if (start, end) != place and start < place[1] and place[0] < end:
                raise BadInput(
                    f"citing(span={span!r}): overlaps the span {other.span or text!r}; cite equal or separate spans"
                )
        return replace(self, answer=replace(chat, citations=(*chat.citations, cited)))

    def logprobs(self, *tokens: tuple[str, float] | tuple[str, float, Mapping[str, float]]) -> Reply:
        """Send the log probabilities of the text's tokens: `(token, logprob)`, or `(token, logprob, {other: logprob})`.

        The tokens joined are the text, and the pieces of a stream. Chat completions: `logprobs.content`. Responses:
        `logprobs` of the text. Gemini: `logprobsResult`. Anthropic has none, and refuses. At the fake server, a request
        that does not ask for log probabilities fails the test.
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
            raise BadInput(f"{word}() needs a reply with text, and no code or refusal")
        return chat

    def only_for(self, job: str) -> Reply:
        """Answer only the job with this id."""
        return replace(self, job=job)

    def reporting(
        self,
        *,
        prompt: int | None = 0,
        completion: int | None = 0,
        cached: int | None = 0,
        cost: float | None = None,
    ) -> Reply:
        """Report this usage: tokens, and cost in the provider's currency."""
        return self.with_usage(ScriptedUsage(prompt=prompt, completion=completion, cached=cached, cost=cost))

    def with_usage(self, usage: ScriptedUsage | UsageKind) -> Reply:
        """Report `usage`."""
        return replace(self, usage=usage)

    def cut_short(self) -> Reply:
        """Drop the second half of the answer."""
        return replace(self, truncated=True)

    def with_arguments(self, raw: str) -> Reply:
        """Send `raw`, JSON or not, as the arguments of the last tool call."""
        return replace(self, malformed_arguments=raw)

    def fenced(self, *, fence: bool) -> Reply:
        """Fence the code or send it raw, regardless of the chat style."""
        return replace(self, fence=fence)


ReplyFunction = Callable[[ChatRequest], Reply | str | bytes]
"""A plain callable as a model: a returned string is code, bytes are a raw body."""

ScriptEntry = Reply | str | ReplyFunction
"""An entry of a script."""


def code(source: str) -> Reply:
    """Answer with Python code in the form that the agent's chat style executes."""
    return Reply(answer=Chat(code=source))


def text(content: str) -> Reply:
    """Answer with exactly this content."""
    return Reply(answer=Chat(text=content))


def refusal(content: str) -> Reply:
    """Refuse to answer, and say why, in each format's own form.

    OpenAI: `refusal` instead of the content. Anthropic: stop reason `refusal`. Gemini: finish reason `SAFETY` and no
    text.
    """
    return Reply(answer=Chat(text=content, refuses=True))


def tool_call(name: str, arguments: Mapping[str, JSON] | None = None, /, **args: JSON) -> Reply:
    """Answer with one tool call. Pass arguments whose names are not Python names as a mapping."""
    if not isinstance(arguments, Mapping | None):
        raise BadInput(
            f"tool call {name!r} has {arguments!r}; pass arguments by keyword: tool_call({name!r}, name=value)"
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
    return Reply(answer=HttpFault(status, retry_after))


def timeout() -> Reply:
    """Return a reply that never arrives.

    The client gives up after 60 virtual seconds, or earlier with `.after(seconds)`.
    """
    return Reply(answer=NoAnswer(), latency=CLIENT_TIMEOUT)


def embedding(*values: float) -> Reply:
    """Answer one text of a request for embeddings with this vector; the fake server computes all others."""
    return Reply(answer=Vector(tuple(map(float, values))), place="embeddings")


def raw(body: bytes | str | Mapping[str, JSON]) -> Reply:
    """Answer with exactly this body; a mapping is dumped as compact JSON."""
    if isinstance(body, bytes):
        return Reply(answer=RawBody(body))
    document = (
        body if isinstance(body, str) else json.dumps(dict(body), ensure_ascii=False, separators=(",", ":"))
    )
    return Reply(answer=RawBody(document.encode(errors="surrogatepass")))


def raw_stream(pieces: Iterable[tuple[float, bytes]]) -> Reply:
    """Answer with exactly these server-sent events: seconds before each piece, and its bytes."""
    return Reply(answer=RawStream(tuple(pieces)))


def computed(function: ReplyFunction) -> Reply:
    """Answer with the result of `function` for the request."""
    return Reply(answer=Computed(function))


def as_reply(entry: ScriptEntry | bytes) -> Reply:
    """Return the reply for a script entry, or for a callable's result."""
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
    """Return the replies of a script, for a `role` or for everybody; `BadInput` with `advice` if it is not a list."""
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
    """Return scripts that were passed by keyword, `script(worker=[...])`; raises `BadInput` if one is not a list."""
    return {role: reply_list(entries, role, f"; write {role}=[...]") for role, entries in by_role.items()}


def _exactly(wanted: str | TextMatch | None) -> TextMatch | None:
    return equals(wanted) if isinstance(wanted, str) else wanted


def _text_match(wanted: str | TextMatch | None) -> TextMatch | None:
    return contains(wanted) if isinstance(wanted, str) else wanted
