"""A run's state, with the operations shared by the loop's modules.

The fields of a `RunState` contain a run's whole state. `values` converts them to plain values (strings, numbers, lists,
tuples, mappings), which `store.codec` encodes as text and from which `resume.resumed` recreates the run.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

from statek_sim import trace as events
from statek_sim.agent.budget import BudgetTracker, Counters, Ended
from statek_sim.agent.conversation import Conversation, Envelopes
from statek_sim.agent.effects import (
    NO_PARTS,
    Answer,
    Commit,
    CommitPoint,
    Effect,
    Parts,
    Question,
    Receipt,
    Saved,
    Snapshot,
    ToolCall,
    ToolOutcome,
    ToolStatus,
    WrittenCall,
)
from statek_sim.agent.escalation import Climb, Climbing, climb_json
from statek_sim.agent.replies.model_reply import ModelReply
from statek_sim.agent.replies.nudges import Failure, NudgeBudget
from statek_sim.agent.spec import AgentSpec
from statek_sim.agent.step_enforcement import StepEnforcer
from statek_sim.agent.tools.registry import Offer
from statek_sim.clock import Clock
from statek_sim.errors import BadInput
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.wire.reply import ReportedUsage
from statek_sim.trace import Trace
from statek_sim.values import Message


def saved_reply(reply: ModelReply) -> dict[str, object]:
    """Convert a reply to values."""
    return {
        "text": reply.text,
        "calls": [written_values(call) for call in reply.calls],
        "usage": asdict(reply.usage),
        "truncated": reply.truncated,
        "native": None if reply.native is None else dict(reply.native),
    }


def reply_from(saved: Mapping[str, Any]) -> ModelReply:
    """Return the reply from values produced by `saved_reply`."""
    return ModelReply(
        saved["text"],
        tuple(WrittenCall(*call) for call in saved["calls"]),
        ReportedUsage(**saved["usage"]),
        truncated=saved["truncated"],
        native=saved["native"],
    )


def outcome_from(status: str, text: str) -> ToolOutcome:
    """Return the outcome from values produced by `outcome_values`."""
    return ToolOutcome(ToolStatus(status), text)


def calls_from(saved: Mapping[str, Any]) -> tuple[WrittenCall, ...]:
    """Return a saved batch's calls, as they were written."""
    return tuple(WrittenCall(*call) for call in saved["calls"])


def written_values(call: WrittenCall) -> tuple[str, str, str]:
    """Convert a call, as it was written, to values."""
    return call.id, call.name, call.arguments


def call_values(call: ToolCall) -> tuple[str, str, dict[str, object]]:
    """Convert a parsed call to values."""
    return call.id, call.name, dict(call.arguments)


def outcome_values(outcome: ToolOutcome) -> tuple[str, str]:
    """Convert a call's outcome to values."""
    return outcome.status.value, outcome.text


PART_LISTS: Final = ("watchers", "gates", "guards")
"""Fields of `Parts` that hold several parts, which may have state."""
SINGLE_PARTS: Final = ("chooser", "reader", "compactor")
"""Fields of `Parts` that hold one part, which may have state."""


def saved_parts(parts: Parts) -> dict[str, list[object]]:
    """Return the parts' saved states, keyed by field of `Parts`."""
    return {kind: [part.saved() for part in stateful(parts, kind)] for kind in (*PART_LISTS, *SINGLE_PARTS)}


def stateful(parts: Parts, kind: str) -> list[Any]:
    """Return the parts in one field of `Parts` that have state."""
    found = getattr(parts, kind)
    given: Iterable[Any] = found if kind in PART_LISTS else () if found is None else (found,)
    # A part may be nested in another one, which saves its state.
    every = [getattr(part, "inner", part) for part in given]
    return [part for part in every if not _is_stateless(kind, part)]


def _is_stateless(kind: str, part: Any) -> bool:
    """Return whether a part is stateless; raises `BadInput` if that is not evident."""
    if isinstance(part, Saved):
        return False
    code = part.func if isinstance(part, partial) else part
    if getattr(part, "stateless", False) is True:
        return True
    if isinstance(code, types.FunctionType) and not code.__closure__:
        return True
    raise BadInput(
        f"{kind}: {_named(code)} may have state that a checkpoint would lose; give it `saved()` and "
        "`restore(saved)`, or set `stateless = True` if it has no state"
    )


def _named(code: Any) -> str:
    """Return a part's name without its memory address."""
    name = getattr(code, "__qualname__", type(code).__qualname__)
    return f"a {name}" if isinstance(code, types.FunctionType) else f"{name!r}"


