"""The interface between the loop, its driver and its pluggable parts: effects, their answers, and protocols.

The loop does not perform effects. It yields an effect, and a driver performs the effect, in virtual time or under
asyncio, and sends the result back. A pluggable part is a plain callable or implements a protocol of a few methods; it
depends on this module and on no other part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, Literal, Protocol, runtime_checkable

from statek_sim.agent.escalation import Ladder
from statek_sim.errors import ProviderFailure
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import JSON, Message

ToolFunction = Callable[..., Any]
"""A tool's own code: a function or a coroutine function, called with keyword arguments."""


@dataclass(frozen=True, slots=True)
class Delayed:
    """The return value of a tool that takes `seconds`; after them it returns `value`, or raises `error` if set."""

    seconds: float
    value: object = None
    error: Exception | None = None


# -- calls and replies ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it; `arguments` is the raw text, which may be invalid JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that may be executed: its tool was offered, and its arguments are a JSON object that fits the schema."""

    id: str
    name: str
    arguments: Mapping[str, JSON]


class ToolStatus(StrEnum):
    """How a call ended."""

    RETURNED = "returned"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The outcome of one call. The model reads `text`: the result, or for an error `Type: message`."""

    status: ToolStatus
    text: str

    @property
    def failed(self) -> bool:
        """Whether the tool returned no result."""
        return self.status is not ToolStatus.RETURNED


# -- effects ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskModel:
    """Send a request. The answer is a `RawReply`, or a `ProviderFailure` that the provider raised."""

    request: ChatRequest


CHECK: Final = "check of "
"""Prefix of an invocation's key if it runs the tool's own check whether a call happened, instead of the tool."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call that is executed now: the tool's code and its timeout in seconds (None: no limit).

    `key` identifies the call in its run, also after a restart; the call's receipt has the same key.
    """

    call: ToolCall
    run: ToolFunction
    timeout: float | None = None
    key: str = ""

    @property
    def checks(self) -> bool:
        """Whether this runs the tool's own check whether a call happened, and not the tool itself."""
        return self.key.startswith(CHECK)


@dataclass(frozen=True, slots=True)
class CallTools:
    """Call tools concurrently. The answer is a list with one `ToolOutcome` per call, in the same order.

    `done` is called with each call's position and outcome when it ends.
    """

    calls: Sequence[Invocation]
    done: Callable[[int, ToolOutcome], None]


