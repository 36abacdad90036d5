"""The trace of a run: every observable fact, in order, as small frozen events.

A trace is written as JSON lines: a header, then one object per event with `event` and its fields. Fields keep
their order, floats are written by `repr`, text is ASCII-escaped; equal runs are byte-identical. `Trace.digest`
is the SHA-256 of that text. Times (`at`, `retry_in`) are virtual seconds, sizes are bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.fast_dataclass import quick
from statek_sim.values import Message

if TYPE_CHECKING:
    from statek_sim.spans.span import Span

E = TypeVar("E")

VERSION: Final = 1
"""Version of the trace format; part of the header line, and so of every digest."""


@quick
@dataclass(frozen=True, slots=True)
class JobCreated:
    """A job exists and is READY."""

    at: float
    job: str
    role: str
    model: str
    parent: str | None


@quick
@dataclass(frozen=True, slots=True)
class StatusChanged:
    """A job moved along the status table."""

    at: float
    job: str
    old: str
    new: str


@quick
@dataclass(frozen=True, slots=True)
class StepStarted:
    """A job step began; `step` counts from 1 within the job."""

    at: float
    job: str
    step: int


@quick
@dataclass(frozen=True, slots=True)
class CodeExecuted:
    """A code block ended: `outcome` is done, raised, waiting, exited or contained."""

    at: float
    job: str
    kind: str
    source: str
    outcome: str


@quick
@dataclass(frozen=True, slots=True)
class ConsoleLine:
    """One console entry; `error` is its kind, EXECUTION or HARNESS, or None."""

    at: float
    job: str
    index: int
    text: str
    error: str | None


@quick
@dataclass(frozen=True, slots=True)
class ToolCalled:
    """A tool began to run; `via` is `call` (requested by the model or warmup) or `code`.

    `call_id` is the id of the call in the model's reply, if the call of a tool-calling agent has one.
    """

    at: float
    job: str
    name: str
    arguments: str
    via: str
    call_id: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool ended: `result` as the agent would see it, or `error` as `Type: message`; `call_id` as in the call."""

    at: float
    job: str
    name: str
    result: str | None
    error: str | None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Execution reached a future that is not ready; `instruction` is where it will continue."""

    at: float
    job: str
    instruction: str


@dataclass(frozen=True, slots=True)
class Released:
    """The awaited future became ready and the job may continue."""

    at: float
    job: str


@quick
@dataclass(frozen=True, slots=True)
class ExitCalled:
    """Code called `exit` with a value; `status` is its text."""

    at: float
    job: str
    status: str


@quick
@dataclass(frozen=True, slots=True)
class LLMRequested:
    """A request was sent to the provider.

    `kept` messages are the same as in the job's previous request; `new` are all after them.
    """

    at: float
    job: str
    turn: int
    attempt: int
    model: str
    bytes_sent: int
    kept: int
    new: tuple[Message, ...]


@quick
@dataclass(frozen=True, slots=True)
class LLMReplied:
    """A usable answer arrived; `measured_*` are tokenizer counts of this turn."""

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
    """The provider failed; `retry_in` is None if the failure is final."""

    at: float
    job: str
    turn: int
    attempt: int
    error: str
    retry_in: float | None


@dataclass(frozen=True, slots=True)
class Delivered:
    """A dialog agent sent text to its user."""

    at: float
    job: str
    body: str
    media: str | None


@dataclass(frozen=True, slots=True)
class HandlerRegistered:
    """An error handler is now bound to a job with `context`."""

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


@quick
@dataclass(frozen=True, slots=True)
class JobStopped:
    """A job became DONE; `reason` is exit, final, a limit's name, crash, warmup or contained."""

    at: float
    job: str
    reason: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A user message was pushed into a job."""

    at: float
    job: str
    text: str


@dataclass(frozen=True, slots=True)
class Reactivated:
    """A DONE job went back to STARTED; `by` is message, subtask or notification."""

    at: float
    job: str
    by: str
    completions: int | None


@dataclass(frozen=True, slots=True)
class Notified:
    """A notification reached a job: `queued` waits for a safe boundary, otherwise it is in the history."""

    at: float
    job: str
    kind: str
    text: str
    queued: bool


@dataclass(frozen=True, slots=True)
class SubtaskCompleted:
    """A subtask got its outcome."""

    at: float
    job: str
    subtask: str
    result: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class DifficultyRaised:
    """A job's difficulty rose; `tokens` is the approximate usage at that moment."""

    at: float
    job: str
    difficulty: str
    tokens: int


