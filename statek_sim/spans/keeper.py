"""The spans of a run that are open: who has which, what they are in, and which have ended.

A span that may still change is a list of the fields of `Span` in their order, because there are three spans to a turn;
`complete` makes a `Span` of it as soon as it has ended, so that the next one takes its memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from statek_sim.spans import names
from statek_sim.spans.names import Operation
from statek_sim.spans.span import Attribute, Mark, Span

Cost = Callable[[str, int, int], float | None]
"""What a request cost in US dollars, by model, prompt tokens and completion tokens; None where nobody knows."""

Making = list[Any]
"""A span that is not complete: the fields of `Span` in their order."""

TRACE, ID, END, ATTRIBUTES, MARKS, _ERROR = map(
    Span._fields.index, ("trace", "id", "end", "attributes", "marks", "error")
)


class Kind(NamedTuple):
    """A kind of span: its operation, how its name begins, and the attributes that it always has."""

    operation: Operation
    beginning: str
    always: dict[str, Attribute]


def _kind(operation: Operation) -> Kind:
    return Kind(operation, f"{operation} ", dict(names.ALWAYS[operation]))


# Constants, because Python 3.11 takes as long to look up a member of an enum as to make a span's name.
AGENT: Final = _kind(Operation.AGENT)
STEP: Final = _kind(Operation.STEP)
CHAT: Final = _kind(Operation.CHAT)
TOOL: Final = _kind(Operation.TOOL)
GUARD: Final = _kind(Operation.GUARD)
CHECKPOINT: Final = _kind(Operation.CHECKPOINT)
PERSON: Final = _kind(Operation.PERSON)

complete: Final[Callable[[Making], Span]] = partial(tuple.__new__, Span)
"""Returns a span as a value; `Span(*fields)` takes half as long again."""

_HTTP_FAILURE: Final = re.compile(r"(?:Client|Server) error '(\d{3}) ")
"""How a trace tells of a request that a provider refused, in httpx' words."""


@dataclass(slots=True)
class Job:
    """One job: who it is, and what is open of it. `conversation` is the id of all that it says.

    `last_input` is what its last request added to the one before; `asking` is what the attributes of its requests are
    copied of, which have room for what comes into them.
    """

    name: str
    conversation: str
    role: str
    model: str
    parent: str | None
    units: int = 0
    last_input: str = ""
    calls_together: bool = False
    root: Making | None = None
    step: Making | None = None
    chat: Making | None = None
    tools: list[Making] = field(default_factory=list)
    people: dict[str, Making] = field(default_factory=dict)
    asking: dict[str, Attribute] = field(
        default_factory=lambda: {names.MODEL: "", names.TURN: 0, names.ATTEMPT: 0}
    )

    @property
    def left(self) -> Iterator[Making]:
        """The spans that have not been handed on, the innermost first; the last of them may have an end."""
        inner = (*self.tools, *self.people.values(), self.chat, self.step, self.root)
        return (span for span in inner if span is not None)


