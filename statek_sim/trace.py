"""A run's trace: all observable events, in order, as small frozen objects.

A trace is written as JSON lines: a header, then one object per event with `event` and its fields. Fields keep their
order, floats are written by `repr`, and text is ASCII-escaped, so equal runs give byte-identical traces. `Trace.digest`
is the SHA-256 of that text. Times (`at`, `retry_in`) are virtual seconds, sizes are bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.values import Message

if TYPE_CHECKING:
    from statek_sim.spans.span import Span

E = TypeVar("E")

VERSION: Final = 1
"""The trace format's version, which is part of the header line and therefore of every digest."""


@dataclass(frozen=True, slots=True)
class JobCreated:
    """A job was created; its status is READY."""

    at: float
    job: str
    role: str
    model: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """A job's status changed."""

    at: float
    job: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A job's step began; `step` counts from 1 within the job."""

    at: float
    job: str
    step: int


@dataclass(frozen=True, slots=True)
class CodeExecuted:
    """A code block ended; `outcome` is done, raised, waiting, exited or contained."""

    at: float
    job: str
    kind: str
    source: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ConsoleLine:
    """A line was added to a job's console; `error` is EXECUTION, HARNESS or None."""

    at: float
    job: str
    index: int
    text: str
    error: str | None


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool began to run; `via` is `call` (requested by the model or by warmup) or `code`.

    `call_id` is the call's id in the model's reply, if a tool-calling agent made the call and the call has an id.
    """

    at: float
    job: str
    name: str
    arguments: str
    via: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool finished with a `result`, as the agent would see it, or with an `error` of the form `Type: message`."""

    at: float
    job: str
    name: str
    result: str | None
    error: str | None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Code reached a future that is not ready; `instruction` is where the code will continue."""

    at: float
    job: str
    instruction: str


@dataclass(frozen=True, slots=True)
class Released:
    """The future that a job was waiting for became ready, so the job may continue."""

    at: float
    job: str


@dataclass(frozen=True, slots=True)
class ExitCalled:
    """Agent code called `exit` with a value; `status` is the value as text."""

    at: float
    job: str
    status: str


@dataclass(frozen=True, slots=True)
class LLMRequested:
    """A request was sent to the provider.

    The first `kept` messages are the same as in the job's previous request; `new` are the messages after them.
    """

    at: float
    job: str
    turn: int
    attempt: int
    model: str
    bytes_sent: int
    kept: int
    new: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class LLMReplied:
    """A usable answer arrived; `measured_*` are the tokenizer's counts for this turn."""

    at: float
    job: str
    turn: int
    bytes_received: int
    measured_prompt: int
    measured_completion: int
    reported_prompt: int | None
    reported_completion: int | None
    text: str
    tool_calls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request failed; `retry_in` is None if it is not retried."""

    at: float
    job: str
    turn: int
    attempt: int
    error: str
    retry_in: float | None


@dataclass(frozen=True, slots=True)
class Delivered:
    """A dialog agent sent a message to its user."""

    at: float
    job: str
    body: str
    media: str | None


@dataclass(frozen=True, slots=True)
class HandlerRegistered:
    """An error handler with this `context` was registered for a job."""

    at: float
    job: str
    name: str
    context: str


@dataclass(frozen=True, slots=True)
class HandlerRan:
    """An error handler was called; `failed` is the exception it raised, which was suppressed."""

    at: float
    job: str
    name: str
    context: str
    error: str | None
    failed: str | None


@dataclass(frozen=True, slots=True)
class JobStopped:
    """A job became DONE; `reason` is exit, final, a limit's name, crash, warmup or contained."""

    at: float
    job: str
    reason: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A user message was pushed to a job."""

    at: float
    job: str
    text: str


@dataclass(frozen=True, slots=True)
class Reactivated:
    """A job that was DONE is STARTED again because of `by`: message, subtask or notification."""

    at: float
    job: str
    by: str
    completions: int | None


@dataclass(frozen=True, slots=True)
class Notified:
    """A notification reached a job. If `queued`, it waits for a safe point; otherwise it is already in the history."""

    at: float
    job: str
    kind: str
    text: str
    queued: bool


@dataclass(frozen=True, slots=True)
class SubtaskCompleted:
    """A subtask was completed with a result or an error."""

    at: float
    job: str
    subtask: str
    result: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class DifficultyRaised:
    """A job's difficulty was raised; `tokens` is its approximate usage at that time."""

    at: float
    job: str
    difficulty: str
    tokens: int


