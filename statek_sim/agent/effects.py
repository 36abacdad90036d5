"""What the loop and the world say to each other: effects, their answers, and the seams that other parts fill.

The loop does nothing itself. It yields one of the effects and is sent what came of it; a driver carries them out, in
virtual time or under asyncio. Every seam is a plain callable or a Protocol of a few methods; a part that fills one
knows this module and no other part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, Literal, Protocol, runtime_checkable

from statek_sim.agent.escalation import Ladder
from statek_sim.errors import ProviderFailure
from statek_sim.fast_dataclass import quick
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import JSON, Message

ToolFunction = Callable[..., Any]
"""A tool's own code: a function or a coroutine function, called with the arguments by name."""


@dataclass(frozen=True, slots=True)
class Delayed:
    """What a plain function may return: this value, or this error raised, after so many seconds."""

    seconds: float
    value: object = None
    error: Exception | None = None


# -- calls and replies ------------------------------------------------------------------------------------------


@quick
@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it; `arguments` is its raw text, JSON or not."""

    id: str
    name: str
    arguments: str


@quick
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that may be executed: its tool was offered, its arguments are a JSON object that fits the schema."""

    id: str
    name: str
    arguments: Mapping[str, JSON]


class ToolStatus(StrEnum):
    """How a call ended."""

    RETURNED = "returned"
    RAISED = "raised"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


@quick
@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came of one call: `text` is what the model reads, of an error `Type: message`."""

    status: ToolStatus
    text: str

    @property
    def failed(self) -> bool:
        """Whether the tool gave no result."""
        return self.status is not ToolStatus.RETURNED


# -- effects ----------------------------------------------------------------------------------------------------


@quick
@dataclass(frozen=True, slots=True)
class AskModel:
    """Send a request. The answer is a `RawReply`, or the `ProviderFailure` that came instead of it."""

    request: ChatRequest


CHECK: Final = "check of "
"""Begins the key of a check whether a call happened: what came of the check is not what came of the call."""


@quick
@dataclass(frozen=True, slots=True)
class Invocation:
    """One call that is executed now: the tool's code and the seconds it may take (None: as long as it likes).

    `key` names the call among all of its run, whatever process makes it; it is on the call's receipt.
    """

    call: ToolCall
    run: ToolFunction
    timeout: float | None = None
    key: str = ""

    @property
    def checks(self) -> bool:
        """Whether this is no call but a check whether the call happened: the tool does no work."""
        return self.key.startswith(CHECK)


@quick
@dataclass(frozen=True, slots=True)
class CallTools:
    """Call tools at once. The answer is one `ToolOutcome` per call, in their order.

    `done` is told each call's position and outcome at the moment it ends.
    """

    calls: Sequence[Invocation]
    done: Callable[[int, ToolOutcome], None]


@dataclass(frozen=True, slots=True)
class LetTimePass:
    """Let `seconds` pass. The answer is None."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a gate, or a tool, wants to know of a person, who has `seconds` to say it (None: as long as it takes).

    `confirms`: it asks for leave, so that who prompts people can tell a no from an answer. What a gate or
    a guard asks always does.
    """

    text: str
    seconds: float | None = None
    confirms: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that is out. `token` names it among all of all runs; `tool` is the call it is about."""

    token: str
    job: str
    tool: str
    text: str
    seconds: float | None = None
    confirms: bool = False


@dataclass(frozen=True, slots=True)
class PersonSaid:
    """What came of a question: an answer, a refusal with its reason, or nothing until its deadline."""

    kind: Literal["answered", "refused", "expired"]
    text: str = ""


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Ask a person, at once, all of these; the run is suspended meanwhile. The answer is one `PersonSaid` for each.

    `said` is told each question's position and what came of it, at the moment it did.
    """

    questions: Sequence[Question]
    said: Callable[[int, PersonSaid], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What came of one call (`key` is its invocation's) or one question (its token), `at` which second.

    `status` is a `ToolStatus` or the kind of a `PersonSaid`. Drivers make it durable before the run hears of it.
    """

    job: str
    key: str
    at: float
    status: str
    text: str


