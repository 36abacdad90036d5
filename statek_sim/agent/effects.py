"""The interface between the loop, its driver and its pluggable parts: effects, their answers, and protocols.

The loop does not perform effects. It yields them, and a driver performs each one, in virtual time or under asyncio, and
sends the result back. A pluggable part is a plain callable or implements a protocol with a few methods; it depends on
this module and on no other part.
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
"""A tool's own code: a synchronous or coroutine function, called with keyword arguments."""


@dataclass(frozen=True, slots=True)
class Delayed:
    """Returned by a tool that takes `seconds`, after which it returns `value`, or raises `error` if set."""

    seconds: float
    value: object = None
    error: Exception | None = None


# -- calls and replies ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it; `arguments` is the raw string, which may be invalid JSON."""

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
    """The outcome of a call. `text` is what the model sees: the result or, for an error, `Type: message`."""

    status: ToolStatus
    text: str

    @property
    def failed(self) -> bool:
        """Whether the tool failed to return a result."""
        return self.status is not ToolStatus.RETURNED


# -- effects ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskModel:
    """Send a request. The answer is a `RawReply`, or the `ProviderFailure` raised by the provider."""

    request: ChatRequest


CHECK: Final = "check of "
"""Key prefix for an invocation that asks a tool whether a call happened, instead of running the tool."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call to execute now: the tool's code and its timeout in seconds (None: no limit).

    `key` identifies the call within its run, also after a restart; the call's receipt has the same key.
    """

    call: ToolCall
    run: ToolFunction
    timeout: float | None = None
    key: str = ""

    @property
    def checks(self) -> bool:
        """Whether this asks the tool whether a call happened, instead of running the tool."""
        return self.key.startswith(CHECK)


@dataclass(frozen=True, slots=True)
class CallTools:
    """Call tools concurrently. The answer is a list with one `ToolOutcome` per call, in the same order.

    `done` is called with each call's position and outcome as the call ends.
    """

    calls: Sequence[Invocation]
    done: Callable[[int, ToolOutcome], None]


@dataclass(frozen=True, slots=True)
class LetTimePass:
    """Let `seconds` pass. The driver replies with None."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question from a gate or a tool to a person, who has `seconds` to answer it (None: no limit).

    `confirms` marks a request for approval, so that "no" is a refusal rather than an answer. Questions from gates and
    guards always ask for approval.
    """

    text: str
    seconds: float | None = None
    confirms: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An open question to a person. `token` is unique across all runs; `tool` is the name of the tool called."""

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
    """Ask a person all of these questions together, suspending the run in the meantime.

    The answer is a `PersonSaid` for each question. `said` is called with a question's position and result when it is
    settled.
    """

    questions: Sequence[Question]
    said: Callable[[int, PersonSaid], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The saved outcome of a call or a question.

    `key` is the invocation's key or the question's token; `at` is the time in seconds. `status` is a `ToolStatus`, or
    the `kind` of a `PersonSaid`. Drivers save receipts durably before the run gets the result.
    """

    job: str
    key: str
    at: float
    status: str
    text: str


def receipt_of(job: str, key: str, came: ToolOutcome | PersonSaid, *, at: float) -> Receipt:
    """Return the receipt for a call or a question; `came` is its outcome, and `at` the time in seconds."""
    status = came.status.value if isinstance(came, ToolOutcome) else came.kind
    return Receipt(job=job, key=key, at=at, status=status, text=came.text)


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for an awaitable, for at most `seconds` (None: no limit). The answer is a `Waited`."""

    what: Awaitable[Any]
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """The result of a `Wait`: the value, or the error that the awaitable raised.

    If `late`, the time limit passed, and the error is a `TimeoutError`. A `CancelledError` means that the awaitable
    cancelled itself; if the run is cancelled, it gets no result.
    """

    value: Any = None
    error: BaseException | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """Save a run's state durably before anything else happens. The driver replies with None.

    `snapshot` returns the run's current state; a driver may call it only before continuing the run.
    """

    job: str
    point: CommitPoint
    snapshot: Callable[[], Snapshot]


Effect = AskModel | CallTools | LetTimePass | AskPerson | Wait | Commit
"""The effects that the loop may yield to a driver."""

Answer = RawReply | ProviderFailure | Sequence[ToolOutcome] | Sequence[PersonSaid] | Waited | None
"""The results that a driver may send back for effects."""


class CommitPoint(StrEnum):
    """The points at which the loop commits; a run can be resumed from any of them.

    At `calling`, tools are about to be called: a call without a receipt at the next commit may or may not have
    happened. At `attempted`, a ladder's attempt has ended and another follows.
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
    """A run's state at a commit point, as plain values: the contents of a checkpoint.

    `questions` are a suspended run's open questions. `state` has everything that `resume.resumed` needs; the other
    fields repeat parts of it in readable form.
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
    """The result of looking for calls in a reply's text.

    There are three cases. If there are `calls`, `text` is the rest of the reply. If something looks like a call but is
    rejected, `refused` is the reason shown to the model. Otherwise, there is no call. `shown` is the tool name in a
    rejected call with other text next to it. The model is corrected once for such a reply; a second such reply in a row
    counts as the final answer. `stages` lists the parsing steps, for the trace.
    """

    calls: tuple[WrittenCall, ...] = ()
    text: str = ""
    stages: tuple[str, ...] = ()
    refused: str | None = None
    shown: str | None = None


class ReplyReader(Protocol):
    """Looks for calls in the text of a reply without structured calls."""

    def __call__(self, text: str, offered: Mapping[str, Mapping[str, JSON]]) -> Reading:
        """Return the calls in `text`, or why there are none; `offered` maps the turn's tools to their schemas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """The details of a turn that loop protection needs: the reply, and the executed calls with their results.

    `progress`: a required workflow step was completed.
    """

    turn: int
    at: float
    text: str
    calls: Sequence[tuple[ToolCall, ToolOutcome]]
    progress: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A turn watcher's response: nudge the model with `reason`, stop offering `tools`, or end the run."""

    kind: Literal["nudge", "fewer_tools", "stop"]
    reason: str
    tools: tuple[str, ...] = ()


