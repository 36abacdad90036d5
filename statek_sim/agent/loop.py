"""The loop (004 §4): assemble, ask, validate, final answer or tool calls, append, again. No I/O in it.

`AgentRun.go` is a generator of effects. Limits are checked at stated points: before each iteration
`max_iterations`, STATEK's turn and exception limits, then the budget for the request; after each answer STATEK's token
and exception limits, before its calls are executed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statek_sim import progress
from statek_sim import trace as events
from statek_sim.agent.asking import ask_model
from statek_sim.agent.batch_values import saved_reply
from statek_sim.agent.budget import BudgetTracker
from statek_sim.agent.compacting import compact
from statek_sim.agent.conversation import Conversation, Envelopes
from statek_sim.agent.effects import (
    NO_PARTS,
    Answer,
    Choice,
    Commit,
    CommitPoint,
    Effect,
    GuardPoint,
    Parts,
    Question,
    Snapshot,
    TurnAhead,
)
from statek_sim.agent.escalating import Climbing, climb
from statek_sim.agent.escalation.climbing import Climb
from statek_sim.agent.guarding import guarded
from statek_sim.agent.pending import Pending, state_of, taken_up
from statek_sim.agent.progress import Counters, Ended
from statek_sim.agent.replies.nudges import Failure, NudgeBudget
from statek_sim.agent.replies.taking import take
from statek_sim.agent.spec import AgentSpec
from statek_sim.agent.steps.enforcement import StepEnforcer
from statek_sim.agent.tools.registry import Offer
from statek_sim.clock import Clock
from statek_sim.errors import LLM_HarnessError
from statek_sim.harness.harness import LLM_Harness
from statek_sim.trace import Trace
from statek_sim.values import Message

if TYPE_CHECKING:
    from statek_sim.agent.batch import Batch

Steps = Generator[Effect, Answer, None]
InHand = Mapping[str, object] | Callable[[], Mapping[str, object]]
"""What is in hand at a commit beside the state of the run, or how to say it, where that takes time."""
NothingToDo = tuple[()]
"""What a part of a turn returns that has no effects: most have none on most turns, and a generator takes time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a run needs around it: the time, the trace, limits, what counts tokens, and the parts put in."""

    clock: Clock
    trace: Trace
    harness: LLM_Harness
    envelopes: Envelopes
    parts: Parts = NO_PARTS


class AgentRun:
    """One run of an agent: its state, and the generator that moves it.

    `status` is READY, STARTED, SUSPENDED (a person is asked) or DONE; `stop` why the last unit of work ended;
    `answer` its final text; `climbed` what came of each attempt of a ladder, when its last task has ended.
    """

    def __init__(
        self, job: str, spec: AgentSpec, around: Around, message: str, *, saved: Pending | None = None
    ) -> None:
        """`saved`: where a run stood that is taken up again; see `resuming.resumed`, which gives it its state."""
        self.job = job
        self.task = message
        self.spec = spec
        self.around = around
        self.now: Callable[[], float] = around.clock.now
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
        self.conversation = Conversation(around.envelopes, spec)
        self.taken = 0
        self.waiting_task: str | None = None
        self.climbing: Climbing | None = None
        self.climbed: Climb | None = None
        self.message = ""
        self.resting = False
        self._saved = saved
        self.offer_made: Offer | None = None
        self.hidden: frozenset[str] = frozenset()
        self.seen: set[tuple[str, str, str]] = set()
        self.results: list[str] = []
        self.asked = 0
        self.batch: Batch | None = None
        if saved is None:
            self.tell(events.JobCreated(self.now(), job, spec.role, spec.model, None))

    # -- units of work -----------------------------------------------------------------------------------------

    def go(self) -> Steps:
        """Yield the effects of a unit of work, until it is DONE; again after `push` gave it another one.

        A unit that ended before it took a message leaves it: a limit that holds for good would end the next one too.
        """
        self.resting = False
        try:
            yield from self._units()
        finally:
            self.resting = self.status == "DONE"

    def _units(self) -> Steps:
        saved, self._saved = self._saved, None
        while True:
            before = self.taken, self.steps
            if saved is not None and saved.point is CommitPoint.ENDED:
                progress_made = bool(saved.state["progress"])
            else:
                yield from self._whole_unit(saved)
                progress_made = saved is not None or before != (self.taken, self.steps)
                yield from self.commit(CommitPoint.ENDED, pending={"progress": progress_made})
            saved = None
            if not self.inbox or not progress_made:
                return
            self._reactivate()

    def _whole_unit(self, saved: Pending | None) -> Steps:
        """Work until the run is DONE, from its beginning or from where it was saved."""
        ladder = self.around.parts.ladder
        if saved is None:
            self.move("STARTED")
        yield from self.attempt(saved) if ladder is None else climb(self, ladder, saved)
        self.move("DONE")
        self.tell(events.JobStopped(self.now(), self.job, self.stop or "", self.detail))

    def attempt(self, saved: Pending | None = None) -> Steps:
        """Yield the effects of one attempt at a unit of work, from where it was saved, and note how it ended."""
        self.failure = None
        try:
            yield from self._unit() if saved is None else self._rest_of_unit(saved)
        except Ended as end:
            self.stop, self.detail, self.failure = end.reason, end.detail, end.__cause__
        except LLM_HarnessError as exceeded:
            self.stop, self.detail = str(getattr(exceeded, "limit", "harness")), str(exceeded)

    def begin_attempt(self, model: str, task: str, history: Sequence[Message] | None) -> None:
        """Have the next attempt ask `model` for `task`; with `history` it starts over from there, its steps undone.

        None: the first attempt, which goes on from where the run is.
        """
        if history is not None or model != self.spec.model:
            self.spec = replace(self.spec, model=model)
            kept = self.conversation.messages if history is None else history
            self.conversation = Conversation(self.around.envelopes, self.spec)
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
        """Leave no task behind that an attempt ended before it took."""
        if self.waiting_task is not None and self.inbox[:1] == [self.waiting_task]:
            self.inbox.pop(0)
        self.waiting_task = None

    def push(self, message: str) -> bool:
        """Give the run another user message, read at the next safe moment; return whether `go` is to be called again.

        That is so when the run was DONE: it is taken up again.
        """
        self.tell(events.UserMessage(self.now(), self.job, message))
        self.inbox.append(message)
        if not self.resting:
            return False
        self.resting = False
        self._reactivate()
        return True

    @property
    def trace(self) -> Trace:
        """The trace of this run and of all others of its harness."""
        return self.around.trace

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of the tools that were offered last."""
        return () if self.offer_made is None else self.offer_made.names

    def _reactivate(self) -> None:
        self.tell(events.Reactivated(self.now(), self.job, "message", self.completions))
        self.stop = self.detail = self.answer = None
        self.iteration = 0
        self.nudges.in_a_row = 0

    def _unit(self) -> Steps:
        if not self.taken:
            yield from self._take_message()
        yield from self.commit(CommitPoint.BEGAN)
        while self.status != "DONE":
            yield from self.iterate()

    def _rest_of_unit(self, saved: Pending) -> Steps:
        yield from taken_up(self, saved)
        while self.status != "DONE":
            yield from self.iterate()

    def move(self, status: str) -> None:
        """Change the status, which the trace tells."""
        self.tell(events.StatusChanged(self.now(), self.job, self.status, status))
        self.status = status

    # -- one iteration -----------------------------------------------------------------------------------------

    def iterate(self) -> Steps:
        """Yield the effects of one iteration: assemble, ask, take the answer."""
        if self.iteration >= self.spec.max_iterations:
            raise Ended(
                "max_iterations", f"Agent did not complete within {self.spec.max_iterations} iterations"
            )
        self.around.harness.check_before_step(self)
        self.iteration += 1
        self.steps += 1
        progress.at(self.job, self.counters.asked + 1)
        self.tell(events.StepStarted(self.now(), self.job, self.steps))
        if self.inbox:
            yield from self._read_inbox()
        offer = self._offered()
        if self.around.parts.compactor is not None:
            yield from compact(self)
        self._hold_budget()
        if self.around.parts.guards:
            yield from self._guard_budget()
        reply = yield from ask_model(self)
        self.around.harness.check_after_step(self)
        if self.around.parts.commits:
            yield from self.commit(CommitPoint.REPLIED, pending={"reply": saved_reply(reply)})
        yield from take(self, reply, offer)

    def _read_inbox(self) -> Steps:
        while self.inbox:
            yield from self._take_message()

    def _take_message(self) -> Steps:
        """Take the oldest message, which a guard may change; one that it blocks is not looked at again."""
        self.taken += 1
        message = self.inbox.pop(0)
        if self.around.parts.guards:
            ruling = yield from guarded(self, GuardPoint.INPUT, message)
            if ruling.blocked is not None:
                raise Ended("blocked", ruling.blocked)
            message = ruling.text
        self.message = message
        self.conversation.add({"role": "user", "content": message})

    def _offered(self) -> Offer:
        offer = self.spec.offer(self._choice(), without=self.hidden)
        notes = self.spec.registry.notes
        while notes:
            self.tell(events.HarnessSpoke(self.now(), self.job, "registry", "list changed", notes.pop(0)))
        before = self.offer_made
        if before is not offer and (before is None or before.names != offer.names):
            turn = self.counters.asked + 1
            self.tell(events.ToolsOffered(self.now(), self.job, turn, offer.names, True))
        self.offer_made = offer
        self.conversation.offer(offer)
        return offer

    def _choice(self) -> Choice | None:
        chooser = self.around.parts.chooser
        if chooser is None:
            return None
        called = [str(call["name"]) for call in self.calls]
        ahead = TurnAhead(
            turn=self.counters.asked + 1, message=self.message, called=called, open_steps=self.enforcer.open
        )
        return chooser(ahead)

    def _hold_budget(self) -> None:
        self.budget.begin(at=self.now())
        if not self.budget.unlimited:
            tokens = self.conversation.prompt_tokens
            over = self.budget.before_request(tokens, at=self.now(), model=self.spec.model)
            if over is not None:
                raise Ended(over.name.value, str(over))

    def _guard_budget(self) -> Steps:
        ruling = yield from guarded(self, GuardPoint.BUDGET, str(self.budget.tokens))
        if ruling.blocked is not None:
            raise Ended("blocked", ruling.blocked)

    # -- what the parts of a turn do with the run --------------------------------------------------------------

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
        pending: InHand | None = None,
    ) -> Steps | NothingToDo:
        """Return the effects of a commit of the state as it is now, where commits are asked for.

        `pending`: what is in hand at this point, beside the state of the run; what takes time to say is asked for
        where commits are.
        """
        return self._committed(point, questions, pending) if self.around.parts.commits else ()

    def _committed(
        self,
        point: CommitPoint,
        questions: tuple[Question, ...],
        pending: InHand | None,
    ) -> Steps:
        yield Commit(self.job, point, lambda: self._snapshot(point, questions, pending))
        messages = len(self.conversation.messages)
        self.tell(events.Committed(self.now(), self.job, point.value, self.iteration, messages))

    def _snapshot(
        self,
        point: CommitPoint,
        questions: tuple[Question, ...],
        pending: InHand | None,
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
            state=state_of(self, pending() if callable(pending) else pending or {}),
            questions=questions,
        )

    def tell(self, event: events.Event) -> None:
        """Add an event to the trace."""
        self.around.trace.add(event)

    # -- what the harness reads --------------------------------------------------------------------------------

    @property
    def num_turns(self) -> int:
        """Answered requests so far."""
        return self.counters.answered

    @property
    def exception_count(self) -> int:
        """Replies that were refused and tools that failed, so far."""
        return self.counters.exceptions

    @property
    def max_consecutive_exceptions(self) -> int:
        """Longest streak of turns with a refused reply or a failed tool."""
        return self.counters.longest_streak

    @property
    def approx_token_usage(self) -> int:
        """STATEK's estimate: bytes both ways, divided by 4."""
        return self.counters.usage.approx_tokens

    @property
    def measured_token_usage(self) -> int:
        """Tokens by the tokenizer, so far."""
        return self.counters.usage.measured_tokens

    @property
    def reported_token_usage(self) -> int:
        """Tokens as the provider reported them, so far."""
        return self.counters.usage.reported_tokens or 0

    @property
    def num_completions(self) -> int | None:
        """How often the run gave a final answer; None before the first one."""
        return self.completions

    @property
    def difficulty_token_extension(self) -> int:
        """Nothing: difficulty is STATEK's."""
        return 0