@dataclass(frozen=True, slots=True)
class WorldChanged:
    """Something outside the jobs changed: a work item, a future, the worker process, a loop."""

    at: float
    job: str
    subject: str
    change: str


@dataclass(frozen=True, slots=True)
class StoreRemark:
    """An effect of storing a value. `change`: one of `lost`, `changed`, `not stored`, `refused`, `kills`.

    `release` is None if it happened in this run; otherwise, this profile keeps every value, and it would happen in that
    release of STATEK. `name` is the variable, or `exit status`, `code` and the like.
    """

    at: float
    job: str
    name: str
    change: str
    reason: str
    release: str | None

    @property
    def told(self) -> str:
        """The remark as a sentence without its full stop."""
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
    """From this turn on requests contain these tools; `sent` is False if they are not sent to the model."""

    at: float
    job: str
    turn: int
    names: tuple[str, ...]
    sent: bool


@dataclass(frozen=True, slots=True)
class ReplyRead:
    """A reply's text was searched for calls: the `stages` tried, the calls found, or why the text was refused."""

    at: float
    job: str
    turn: int
    raw: str
    stages: tuple[str, ...]
    calls: tuple[str, ...]
    refused: str | None


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A call was not executed; `reason` is the result that the model reads."""

    at: float
    job: str
    name: str
    arguments: str
    failure: str
    reason: str


@dataclass(frozen=True, slots=True)
class Nudged:
    """The model was asked to correct its reply, for the `number`th time of at most `limit`."""

    at: float
    job: str
    failure: str
    number: int
    limit: int
    text: str


@dataclass(frozen=True, slots=True)
class StepMoved:
    """The state of a workflow step changed: reserved, committed or rolled back.

    `open` lists the required steps still to be done.
    """

    at: float
    job: str
    step: str
    change: str
    open: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """The history was shortened; tokens are those of the prompt, by the tokenizer.

    `cleared` and `cut` count results, `summarised` turns, `dropped` messages. The first `prefix` messages
    (`prefix_tokens`) are unchanged, so a prefix cache still hits them.
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
    """A part of the harness intervened: a guard, a loop watcher, a budget; `action` says how."""

    at: float
    job: str
    part: str
    action: str
    detail: str


@dataclass(frozen=True, slots=True)
class PersonAsked:
    """A person was asked about a call of `tool`; `deadline` is the second at which the question expires."""

    at: float
    job: str
    token: str
    tool: str
    question: str
    deadline: float | None


@dataclass(frozen=True, slots=True)
class PersonAnswered:
    """A question was `answered`, `refused`, or `expired` without an answer."""

    at: float
    job: str
    token: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """One attempt of a level of a ladder ended: `cause` is `solved` or the reason of the failure.

    `tokens` and `cost` are those of this attempt; `cost` is US dollars as a decimal string, None if the level has no
    prices. `number` counts the level's attempts from 1.
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
    """A task moved to another level of its ladder, after `cause`; `to_level` is None if there is none left.

    `task_type` is the type of task whose tools the agent was offered, None for none.
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
    """The state of the run was saved durably at a commit point."""

    at: float
    job: str
    point: str
    iteration: int
    messages: int


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """The process that runs the agents died: everything not durable is lost."""

    at: float
    job: str


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The run was resumed from the commit at `point`, made at virtual second `committed`."""

    at: float
    job: str
    point: str
    iteration: int
    committed: float


@dataclass(frozen=True, slots=True)
class CallRecalled:
    """The outcome of a call that was in flight when the process died, and `how` it is known.

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
"""Events of engine two only."""

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
"""Every kind of event. All have `at` and `job` (empty if the fact concerns no job)."""