Steps = Generator[Effect, Answer, None]
WorkInProgress = Mapping[str, object] | Callable[[], Mapping[str, object]]
"""Work in progress at a commit that the run's state does not contain, or a callable that returns it."""
NoSteps = tuple[()]
"""An empty sequence of effects; it is faster than an empty generator."""

PLAIN: Final = (
    "task",
    "status",
    "stop",
    "detail",
    "answer",
    "steps",
    "iteration",
    "completions",
    "taken",
    "message",
    "asked",
    "waiting_task",
)
"""A run's fields that are strings or numbers."""

PARTS: Final = ("counters", "enforcer", "nudges", "budget", "conversation")
"""A run's fields whose values have their own `saved` and `restore` methods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDeps:
    """What a run depends on: its clock, trace, limits, token counters and parts."""

    clock: Clock
    trace: Trace
    harness: LLM_Harness
    envelopes: Envelopes
    parts: Parts = NO_PARTS


@dataclass(frozen=True, slots=True)
class Pending:
    """A saved run's position: the commit from which it resumes, and the later outcomes of calls and questions."""

    point: CommitPoint
    committed: float
    state: Mapping[str, Any]
    receipts: Sequence[Receipt] = ()


class InFlight(Protocol):
    """The calls in a reply during their execution."""

    def dropped(self) -> None:
        """Notify the gates that admitted the calls: the outcomes are unknown."""


