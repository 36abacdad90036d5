"""The agent's loop, without I/O (agent document §4): assemble, request, validate, answer or call tools, repeat.

`AgentRun.go` is a generator of effects. Before each iteration, it checks `max_iterations`, STATEK's turn and exception
limits, then the budget for the request; after each answer, before executing its calls, STATEK's token and exception
limits.
"""

from __future__ import annotations

from collections.abc import Generator

from statek_sim import progress
from statek_sim import trace as events
from statek_sim.agent.attempts import climb
from statek_sim.agent.batch import Batch
from statek_sim.agent.budget import Ended
from statek_sim.agent.effects import (
    Answer,
    Choice,
    CommitPoint,
    Compaction,
    Compactor,
    Effect,
    GuardPoint,
    TextWanted,
    TurnAhead,
)
from statek_sim.agent.guard_points import guarded
from statek_sim.agent.inflight_recovery import Recall
from statek_sim.agent.model_request import ask_model, ask_side_model
from statek_sim.agent.replies.calls import fail_reply, numbered, shown
from statek_sim.agent.replies.model_reply import ModelReply
from statek_sim.agent.replies.nudges import ROLE, Failure
from statek_sim.agent.run_state import Pending, RunDeps, RunState, Steps, reply_from, saved_reply
from statek_sim.agent.spec import AgentSpec
from statek_sim.agent.tools.registry import Offer
from statek_sim.errors import CompactionFailed, ContextOverflow, LLM_HarnessError
from statek_sim.values import in_common


def take(run: RunState, reply: ModelReply, offer: Offer) -> Steps:
    """Process a reply: execute its calls, end the run with its text, or correct the model."""
    if reply.truncated:
        fail_reply(run, reply, reply.calls, Failure.TRUNCATED, {})
        return
    calls, text = reply.calls, reply.text
    reader = run.deps.parts.reader
    if not calls and text and reader is not None:
        reading = reader(text, offer.schemas)
        run.tell(
            events.ReplyRead(
                run.now(),
                run.job,
                run.counters.asked,
                text,
                tuple(reading.stages),
                tuple([shown(call) for call in reading.calls]),
                reading.refused,
            )
        )
        if reading.refused is not None and reading.shown is None:
            fail_reply(run, reply, (), Failure.REFUSED, {"reason": reading.refused})
            return
        if reading.refused is not None and not _corrected(run, Failure.NOT_ALONE):
            details = {"called": reading.shown, "reason": reading.refused}
            fail_reply(run, reply, (), Failure.NOT_ALONE, details)
            return
        if reading.calls:
            calls, text = reading.calls, reading.text
    if not calls:
        yield from _take_text(run, reply, offer)
        return
    yield from Batch(run, reply, text, numbered(calls), offer).go()


def _corrected(run: RunState, failure: Failure) -> bool:
    """Return whether the reply responds to a nudge about this failure, which is then the last message."""
    return run.nudged[-1:] == [failure] and run.conversation.messages[-1]["role"] == ROLE


def _take_text(run: RunState, reply: ModelReply, offer: Offer) -> Steps:
    if not reply.text.strip():
        fail_reply(run, reply, (), Failure.EMPTY, {})
        return
    open_ = run.enforcer.final()
    if open_ is not None:
        fail_reply(run, reply, (), open_.failure, open_.details)
        return
    text = reply.text
    if run.deps.parts.guards:
        ruling = yield from guarded(run, GuardPoint.OUTPUT, text)
        if ruling.blocked is not None:
            fail_reply(run, reply, (), Failure.REFUSED, {"reason": ruling.blocked})
            return
        text = ruling.text
    run.conversation.said(reply, (), reply.text)
    run.finish(text)