def receipt_of(job: str, key: str, came: ToolOutcome | PersonSaid, *, at: float) -> Receipt:
    """Return the receipt of a call or a question."""
    status = came.status.value if isinstance(came, ToolOutcome) else came.kind
    return Receipt(job=job, key=key, at=at, status=status, text=came.text)


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for something that is awaited, at most `seconds` (None: as long as it takes). The answer is a `Waited`."""

    what: Awaitable[Any]
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """What came of waiting: a value, or the error that it raised; `TimeoutError` when it took too long (`late`).

    `CancelledError`: what was waited for was cancelled from inside. A run that is cancelled hears nothing.
    """

    value: Any = None
    error: BaseException | None = None
    late: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """Make a run's state durable before anything else happens. The answer is None.

    `snapshot` makes it, of the run as it is then: it is called before anything else happens, or not at all by who
    needs none.
    """

    job: str
    point: CommitPoint
    snapshot: Callable[[], Snapshot]


Effect = AskModel | CallTools | LetTimePass | AskPerson | Wait | Commit
"""Everything the loop may ask of a driver."""

Answer = RawReply | ProviderFailure | Sequence[ToolOutcome] | Sequence[PersonSaid] | Waited | None
"""What a driver may send back."""


class CommitPoint(StrEnum):
    """When the loop commits: its state can be taken up again from each of these.

    At `calling` tools are about to be called: what has no receipt by the next commit may have happened or not. At
    `attempted` an attempt of a ladder has ended, and another one follows.
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
    """The state of a run at a commit point, as plain values: what a checkpoint has to hold.

    `questions` are those that a suspended run waits for. `state` is everything that `resume.resumed` needs; the
    other fields are the part of it that people read.
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


# -- seams ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reply's text turned out to say.

    `calls` in it with the text around them, or neither and `refused`, a reason for the model to read. `shown` is the
    tool whose call stands beside other text in a refused reply: the model is corrected once, and a second such reply
    in a row is its answer. `stages` are the names of the steps that it took, for the trace.
    """

    calls: tuple[WrittenCall, ...] = ()
    text: str = ""
    stages: tuple[str, ...] = ()
    refused: str | None = None
    shown: str | None = None


class ReplyReader(Protocol):
    """Looks for calls in the text of a reply that has none on the wire."""

    def __call__(self, text: str, offered: Mapping[str, Mapping[str, JSON]]) -> Reading:
        """Return what `text` says; `offered` are the schemas of the tools of this turn, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """One turn as loop protection sees it: what was said, which calls were executed and what they gave.

    `progress`: a required step of the workflow was done.
    """

    turn: int
    at: float
    text: str
    calls: Sequence[tuple[ToolCall, ToolOutcome]]
    progress: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a watcher of turns wants: a nudge with this text, fewer tools from now on, or the end of the run."""

    kind: Literal["nudge", "fewer_tools", "stop"]
    reason: str
    tools: tuple[str, ...] = ()


@runtime_checkable
class Saved(Protocol):
    """A part that knows something of the run: a checkpoint holds it, and a crash resets nothing.

    A part without these methods is taken for one that knows nothing only where that can be seen: a plain function
    without a closure, or an object whose `stateless` is True.
    """

    def saved(self) -> object:
        """Return what the part knows, as values that a checkpoint can hold (see `store.codec`)."""

    def restore(self, saved: Any) -> None:
        """Go on from what `saved` returned, maybe in another process."""


class TurnWatcher(Protocol):
    """Looks at every turn after its calls were executed (loop protection)."""

    def __call__(self, turn: TurnFacts) -> Advice | None:
        """Return what should be done, None for nothing."""


class CallGate(Protocol):
    """Stands before every call (a circuit breaker, a rate limit, a permission).

    What it admits it is told about once more: how the call ended, or that nobody will hear of it.
    """

    def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
        """Return why `call` must not be executed now, what a person has to allow first, or None when it may."""

    def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
        """Take note of the outcome of a call that was admitted."""

    def withdrawn(self, call: ToolCall, *, at: float) -> None:
        """Take note that nobody hears how a call ended that was admitted.

        It is not made, since a later gate or a guard refused it; or its run was cancelled meanwhile.
        """