class Keeper:
    """Opens, marks and closes the spans of one run.

    `ended` are those that will not change any more, until somebody takes them out.
    """

    __slots__ = ("_conversation", "_count", "_prefix", "_run", "content", "cost", "ended", "jobs", "provider")

    def __init__(self, run: str, *, provider: str | None, content: bool, cost: Cost | None) -> None:
        self.provider: Final = None if provider is None else names.provider_name(provider)
        self.content: Final = content
        self.cost: Final = cost
        self.jobs: Final[dict[str, Job]] = {}
        self.ended: Final[list[Span]] = []
        digest = hashlib.sha256(run.encode("utf-8", "replace")).digest()
        self._run = run
        self._prefix = digest[:4].hex()
        self._conversation = digest[8:16].hex()
        self._count = 0

    def job(self, name: str) -> Job:
        """Return a job; one that nobody told of is known from a trace without its beginning, or is outside jobs."""
        return self.jobs.get(name) or self.know(name, name or "outside", "", None)

    def know(self, name: str, role: str, model: str, parent: str | None) -> Job:
        """Note who a job is."""
        found = self.jobs.get(name)
        if found is None:
            found = self.jobs[name] = Job(name, f"{self._conversation}/{name}", role, model, parent)
            found.asking |= CHAT.always | {names.CONVERSATION: found.conversation}
        else:
            found.role, found.model, found.parent = role, model, parent
        found.asking[names.PROVIDER] = self.provider or names.provider_of(model)
        return found

    def open(
        self,
        job: Job,
        under: Making | None,
        kind: Kind,
        what: str,
        at: float,
        attributes: dict[str, Attribute],
    ) -> Making:
        """Open a span at `at` under another one, or else under that of the job's unit of work."""
        if under is None:
            under = self.root_of(job, at)
        self._count = seq = self._count + 1
        operation, beginning, _ = kind
        return [
            seq, under[TRACE], f"{self._prefix}{seq:08x}", under[ID], job.name, operation, beginning + what, at, None,
            attributes, (), None,
        ]  # fmt: skip

    def close(self, span: Making | None, at: float, error: str | None = None) -> None:
        """Close a span, if there is one; with `error` it failed."""
        if span is None:
            return
        span[END] = at
        if error is not None:
            fail(span, error)
        self.ended.append(complete(span))

    def close_all(self, job: Job, at: float) -> None:
        """Close what is open of a job but for its unit of work: what was waited for comes no more."""
        for waited in (*job.tools, *job.people.values(), job.chat):
            self.close(waited, at, "cancelled")
        self.close(job.step, at)
        job.step = job.chat = None
        job.tools, job.people = [], {}

    def root_of(self, job: Job, at: float) -> Making:
        """Return the span of a job's unit of work, begun where none is open."""
        if (root := job.root) is not None:
            if root[END] is None:
                return root
            self.ended.append(complete(root))
        job.units += 1
        above = None if job.parent is None else self.jobs.get(job.parent)
        under = None if above is None else above.step or above.root
        attributes = AGENT.always | {
            names.AGENT: job.role,
            names.MODEL: job.model,
            names.PROVIDER: self.provider or names.provider_of(job.model),
            names.CONVERSATION: job.conversation,
            names.SESSION: job.conversation,
        }
        if under is None:
            attributes[names.TRACE_NAME] = f"{job.role} {job.name}"
            under = [0, self._task_id(job), None]  # no span, but the trace that this one begins
        job.root = root = self.open(job, under, AGENT, job.role, at, attributes)
        return root

    def inner(self, name: str, at: float) -> Making:
        """Return the span that what happens to a job now happens in."""
        job = self.job(name)
        return job.step or job.root or self.root_of(job, at)

    def mark(self, name: str, at: float, what: str, attributes: dict[str, Attribute]) -> Making:
        """Mark that something happened to a job, in the span that it happened in; return that."""
        span = self.inner(name, at)
        span[MARKS] += (Mark(what, at, attributes),)
        return span

    def leave(self) -> None:
        """End with what was still going on: it is noted as open, and has no end."""
        for job in self.jobs.values():
            for span in job.left:
                if span[END] is None:
                    span[ATTRIBUTES][names.OPEN] = True
                self.ended.append(complete(span))
            job.root = job.step = job.chat = None
            job.tools, job.people = [], {}

    def _task_id(self, job: Job) -> str:
        """Return the id of the trace of a job's unit of work."""
        text = f"{self._run} task {job.units} of {job.name}"
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def fail(span: Making, error: str) -> None:
    """Note why a span failed."""
    span[_ERROR] = error
    span[ATTRIBUTES][names.ERROR] = _kind_of(error)
    span[ATTRIBUTES][names.LEVEL] = "ERROR"
    span[ATTRIBUTES][names.STATUS_MESSAGE] = error


def _kind_of(error: str) -> str:
    """Return the kind of an error, which there are few of: an HTTP status, or what its text begins with."""
    status = _HTTP_FAILURE.match(error)
    if status is not None:
        return status[1]
    return error.partition(":")[0].partition(" (")[0][:80] or "error"