class AgentRun(RunState):
    """An agent's run: its state, and the generator `go`, which yields effects for a driver."""

    def __init__(
        self, job: str, spec: AgentSpec, deps: RunDeps, message: str, *, saved: Pending | None = None
    ) -> None:
        """Create a run; pass `saved` only for a run that `resume.resumed` is about to restore."""
        super().__init__(job, spec, deps, message, saved=saved)
        self._saved = saved

    # -- units of work -----------------------------------------------------------------------------------------

    def go(self) -> Steps:
        """Yield the run's effects until it is DONE; call again when `push` returns True.

        A message that was not read before a limit ended the work stays in the queue, because a permanent limit would
        end further work too.
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
        """Yield effects until the run is DONE, starting from the beginning of the work or from its saved position."""
        ladder = self.deps.parts.ladder
        if saved is None:
            self.move("STARTED")
        yield from self.attempt(saved) if ladder is None else climb(self, ladder, self.attempt, saved)
        self.move("DONE")
        self.tell(events.JobStopped(self.now(), self.job, self.stop or "", self.detail))

    def attempt(self, saved: Pending | None = None) -> Steps:
        """Yield the effects of one attempt at the work, which may resume from `saved`; record how the attempt ended."""
        self.failure = None
        try:
            yield from self._unit(saved)
        except Ended as end:
            self.stop, self.detail, self.failure = end.reason, end.detail, end.__cause__
        except LLM_HarnessError as exceeded:
            self.stop, self.detail = str(getattr(exceeded, "limit", "harness")), str(exceeded)

    def push(self, message: str) -> bool:
        """Queue another user message, to be read at the next iteration; return whether to call `go` again.

        This is True if the run was DONE; it is then active again.
        """
        self.tell(events.UserMessage(self.now(), self.job, message))
        self.inbox.append(message)
        if not self.resting:
            return False
        self.resting = False
        self._reactivate()
        return True

    def _reactivate(self) -> None:
        self.tell(events.Reactivated(self.now(), self.job, "message", self.completions))
        self.stop = self.detail = self.answer = None
        self.iteration = 0
        self.nudges.in_a_row = 0

    def _unit(self, saved: Pending | None) -> Steps:
        if saved is not None:
            yield from self._taken_up(saved)
        else:
            if not self.taken:
                yield from self._take_message()
            yield from self.commit(CommitPoint.BEGAN)
        while self.status != "DONE":
            yield from self.iterate()

    def _taken_up(self, saved: Pending) -> Steps:
        """Finish the work in progress when the run was committed, up to its next iteration."""
        self.tell(events.RunResumed(self.now(), self.job, saved.point.value, self.iteration, saved.committed))
        offer = self.offer_made
        if "wave" in saved.state:
            yield from Recall(self, saved.state, saved.receipts, saved.committed).go()
        elif "reply" in saved.state:
            assert offer is not None, "a reply belongs to a request that offered tools"
            yield from take(self, reply_from(saved.state["reply"]), offer)

    # -- one iteration -----------------------------------------------------------------------------------------

    def iterate(self) -> Steps:
        """Yield one iteration's effects: assemble, request, process the answer."""
        if self.iteration >= self.spec.max_iterations:
            raise Ended(
                "max_iterations", f"Agent did not complete within {self.spec.max_iterations} iterations"
            )
        self.deps.harness.check_before_step(self)
        self.iteration += 1
        self.steps += 1
        progress.at(self.job, self.counters.asked + 1)
        self.tell(events.StepStarted(self.now(), self.job, self.steps))
        while self.inbox:
            yield from self._take_message()
        offer = self._offered()
        if self.deps.parts.compactor is not None:
            yield from compacted(self, self.deps.parts.compactor)
        self._hold_budget()
        if self.deps.parts.guards:
            yield from self._guard_budget()
        reply = yield from ask_model(self)
        self.deps.harness.check_after_step(self)
        if self.deps.parts.commits:
            yield from self.commit(CommitPoint.REPLIED, pending={"reply": saved_reply(reply)})
        yield from take(self, reply, offer)

    def _take_message(self) -> Steps:
        """Append the oldest queued message, as changed by guards; discard it if it is blocked."""
        self.taken += 1
        message = self.inbox.pop(0)
        if self.deps.parts.guards:
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
        chooser = self.deps.parts.chooser
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


def compacted(run: RunState, compactor: Compactor) -> Generator[Effect, Answer, None]:
    """Replace the run's history with the compactor's result.

    Ends the run with `context_overflow`, before the provider is called, if the history cannot fit.
    """
    before, tokens = run.conversation.messages, run.conversation.prompt_tokens
    try:
        compacted = compactor(before, tokens=tokens)
        made = (yield from _with_summaries(run, compacted)) if isinstance(compacted, Generator) else compacted
    except ContextOverflow as over:
        raise Ended("context_overflow", str(over)) from over
    except CompactionFailed as failed:
        raise Ended("crash", str(failed)) from failed
    if made is None:
        return
    run.conversation.replace(made.messages)
    kept = in_common(before, made.messages)
    run.tell(
        events.Compacted(
            run.now(),
            run.job,
            made.strategy,
            len(before),
            len(made.messages),
            tokens,
            run.conversation.prompt_tokens,
            made.cleared,
            made.summarised,
            made.dropped,
            made.cut,
            kept,
            run.conversation.tokens_of(kept),
        )
    )


def _with_summaries(
    run: RunState, steps: Generator[TextWanted, str | None, Compaction | None]
) -> Generator[Effect, Answer, Compaction | None]:
    try:
        wanted = next(steps)
        while True:
            text = yield from ask_side_model(run, wanted, part="context", missing="no summary")
            wanted = steps.send(text)
    except StopIteration as end:
        made: Compaction | None = end.value
        return made
    finally:
        steps.close()