@dataclass(frozen=True, slots=True)
class WorldChanged:
    """Something outside the jobs changed: a work item, an external event, the worker process or a loop."""

    at: float
    job: str
    subject: str
    change: str


@dataclass(frozen=True, slots=True)
class StoreRemark:
    """An effect of storing a value. `change` is `lost`, `changed`, `not stored`, `refused` or `kills`.

    If `release` is None, the effect occurred in this run. Otherwise, this run's profile keeps every value, and the
    effect would occur in that STATEK release. `name` is the variable, or `exit status`, `code` and the like.
    """

    at: float
    job: str
    name: str
    change: str
    reason: str
    release: str | None

    @property
    def told(self) -> str:
        """The remark as a sentence, without a full stop."""
        where = "" if self.release is None else f"STATEK {self.release} would "
        verbs = _REMARKS[self.change]
        if self.release is None:
            return f"`{self.name}` {verbs[0]}: {self.reason}"
        return f"{where}{verbs[1].format(f'`{self.name}`')} here: {self.reason}"


_REMARKS: Final = {
    "lost": ("was lost", "lose {}"),
    "changed": ("was changed", "change {}"),
    "not stored": ("kept its old value", "keep the old value of {}"),
    "refused": ("was refused", "refuse {}"),
    "kills": ("ended STATEK's process", "end its process at {}"),
}


# -- engine two: the agent that calls tools ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolsOffered:
    """From this turn on, requests offer these tools. `sent` is False if the tools are not sent to the model."""

    at: float
    job: str
    turn: int
    names: tuple[str, ...]
    sent: bool


@dataclass(frozen=True, slots=True)
class ReplyRead:
    """A reply's text was searched for tool calls.

    The event has the `stages` that were tried, and either the calls found or why the text was rejected.
    """

    at: float
    job: str
    turn: int
    raw: str
    stages: tuple[str, ...]
    calls: tuple[str, ...]
    refused: str | None


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call was not executed; `reason` is shown to the model as its result."""

    at: float
    job: str
    name: str
    arguments: str
    failure: str
    reason: str


@dataclass(frozen=True, slots=True)
class Nudged:
    """The model was asked to correct its reply; this is nudge `number` of at most `limit`."""

    at: float
    job: str
    failure: str
    number: int
    limit: int
    text: str


@dataclass(frozen=True, slots=True)
class StepMoved:
    """A workflow step's state changed; `change` is reserved, committed or rolled back.

    `open` lists the required steps still to be done.
    """

    at: float
    job: str
    step: str
    change: str
    open: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """The history was shortened; tokens are those in the prompt, counted with the tokenizer.

    `cleared` and `cut` count tool results, `summarised` counts turns, and `dropped` counts messages. The first `prefix`
    messages (`prefix_tokens`) are unchanged, so a prefix cache still contains them.
    """

    at: float
    job: str
    strategy: str
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    cleared: int
    summarised: int
    dropped: int
    cut: int
    prefix: int
    prefix_tokens: int


@dataclass(frozen=True, slots=True)
class HarnessSpoke:
    """Part of the harness intervened, such as a guard, a loop watcher or a budget; `action` is what it did."""

    at: float
    job: str
    part: str
    action: str
    detail: str


@dataclass(frozen=True, slots=True)
class PersonAsked:
    """A person was asked about a call to `tool`; the question expires at virtual second `deadline`."""

    at: float
    job: str
    token: str
    tool: str
    question: str
    deadline: float | None


@dataclass(frozen=True, slots=True)
class PersonAnswered:
    """A question to a person was settled; `kind` is `answered`, `refused` or `expired`."""

    at: float
    job: str
    token: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """An attempt at one of a ladder's levels ended; `cause` is `solved` or the reason for the failure.

    `tokens` and `cost` are for this attempt only; `cost` is in US dollars as a decimal string, or None if the level has
    no prices. `number` counts the level's attempts from 1.
    """

    at: float
    job: str
    level: str
    number: int
    model: str | None
    cause: str
    detail: str
    tokens: int
    cost: str | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Escalated:
    """A task moved to another level on its ladder because of `cause`; `to_level` is None if there are no more levels.

    `task_type` is the type of task that decided which tools were offered, or None.
    """

    at: float
    job: str
    from_level: str
    to_level: str | None
    cause: str
    detail: str
    task_type: str | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A run's state was saved durably at a commit point."""

    at: float
    job: str
    point: str
    iteration: int
    messages: int


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """The process that ran the agents died; everything that was not durable is lost."""

    at: float
    job: str