@dataclass(frozen=True, slots=True)
class LetTimePass:
    """Let `seconds` pass. The answer is None."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question of a gate or a tool to a person, who has `seconds` to answer it (None: no limit).

    `confirms`: the question asks for approval, so that "no" is a refusal and not an answer. Questions of gates and
    guards always ask for approval.
    """

    text: str
    seconds: float | None = None
    confirms: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An open question to a person. `token` is unique among all runs; `tool` names the tool of the call in question."""

    token: str
    job: str
    tool: str
    text: str
    seconds: float | None = None
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class PersonSaid:
    """The result of a question: an answer, a refusal with its reason, or no answer before the deadline."""

    kind: Literal["answered", "refused", "expired"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Ask a person all of these questions at once; the run is suspended meanwhile.

    The answer is a `PersonSaid` for each question. `said` is called with the position and the result of a question when
    the question is settled.
    """

    questions: Sequence[Question]
    said: Callable[[int, PersonSaid], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The saved outcome of a call or a question.

    `key` is the key of the invocation or the token of the question; `at` is the time in seconds. `status` is a
    `ToolStatus`, or the `kind` of a `PersonSaid`. Drivers save receipts durably before the run gets the result.
    """

    job: str
    key: str
    at: float
    status: str
    text: str


def receipt_of(job: str, key: str, came: ToolOutcome | PersonSaid, *, at: float) -> Receipt:
    """Return the receipt of a call or a question, with its outcome `came`, at second `at`."""
    status = came.status.value if isinstance(came, ToolOutcome) else came.kind
    return Receipt(job=job, key=key, at=at, status=status, text=came.text)


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for an awaitable, at most `seconds` (None: no limit). The answer is a `Waited`."""

    what: Awaitable[Any]
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """The result of a `Wait`: the value, or the error that the awaitable raised.

    `late`: the time limit passed, and the error is a `TimeoutError`. A `CancelledError` means that the awaitable
    cancelled itself; if the run is cancelled, it gets no result.
    """

    value: Any = None
    error: BaseException | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """Save a run's state durably before anything else happens. The answer is None.

    `snapshot` returns the current state of the run; a driver may call it only before it continues the run.
    """

    job: str
    point: CommitPoint
    snapshot: Callable[[], Snapshot]


Effect = AskModel | CallTools | LetTimePass | AskPerson | Wait | Commit
"""The effects that the loop may yield to a driver."""

Answer = RawReply | ProviderFailure | Sequence[ToolOutcome] | Sequence[PersonSaid] | Waited | None
"""The results of effects that a driver may send back."""


class CommitPoint(StrEnum):
    """The points at which the loop commits; a run can be resumed from each of them.

    At `calling`, tools are about to be called: a call without a receipt at the next commit may or may not have
    happened. At `attempted`, an attempt of a ladder has ended and another one follows.
    """

    BEGAN = "began"
    REPLIED = "replied"
    CALLING = "calling"
    TOOLS_RETURNED = "tools_returned"
    ATTEMPTED = "attempted"
    SUSPENDED = "suspended"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The state of a run at a commit point, as plain values: the contents of a checkpoint.

    `questions` are the open questions of a suspended run. `state` has everything that `resume.resumed` needs; the other
    fields repeat parts of it for people.
    """

    job: str
    point: CommitPoint
    status: str
    stop: str | None
    answer: str | None
    iteration: int
    messages: Sequence[Message]
    steps_done: tuple[str, ...]
    steps_open: tuple[str, ...]
    nudges: int
    tokens: int
    cost: Decimal
    seconds: float
    state: Mapping[str, object]
    questions: tuple[Question, ...] = ()


# -- parts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of looking for calls in the text of a reply.

    The text contains `calls`, and `text` is the rest of the reply; or an apparent call is `refused` for a reason, which
    the model reads; or there is no call. `shown` names the tool of a refused call that has other text next to it. The
    model is corrected once for such a reply; a second such reply in a row counts as the final answer. `stages` are the
    names of the parsing steps, for the trace.
    """

    calls: tuple[WrittenCall, ...] = ()
    text: str = ""
    stages: tuple[str, ...] = ()
    refused: str | None = None
    shown: str | None = None


class ReplyReader(Protocol):
    """Looks for calls in the text of a reply that has no structured calls."""

    def __call__(self, text: str, offered: Mapping[str, Mapping[str, JSON]]) -> Reading:
        """Return the calls in `text`, or why there are none; `offered` has the schemas of the turn's tools, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """The facts about one turn for loop protection: the reply, and the executed calls with their results.

    `progress`: a required step of the workflow was completed.
    """

    turn: int
    at: float
    text: str
    calls: Sequence[tuple[ToolCall, ToolOutcome]]
    progress: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The response of a turn watcher: nudge the model with `reason`, stop offering `tools`, or end the run."""

    kind: Literal["nudge", "fewer_tools", "stop"]
    reason: str
    tools: tuple[str, ...] = ()


@runtime_checkable
class Saved(Protocol):
    """A part with state, which checkpoints include, so that a crash does not reset the state.

    A part without these methods counts as stateless only if it is a plain function without a closure, or an object
    with the attribute `stateless` set to True.
    """

    def saved(self) -> object:
        """Return the part's state as values that a checkpoint can store (see `store.codec`)."""

    def restore(self, saved: Any) -> None:
        """Restore the state that `saved` returned, possibly in another process."""


class TurnWatcher(Protocol):
    """Is called after the calls of every turn were executed, for loop protection."""

    def __call__(self, turn: TurnFacts) -> Advice | None:
        """Return the action for this turn, or None for no action."""


class CallGate(Protocol):
    """Decides before every call whether it may be executed, such as a circuit breaker, a rate limit or a permission.

    For every admitted call, `ended` or `withdrawn` is called later.
    """

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        """Return the reason to refuse `call` now, a question for a person, or None to admit the call."""

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Record the outcome of an admitted call."""

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Record that the outcome of an admitted call is unknown.

        A later gate or a guard refused the call, or its run was cancelled.
        """


SUMMARY_PROMPT: Final = (
    "Summarise the conversation of an agent with its tools, for the agent itself, which will read nothing else of it. "
    "Keep facts, names, numbers, decisions, constraints, what was done and what failed. Leave out everything else."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideModel:
    """An additional model with its own prompt, which writes summaries or judges texts.

    `role` is the name of its script in a scenario.
    """

    model: str
    role: str = "summary"
    prompt: str = SUMMARY_PROMPT
    provider: str = ""
    wire: FormatName = "openai"
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWanted:
    """A request of a compaction step or a guard to the model `by`; `max_tokens` limits the answer."""

    by: SideModel
    messages: tuple[Message, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A shorter history: `messages` replace all others, with counts of the changes.

    `cleared` and `cut` count results, `summarised` turns, `dropped` messages; your own compactor may omit them.
    """

    messages: Sequence[Message]
    strategy: str
    cleared: int = 0
    summarised: int = 0
    dropped: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A selection from the registry's tools; all given conditions must match.

    Without conditions, all tools are selected.
    """

    names: Sequence[str] | None = None
    task: str | None = None
    all_tags: Sequence[str] | None = None
    any_tag: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAhead:
    """The facts for choosing the tools of a request: its number, the last message, executed calls, open steps."""

    turn: int
    message: str
    called: Sequence[str]
    open_steps: Sequence[str]


class ToolChooser(Protocol):
    """Called before every request to choose the tools that it offers (harness document §2, dynamic loading)."""

    def __call__(self, ahead: TurnAhead) -> Choice | None:
        """Return a choice, or None for the agent's default."""


class Compactor(Protocol):
    """Called before every request to shorten the history if needed (agent document §5)."""

    def __call__(
        self, messages: Sequence[Message], *, tokens: int
    ) -> Compaction | Generator[TextWanted, str | None, Compaction | None] | None:
        """Return a shorter history, or None to keep `messages`. `tokens` are the tokens of the whole prompt.

        A generator yields requests for summaries by a model, is sent each text (None if there is no answer), and
        returns the history. `ContextOverflow` ends the run before the provider is called.
        """


class GuardPoint(StrEnum):
    """The points where a guard can run (harness document §3, plus `budget`, which the document omits)."""

    INPUT = "input"
    CALL = "call"
    RESULT = "result"
    OUTPUT = "output"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The usage of a session so far; `seconds` may be virtual, `cost` is in US dollars, None without prices."""

    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a guard checks: a text at a point, and its context.

    `tool` and `arguments` are those of a call; `sources` are the texts that an answer may cite (in the loop: tool
    results, oldest first); `at` is in seconds of the caller's clock; `role` and `tier` describe the user.
    """

    point: GuardPoint
    text: str
    tool: str | None = None
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    session: str = ""
    role: str = ""
    tier: str = ""
    sources: Sequence[str] = ()
    spent: Spent = Spent()
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of a guard: the text passes (changed, if `text` is set), or is blocked for a `reason`.

    With the action `ask`, a person has to allow the call first; `asks` are the questions. Without `asks`, the reason is
    the question.
    """

    action: Literal["pass", "warn", "modify", "ask", "block"] = "pass"
    reason: str = ""
    text: str | None = None
    asks: tuple[Ask, ...] = ()


PASS: Final = Verdict()
"""A verdict without findings."""


Judging = Generator["TextWanted | Wait", "str | Waited | None", Verdict]
"""A guard that waits or asks a model: it yields requests, is sent their results, and returns its verdict."""


class Guard(Protocol):
    """Checks one text at one point of the loop.

    If a guard has a method `withdrawn`, it is called with the subject of an allowed call that is not made, because a
    later guard or a person refused it.
    """

    def __call__(self, subject: Subject) -> Verdict | Awaitable[Verdict] | Judging:
        """Return the verdict, directly or as an awaitable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All parts that can be plugged into the loop; every one is optional."""

    chooser: ToolChooser | None = None
    reader: ReplyReader | None = None
    watchers: Sequence[TurnWatcher] = ()
    gates: Sequence[CallGate] = ()
    compactor: Compactor | None = None
    guards: Sequence[Guard] = ()
    ladder: Ladder | None = None
    commits: bool = False


NO_PARTS: Final = Parts()
"""No parts: the bare loop."""


class ToolContext(Protocol):
    """The argument of tools that declare a parameter for it: the time, and a `sleep` in virtual or real time."""

    def now(self) -> float:
        """Return seconds since the run began."""

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds, which are virtual in a `Simulation`."""