class RunState:
    """The current state of one of an agent's runs.

    `status` is READY, STARTED, SUSPENDED (a person is asked) or DONE; `stop` is why the last unit of work ended;
    `answer` is its final text; `climbed` is the result of a ladder's attempts, once its last task has ended.
    """

    def __init__(
        self, job: str, spec: AgentSpec, deps: RunDeps, message: str, *, saved: Pending | None = None
    ) -> None:
        """Create a run; with `saved`, prepare to resume one (see `resume.resumed`, which also restores its state)."""
        self.job = job
        self.task = message
        self.spec = spec
        self.deps = deps
        self.now: Callable[[], float] = deps.clock.now
        self.status = "READY"
        self.stop: str | None = None
        self.detail: str | None = None
        self.answer: str | None = None
        self.failure: BaseException | None = None
        self.steps = 0
        self.iteration = 0
        self.completions: int | None = None
        self.counters = Counters()
        self.calls: list[dict[str, str | None]] = []
        self.refused: list[dict[str, str]] = []
        self.nudged: list[Failure] = []
        self.inbox: list[str] = [message] if saved is None else []
        self.enforcer = StepEnforcer(spec.plan)
        self.nudges = NudgeBudget(spec.nudges, spec.nudges_in_all)
        self.budget = BudgetTracker(spec.budget)
        self.conversation = Conversation(deps.envelopes, spec)
        self.taken = 0
        self.waiting_task: str | None = None
        self.climbing: Climbing | None = None
        self.climbed: Climb | None = None
        self.message = ""
        self.resting = False
        self.offer_made: Offer | None = None
        self.hidden: frozenset[str] = frozenset()
        self.seen: set[tuple[str, str, str]] = set()
        self.results: list[str] = []
        self.asked = 0
        self.batch: InFlight | None = None
        if saved is None:
            self.tell(events.JobCreated(self.now(), job, spec.role, spec.model, None))

    @property
    def trace(self) -> Trace:
        """The trace shared by all of its harness's runs."""
        return self.deps.trace

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of the tools last offered."""
        return () if self.offer_made is None else self.offer_made.names

    def move(self, status: str) -> None:
        """Change the status, recording the change in the trace."""
        self.tell(events.StatusChanged(self.now(), self.job, self.status, status))
        self.status = status

    def begin_attempt(self, model: str, task: str, history: Sequence[Message] | None) -> None:
        """Start the next attempt at `task` with `model`; if `history` is given, the attempt starts from that history.

        Without `history`, this is the first attempt, which continues from the current state.
        """
        if history is not None or model != self.spec.model:
            self.spec = replace(self.spec, model=model)
            kept = self.conversation.messages if history is None else history
            self.conversation = Conversation(self.deps.envelopes, self.spec)
            self.conversation.replace(kept)
        if history is not None:
            self.enforcer = StepEnforcer(self.spec.plan)
            self.nudges = NudgeBudget(self.spec.nudges, self.spec.nudges_in_all)
            self.hidden, self.seen, self.results = frozenset(), set(), []
            self.iteration = 0
        self.stop = self.detail = self.answer = None
        self.end_attempt()
        self.waiting_task = task
        self.inbox.insert(0, task)

    def end_attempt(self) -> None:
        """Remove a task that an attempt did not pick up before it ended."""
        if self.waiting_task is not None and self.inbox[:1] == [self.waiting_task]:
            self.inbox.pop(0)
        self.waiting_task = None

    def finish(self, answer: str) -> None:
        """End the unit of work with its final answer; raises `Ended`."""
        self.counters.turn_ended(failed=False)
        self.completions = (self.completions or 0) + 1
        self.answer = answer
        raise Ended("final")

    # -- commits ----------------------------------------------------------------------------------------------

    def commit(
        self,
        point: CommitPoint,
        questions: tuple[Question, ...] = (),
        *,
        pending: WorkInProgress | None = None,
    ) -> Steps | NoSteps:
        """Return the effects for committing the current state, if commits are requested.

        `pending` is work in progress that is not in the run's state; a callable is called only if commits are
        requested.
        """
        return self._committed(point, questions, pending) if self.deps.parts.commits else ()

    def _committed(
        self,
        point: CommitPoint,
        questions: tuple[Question, ...],
        pending: WorkInProgress | None,
    ) -> Steps:
        yield Commit(self.job, point, lambda: self._snapshot(point, questions, pending))
        messages = len(self.conversation.messages)
        self.tell(events.Committed(self.now(), self.job, point.value, self.iteration, messages))

    def _snapshot(
        self,
        point: CommitPoint,
        questions: tuple[Question, ...],
        pending: WorkInProgress | None,
    ) -> Snapshot:
        return Snapshot(
            job=self.job,
            point=point,
            status=self.status,
            stop=self.stop,
            answer=self.answer,
            iteration=self.iteration,
            messages=self.conversation.messages,
            steps_done=self.enforcer.done,
            steps_open=self.enforcer.open,
            nudges=self.nudges.in_all,
            tokens=self.budget.tokens,
            cost=self.budget.cost,
            seconds=self.now(),
            state=self.values(pending() if callable(pending) else pending or {}),
            questions=questions,
        )

    def values(self, pending: Mapping[str, object]) -> dict[str, object]:
        """Return the run's state and the work in progress as values that a checkpoint can store.

        Raises `BadInput` for a part that may have state but cannot save it.
        """
        state: dict[str, object] = {name: getattr(self, name) for name in PLAIN}
        state |= {name: getattr(self, name).saved() for name in PARTS}
        return state | {
            "inbox": list(self.inbox),
            "calls": [dict(call) for call in self.calls],
            "refused": [dict(refusal) for refusal in self.refused],
            "nudged": [failure.value for failure in self.nudged],
            "hidden": sorted(self.hidden),
            "results": list(self.results),
            "seen": sorted(self.seen),
            "offer": None if self.offer_made is None else list(self.offer_made.names),
            "climbed": None if self.climbed is None else climb_json(self.climbed),
            "climbing": None if self.climbing is None else self.climbing.values(),
            "parts": saved_parts(self.deps.parts),
            "pending": dict(pending),
        }

    def tell(self, event: events.Event) -> None:
        """Add an event to the trace."""
        self.deps.trace.add(event)

    # -- read by the harness -----------------------------------------------------------------------------------

    @property
    def num_turns(self) -> int:
        """The number of requests answered so far."""
        return self.counters.answered

    @property
    def exception_count(self) -> int:
        """The number of rejected replies and failed tools so far."""
        return self.counters.exceptions

    @property
    def max_consecutive_exceptions(self) -> int:
        """The longest streak of turns with a rejected reply or a failed tool."""
        return self.counters.longest_streak

    @property
    def approx_token_usage(self) -> int:
        """STATEK's estimate of the tokens used: the size of requests and answers in bytes, divided by 4."""
        return self.counters.usage.approx_tokens

    @property
    def measured_token_usage(self) -> int:
        """Tokens used so far, as counted by the tokenizer."""
        return self.counters.usage.measured_tokens

    @property
    def reported_token_usage(self) -> int:
        """Tokens used so far, as reported by the provider."""
        return self.counters.usage.reported_tokens or 0

    @property
    def num_completions(self) -> int | None:
        """The number of final answers; None before the first one."""
        return self.completions

    @property
    def difficulty_token_extension(self) -> int:
        """Zero, because only STATEK's jobs have a difficulty."""
        return 0