@dataclass(frozen=True, slots=True)
class RunResumed:
    """A run was resumed from the commit at `point`, which was made at virtual second `committed`."""

    at: float
    job: str
    point: str
    iteration: int
    committed: float


@dataclass(frozen=True, slots=True)
class CallRecalled:
    """The outcome of a call that was in progress when the process died became known.

    `how` is `receipt`, `check` (the tool's own) or `person`; with `again`, the call is repeated after this event.
    """

    at: float
    job: str
    name: str
    how: str
    detail: str


AgentEvent = (
    ToolsOffered
    | ReplyRead
    | CallRefused
    | Nudged
    | StepMoved
    | Compacted
    | HarnessSpoke
    | PersonAsked
    | PersonAnswered
    | AttemptEnded
    | Escalated
    | Committed
    | ProcessKilled
    | RunResumed
    | CallRecalled
)
"""Events that occur only in engine two."""

Event = (
    JobCreated
    | StatusChanged
    | StepStarted
    | CodeExecuted
    | ConsoleLine
    | ToolCalled
    | ToolReturned
    | Waiting
    | Released
    | ExitCalled
    | LLMRequested
    | LLMReplied
    | RequestFailed
    | Delivered
    | HandlerRegistered
    | HandlerRan
    | JobStopped
    | UserMessage
    | Reactivated
    | Notified
    | SubtaskCompleted
    | DifficultyRaised
    | WorldChanged
    | StoreRemark
    | AgentEvent
)
"""All kinds of events. Each has `at` and `job`; `job` is empty if the event does not concern a job."""

_FIELD_NAMES: Final = {kind: ("event", *(spec.name for spec in fields(kind))) for kind in get_args(Event)}
_READ: Final[Mapping[type, Callable[[Event], tuple[object, ...]]]] = {
    kind: attrgetter(*names[1:]) for kind, names in _FIELD_NAMES.items()
}
"""Returns the values of an event's fields; every kind has at least two fields."""


def as_dict(event: Event) -> dict[str, object]:
    """Return the event as a mapping for JSON, with `event` as its first key."""
    kind = type(event)
    return dict(zip(_FIELD_NAMES[kind], (kind.__name__, *_READ[kind](event)), strict=True))


_KINDS: Final[Mapping[str, Callable[..., Event]]] = {kind.__name__: kind for kind in get_args(Event)}

Packed = list[tuple[str, tuple[object, ...]]]
"""Events as pairs of kind and values, which halves the time needed to send them to another process."""


def packed(events: Iterable[Event]) -> Packed:
    """Return events in a form that `unpacked` can restore in another process."""
    return [(type(event).__name__, _READ[type(event)](event)) for event in events]


def unpacked(pairs: Packed) -> list[Event]:
    """Return the events originally passed to `packed`."""
    return [_KINDS[name](*values) for name, values in pairs]


def event_of(record: Mapping[str, Any]) -> Event:
    """Return the event from a mapping made by `as_dict`, even after it was written and read as JSON."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
        if name != "event"
    }
    return _KINDS[record["event"]](**fields)


_encode: Final = json.JSONEncoder(default=dict, check_circular=False).encode
"""Returns an object as JSON. One encoder serves all events, because they contain no cycles."""


def _ignore(_: Event) -> None:
    """Ignore an event of a sealed trace."""


def _unheard(_what: str, _job: str) -> None:
    """Ignore a durable change without an event."""


class Trace:
    """A run's events, with its profile and seed. Events can only be appended."""

    __slots__ = ("_by_job", "_events", "_sorted", "add", "header", "passed")

    def __init__(self, *, profile: str, seed: int) -> None:
        self.header: Final = {"trace": VERSION, "profile": profile, "seed": seed}
        self._events: list[Event] = []
        self._by_job: dict[str, list[Event]] = {}
        self._sorted = 0
        """The number of events in `_by_job`, which is filled when a job's events are requested."""
        self.add: Callable[[Event], None] = self._events.append
        self.passed: Callable[[str, str], None] = _unheard
        """Called with the kind and the job at each durable change without an event, where a worker may die."""

    def resume(self, events: Iterable[Event]) -> None:
        """Start with an earlier process's events."""
        self._events[:] = events
        self._by_job, self._sorted = {}, 0

    def seal(self) -> None:
        """Ignore all further events, which are not part of the run."""
        self.add = _ignore

    @property
    def events(self) -> Sequence[Event]:
        """All events so far, oldest first. Do not modify the sequence."""
        return self._events

    def lines(self) -> Iterator[str]:
        """Yield the trace as canonical JSON lines, starting with the header."""
        yield _encode(self.header)
        for event in self._events:
            yield _encode(as_dict(event))

    def digest(self) -> str:
        """Return the SHA-256 of the canonical lines as a hexadecimal string."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(f"{line}\n".encode("ascii"))
        return digest.hexdigest()

    def spans(self, name: str | None = None, *, content: bool = False) -> list[Span]:
        """Return the run's spans in the order in which they start, or only those with the operation or name `name`.

        Operations are `invoke_agent`, `step`, `chat`, `execute_tool`, `guard`, `checkpoint` and `ask_person`; a name is
        an operation with its subject, like `execute_tool search`. With `content`, spans include messages, arguments and
        results.
        """
        # Imported on demand: runs do not need spans.
        from statek_sim.spans.build import spans_of  # noqa: PLC0415
        from statek_sim.spans.span import named  # noqa: PLC0415

        return named(spans_of(self._events, self.digest(), content=content), name)

    def of_job(self, job_id: str, tools: Callable[[], Collection[str]] | None = None) -> JobTrace:
        """Return a job's events for queries; `tools` returns the names of the job's tools, if known."""
        return JobTrace(self, job_id, tools)

    def events_of(self, job_id: str) -> Sequence[Event]:
        """Return a job's events so far, oldest first. Do not modify the list, which is cached."""
        for event in self._events[self._sorted :]:
            self._by_job.setdefault(event.job, []).append(event)
        self._sorted = len(self._events)
        return self._by_job.get(job_id, ())