SUMMARY_PROMPT: Final = (
    "Summarise the conversation of an agent with its tools, for the agent itself, which will read nothing else of it. "
    "Keep facts, names, numbers, decisions, constraints, what was done and what failed. Leave out everything else."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideModel:
    """A model beside the agent's own, with a prompt of its own: it writes summaries, or judges.

    `role` is the name that its script has in a scenario.
    """

    model: str
    role: str = "summary"
    prompt: str = SUMMARY_PROMPT
    provider: str = ""
    wire: FormatName = "openai"
    temperature: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWanted:
    """What a step or a guard asks of a model: the messages, and how many tokens the answer may have."""

    by: SideModel
    messages: tuple[Message, ...]
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """A shorter history: `messages` in the place of all, and how they came about.

    `cleared` and `cut` count results, `summarised` turns, `dropped` messages; a compactor of your own may leave them.
    """

    messages: Sequence[Message]
    strategy: str
    cleared: int = 0
    summarised: int = 0
    dropped: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which of the registry's tools are offered; what is said must all fit, and nothing said is everything."""

    names: Sequence[str] | None = None
    task: str | None = None
    all_tags: Sequence[str] | None = None
    any_tag: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAhead:
    """What is known before a request: its number, the user's last message, executed calls, steps that are open."""

    turn: int
    message: str
    called: Sequence[str]
    open_steps: Sequence[str]


class ToolChooser(Protocol):
    """Asked before every request which tools it offers (harness document §2, dynamic loading)."""

    def __call__(self, ahead: TurnAhead) -> Choice | None:
        """Return a choice, None for the agent's own."""


class Compactor(Protocol):
    """Asked before every request whether the history should be shorter (agent document §5)."""

    def __call__(
        self, messages: Sequence[Message], *, tokens: int
    ) -> Compaction | Generator[TextWanted, str | None, Compaction | None] | None:
        """Return a shorter history, None to leave it. `tokens` are those of the whole prompt.

        A generator yields what it wants summarised by a model, is sent the text (None: there is none), and returns
        the history. `ContextOverflow` ends the run before the provider is asked.
        """


class GuardPoint(StrEnum):
    """Where a guard may stand (harness document §3, and the fifth point that it leaves out)."""

    INPUT = "input"
    CALL = "call"
    RESULT = "result"
    OUTPUT = "output"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a session has used so far; `seconds` and `cost` may be virtual. `cost` is None where no prices are known."""

    tokens: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a guard looks at: a text at a point, and what is known around it.

    `arguments` and `tool` are of a call; `sources` the texts that an answer may cite (in the loop: what tools
    returned, oldest first); `at` seconds of the caller's clock; `role` and `tier` the user's.
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
    """What a guard found: the text may pass (changed, when `text` is there), or it is blocked for a reason.

    `ask`: a person has to allow the call first; `asks` are the questions, without any the reason is one.
    """

    action: Literal["pass", "warn", "modify", "ask", "block"] = "pass"
    reason: str = ""
    text: str | None = None
    asks: tuple[Ask, ...] = ()


PASS: Final = Verdict()
"""Nothing found."""


Judging = Generator["TextWanted | Wait", "str | Waited | None", Verdict]
"""A guard that waits, or asks a model: yields what it wants, is sent what came of it, returns its verdict."""


class Guard(Protocol):
    """Looks at one text at one point.

    One that has a method `withdrawn`, called with the subject of a call that it let pass, is told that the call is not
    made after all: a later guard or a person refused it.
    """

    def __call__(self, subject: Subject) -> Verdict | Awaitable[Verdict] | Judging:
        """Return the verdict, now or when it is awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that can be put into the loop; all of it is optional."""

    chooser: ToolChooser | None = None
    reader: ReplyReader | None = None
    watchers: Sequence[TurnWatcher] = ()
    gates: Sequence[CallGate] = ()
    compactor: Compactor | None = None
    guards: Sequence[Guard] = ()
    ladder: Ladder | None = None
    commits: bool = False


NO_PARTS: Final = Parts()
"""The bare loop."""


class ToolContext(Protocol):
    """What a tool gets that asks for it: the time, and a sleep that is virtual where time is."""

    def now(self) -> float:
        """Return seconds since the run began."""

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