_FIELD_NAMES: Final = {kind: ("event", *(spec.name for spec in fields(kind))) for kind in get_args(Event)}
_READ: Final[Mapping[type, Callable[[Event], tuple[object, ...]]]] = {
    kind: attrgetter(*names[1:]) for kind, names in _FIELD_NAMES.items()
}
"""The values of an event's fields; every kind has two fields or more."""


def _mapping(kind: type) -> Callable[[Event], dict[str, object]]:
    """Return a generated function that converts an event of one kind to a mapping, for speed."""
    members = ", ".join(f"{name!r}: event.{name}" for name in _FIELD_NAMES[kind][1:])
    written: Callable[[Event], dict[str, object]] = eval(  # like `dataclass`, with the fields' names
        f"lambda event: {{'event': {kind.__name__!r}, {members}}}"
    )
    return written


_AS_MAPPING: Final = {kind: _mapping(kind) for kind in _FIELD_NAMES}


def as_dict(event: Event) -> dict[str, object]:
    """Return the event as a mapping for JSON; its first key is `event`."""
    return _AS_MAPPING[type(event)](event)


_KINDS: Final[Mapping[str, Callable[..., Event]]] = {kind.__name__: kind for kind in get_args(Event)}

Packed = list[tuple[str, tuple[object, ...]]]
"""Events as pairs of kind and values. Sending them to another process takes half the time."""


def packed(events: Iterable[Event]) -> Packed:
    """Return a form from which `unpacked` restores the same events, in another process."""
    return [(type(event).__name__, _READ[type(event)](event)) for event in events]


def unpacked(pairs: Packed) -> list[Event]:
    """Return the events passed to `packed`."""
    return [_KINDS[name](*values) for name, values in pairs]


def event_of(record: Mapping[str, Any]) -> Event:
    """Return the event that `as_dict` converted to a mapping, possibly after a round trip through JSON."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
        if name != "event"
    }
    return _KINDS[record["event"]](**fields)


def _encoder() -> Callable[[object], str]:
    """Return a `json.dumps` for events that reuses one encoder.

    Creating an encoder takes longer than encoding an event.

    Events contain no cycles. Without Python's C encoder, the Python encoder is used.
    """
    plain = json.JSONEncoder(default=dict, check_circular=False)
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return plain.encode
    pieces = make(None, dict, encode_basestring_ascii, None, ": ", ", ", False, False, True)
    return lambda value: "".join(pieces(value, 0))


_encode: Final = _encoder()


def _ignore(_: Event) -> None:
    """Ignore an event."""


def _unheard(_what: str, _job: str) -> None:
    """Ignore a durable change."""


class Trace:
    """An append-only list of events with the settings they depend on."""

    __slots__ = ("_by_job", "_events", "_sorted", "add", "header", "passed")

    def __init__(self, *, profile: str, seed: int) -> None:
        self.header: Final = {"trace": VERSION, "profile": profile, "seed": seed}
        self._events: list[Event] = []
        self._by_job: dict[str, list[Event]] = {}
        self._sorted = 0
        """Number of events in `_by_job`, which is filled when a job's events are requested."""
        self.add: Callable[[Event], None] = self._events.append
        self.passed: Callable[[str, str], None] = _unheard
        """Called at each durable change without an event, with its job: a point where a worker may die."""

    def resume(self, events: Iterable[Event]) -> None:
        """Start with the events of an earlier process."""
        self._events[:] = events
        self._by_job, self._sorted = {}, 0

    def seal(self) -> None:
        """Ignore further events, which are not part of the run."""
        self.add = _ignore

    @property
    def events(self) -> Sequence[Event]:
        """All events so far, oldest first. Do not modify the sequence."""
        return self._events

    def lines(self) -> Iterator[str]:
        """Yield the canonical JSON lines, header first."""
        yield _encode(self.header)
        for event in self._events:
            yield _encode(as_dict(event))

    def digest(self) -> str:
        """Return the SHA-256 of the canonical lines, as a hexadecimal string."""
        digest = hashlib.sha256()
        for line in self.lines():
            digest.update(f"{line}\n".encode("ascii"))
        return digest.hexdigest()

    def spans(self, name: str | None = None, *, content: bool = False) -> list[Span]:
        """Return the run's spans in the order of their starts, of one operation or name if `name` is given.

        Operations are `invoke_agent`, `step`, `chat`, `execute_tool`, `guard`, `checkpoint`, `ask_person`; a name is an
        operation with its subject: `execute_tool search`. With `content`, spans include texts.
        """
        # Imported on demand: runs do not need spans.
        from statek_sim.spans.build import spans_of  # noqa: PLC0415
        from statek_sim.spans.span import named  # noqa: PLC0415

        return named(spans_of(self._events, self.digest(), content=content), name)

    def of_job(self, job_id: str, tools: Callable[[], Collection[str]] | None = None) -> JobTrace:
        """Return the part of the trace that concerns one job; `tools` are the names of its tools, if known."""
        return JobTrace(self, job_id, tools)

    def events_of(self, job_id: str) -> Sequence[Event]:
        """Return the events of one job so far, oldest first. Do not modify the list; it is cached."""
        for event in self._events[self._sorted :]:
            self._by_job.setdefault(event.job, []).append(event)
        self._sorted = len(self._events)
        return self._by_job.get(job_id, ())