class JobTrace:
    """A job's events, with queries for tests."""

    __slots__ = ("_job_id", "_tools", "_trace")

    def __init__(self, trace: Trace, job_id: str, tools: Callable[[], Collection[str]] | None = None) -> None:
        self._trace = trace
        self._job_id = job_id
        self._tools = tools

    def __iter__(self) -> Iterator[Event]:
        """Yield the job's events, oldest first."""
        return iter(self._trace.events_of(self._job_id))

    def of_type(self, kind: type[E]) -> list[E]:
        """Return the job's events that are instances of `kind`, oldest first."""
        return [event for event in self if isinstance(event, kind)]

    def tool_calls(self, name: str | None = None) -> list[ToolCalled]:
        """Return the job's tool calls, or only those to one tool if `name` is given.

        Raises `BadInput` if the job has no tool with that name.
        """
        calls = [call for call in self.of_type(ToolCalled) if name is None or call.name == name]
        if name is not None and not calls and self._tools is not None:
            require_tool(name, self._tools(), f"job {self._job_id!r}")
        return calls

    def handlers(self) -> list[HandlerRan]:
        """Return the job's error handler calls, in order."""
        return self.of_type(HandlerRan)

    def requests(self) -> list[LLMRequested]:
        """Return the job's LLM requests, including retries."""
        return self.of_type(LLMRequested)

    def console(self) -> list[str]:
        """Return the lines on the job's console."""
        return [line.text for line in self.of_type(ConsoleLine)]

    def spans(self, name: str | None = None, *, content: bool = False) -> list[Span]:
        """Return the job's spans, as `Trace.spans` does."""
        return [span for span in self._trace.spans(name, content=content) if span.job == self._job_id]

    def delivered(self) -> list[Delivered]:
        """Return the messages that the job's dialog agent sent to its user."""
        return self.of_type(Delivered)


def require_tool(name: str, known: Collection[str], whose: str) -> None:
    """Raise `BadInput` if a test queries calls to a tool that does not exist.

    `known` lists the names of all tools that could be called; `whose` names their owner, such as "job 'main'".
    """
    if name in known:
        return
    hint = suggestion(name, known) or f" It has {', '.join(sorted(known)) or 'none'}"
    raise BadInput(f"tool_calls({name!r}): {whose} has no tool with that name, so it was never called.{hint}")


def event_label(event: Event) -> str:
    """Describe an event in a few words, without arguments, results and other strings of variable length."""
    match event:
        case StatusChanged(new=new):
            return f"status {new}"
        case ToolCalled(name=name) | ToolReturned(name=name):
            return f"{type(event).__name__} {name}"
        case HandlerRan(name=name) | HandlerRegistered(name=name):
            return f"{type(event).__name__} {name}"
        case WorldChanged(subject=subject, change=change):
            return f"{subject}: {change}"
        case JobStopped(reason=reason):
            return f"JobStopped {reason}"
        case _:
            return type(event).__name__