@runtime_checkable
class Saved(Protocol):
    """A part with state, which is included in checkpoints so that a crash does not reset it.

    A part without these methods counts as stateless only if it is a plain function without a closure, or an object
    whose attribute `stateless` is True.
    """

    def saved(self) -> object:
        """Return the part's state as values that a checkpoint can store (see `store.codec`)."""

    def restore(self, saved: Any) -> None:
        """Restore state returned by `saved`, possibly in another process."""


class TurnWatcher(Protocol):
    """Called after each turn's calls have been executed, for loop protection."""

    def __call__(self, turn: TurnFacts) -> Advice | None:
        """Return the action to take for this turn, or None."""


class CallGate(Protocol):
    """Decides before every call whether it may be executed, for example as a circuit breaker or a rate limit.

    For every admitted call, `ended` or `withdrawn` is called later.
    """

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        """Return why `call` is rejected, a question for a person, or None to admit the call."""

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Record an admitted call's outcome."""

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Record that an admitted call's outcome is unknown.

        Either a later gate or a guard rejected the call, or its run was cancelled.
        """


SUMMARY_PROMPT: Final = (
    "Summarise the conversation of an agent with its tools, for the agent itself, which will read nothing else of it. "
    "Keep facts, names, numbers, decisions, constraints, what was done and what failed. Leave out everything else."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideModel:
    """An additional model with its own prompt, used to write summaries or to judge text.

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
    """A request from a compaction step or a guard to the model `by`; `max_tokens` limits the answer."""

    by: SideModel
    messages: tuple[Message, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A shortened history. `messages` replace all others, and the counts describe the changes.

    `cleared` and `cut` count results, `summarised` counts turns, and `dropped` counts messages. Your own compactor may
    omit the counts.
    """

    messages: Sequence[Message]
    strategy: str
    cleared: int = 0
    summarised: int = 0
    dropped: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Selects tools from the registry; a tool must match all given conditions.

    Without conditions, all tools are selected.
    """

    names: Sequence[str] | None = None
    task: str | None = None
    all_tags: Sequence[str] | None = None
    any_tag: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAhead:
    """The information for choosing a request's tools: its number, the last message, executed calls and open steps."""

    turn: int
    message: str
    called: Sequence[str]
    open_steps: Sequence[str]


class ToolChooser(Protocol):
    """Called before every request to choose which tools it offers (harness document §2, dynamic loading)."""

    def __call__(self, ahead: TurnAhead) -> Choice | None:
        """Return a choice, or None for the agent's default tools."""


class Compactor(Protocol):
    """Called before every request to shorten the history if needed (agent document §5)."""

    def __call__(
        self, messages: Sequence[Message], *, tokens: int
    ) -> Compaction | Generator[TextWanted, str | None, Compaction | None] | None:
        """Return a shorter history, or None to keep `messages`. `tokens` is the token count of the whole prompt.

        A generator yields requests for summaries by a model, is sent each text (None if there is no answer), and
        returns the history. `ContextOverflow` ends the run before the provider is called.
        """


class GuardPoint(StrEnum):
    """The points where a guard can run (harness document §3, plus `budget`, which is not in the document)."""

    INPUT = "input"
    CALL = "call"
    RESULT = "result"
    OUTPUT = "output"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A session's usage so far; `seconds` may be virtual, and `cost` is in US dollars, or None if unknown."""

    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a guard checks: a text at a point, and its context.

    For a call, `tool` and `arguments` are set. `sources` are the texts that an answer may cite (in the loop: tool
    results, oldest first); `at` is in seconds on the caller's clock; `role` and `tier` describe the user.
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
    """A guard's result: the text passes (changed, if `text` is set), or is blocked for a `reason`.

    With the action `ask`, a person must first allow the call; `asks` are the questions. Without `asks`, the reason is
    the question.
    """

    action: Literal["pass", "warn", "modify", "ask", "block"] = "pass"
    reason: str = ""
    text: str | None = None
    asks: tuple[Ask, ...] = ()


PASS: Final = Verdict()
"""The verdict when a guard finds nothing."""


Judging = Generator["TextWanted | Wait", "str | Waited | None", Verdict]
"""A guard that waits or asks a model: it yields requests, is sent their results, and returns its verdict."""


class Guard(Protocol):
    """Checks a text at one point in the loop.

    If a guard has a method `withdrawn`, the method is called with the subject of an allowed call that is not made
    because a later guard or a person refused it.
    """

    def __call__(self, subject: Subject) -> Verdict | Awaitable[Verdict] | Judging:
        """Return the verdict, directly or as an awaitable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts that can be plugged into the loop; all are optional."""

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
    """Passed to tools that declare a parameter for it: the time, and a `sleep` in virtual or real time."""

    def now(self) -> float:
        """Return the seconds since the run began."""

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds, which are virtual in a `Simulation`."""