class JobTrace:
    """The events of one job, with queries for tests."""

    __slots__ = ("_job_id", "_tools", "_trace")

    def __init__(self, trace: Trace, job_id: str, tools: Callable[[], Collection[str]] | None = None) -> None:
        self._trace = trace
        self._job_id = job_id
        self._tools = tools

    def __iter__(self) -> Iterator[Event]:
        """Yield the job's events, oldest first."""
        return iter(self._trace.events_of(self._job_id))

    def of_type(self, kind: type[E]) -> list[E]:
        """Return the job's events of one class, oldest first."""
        return [event for event in self if isinstance(event, kind)]

    def tool_calls(self, name: str | None = None) -> list[ToolCalled]:
        """Return the job's tool calls, of one tool if `name` is given.

        Raises BadInput for a name that no tool of the job has.
        """
        calls = [call for call in self.of_type(ToolCalled) if name is None or call.name == name]
        if name is not None and not calls and self._tools is not None:
            require_tool(name, self._tools(), f"job {self._job_id!r}")
        return calls

    def handlers(self) -> list[HandlerRan]:
        """Return the error handlers that ran for the job, in order."""
        return self.of_type(HandlerRan)

    def requests(self) -> list[LLMRequested]:
        """Return the job's LLM requests, retries included."""
        return self.of_type(LLMRequested)

    def console(self) -> list[str]:
        """Return the text of the job's console entries."""
        return [line.text for line in self.of_type(ConsoleLine)]

    def spans(self, name: str | None = None, *, content: bool = False) -> list[Span]:
        """Return the job's spans, as `Trace.spans` does."""
        return [span for span in self._trace.spans(name, content=content) if span.job == self._job_id]

    def delivered(self) -> list[Delivered]:
        """Return the texts that the job's dialog agent sent to its user."""
        return self.of_type(Delivered)


def require_tool(name: str, known: Collection[str], whose: str) -> None:
    """Raise BadInput if a test asks for the calls of an unknown tool.

    `known` are the names of all callable tools; `whose` names their owner, such as "job 'main'".
    """
    if name in known:
        return
    hint = suggestion(name, known) or f" It has {', '.join(sorted(known)) or 'none'}"
    raise BadInput(f"tool_calls({name!r}): {whose} has no tool of that name, so none was ever called.{hint}")


def event_label(event: Event) -> str:
    """Return an event in a few words, without its variable-length parts."""
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
