"""The loop (004 §4): assemble, ask, validate, final answer or tool calls, append, again. No I/O in it.

`AgentRun.go` is a generator of effects. Limits are checked at stated points: before each iteration
`max_iterations`, STATEK's turn and exception limits, then the budget for the request; after each answer STATEK's token
and exception limits, before its calls are executed.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim import trace as events
from statek_sim.agent.budget import BudgetTracker
from statek_sim.agent.calls import Refusal, numbered, resolved, shown
from statek_sim.agent.conversation import Conversation, Envelopes
from statek_sim.agent.effects import (
    NO_PARTS,
    Advice,
    Answer,
    AskModel,
    CallTools,
    Commit,
    CommitPoint,
    Effect,
    GuardPoint,
    Invocation,
    LetTimePass,
    Parts,
    Snapshot,
    ToolCall,
    ToolOutcome,
    TurnFacts,
    WrittenCall,
)
from statek_sim.agent.nudges import PREFIX, ROLE, Failure, NudgeBudget, nudge_text
from statek_sim.agent.progress import Counters
from statek_sim.agent.reading import ModelReply, read_model_reply
from statek_sim.agent.spec import AgentSpec
from statek_sim.agent.steps import StepEnforcer
from statek_sim.agent.tools.registry import Offer
from statek_sim.clock import Clock
from statek_sim.errors import LLM_HarnessError, ProviderFailure
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.protocol import ChatRequest, RawReply
from statek_sim.providers.retry import retry_delay
from statek_sim.trace import Trace

Steps = Generator[Effect, Answer, None]

NOT_RUN: Final = "Error: not executed, because another call of the same reply was refused."
"""The result of a good call in a reply that is refused whole."""


class Ended(Exception):  # the end of a run, not an error
    """The run is over for this reason."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


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

    `status` is READY, STARTED or DONE; `stop` why the last unit of work ended; `answer` its final text.
    """

    def __init__(self, job: str, spec: AgentSpec, around: Around, message: str) -> None:
        self.job = job
        self.spec = spec
        self.around = around
        self.status = "READY"
        self.stop: str | None = None
        self.detail: str | None = None
        self.answer: str | None = None
        self.steps = 0
        self.iteration = 0
        self.completions: int | None = None
        self.counters = Counters()
        self.calls: list[dict[str, str | None]] = []
        self.refused: list[dict[str, str]] = []
        self.nudged: list[Failure] = []
        self.inbox: list[str] = []
        self.enforcer = StepEnforcer(spec.plan, spec.variant)
        self.nudges = NudgeBudget(spec.variant, spec.nudges)
        self.budget = BudgetTracker(spec.budget, spec.variant, began=around.clock.now())
        self.conversation = Conversation(around.envelopes, spec)
        self._message = message
        self._offer: Offer | None = None
        self._hidden: frozenset[str] = frozenset()
        self._seen: set[tuple[str, str, str]] = set()
        around.trace.add(events.JobCreated(around.clock.now(), job, spec.role, spec.model, None))

    # -- units of work -----------------------------------------------------------------------------------------

    def go(self) -> Steps:
        """Yield the effects of a unit of work, until it is DONE; again after `push` gave it another one."""
        while True:
            self._move("STARTED")
            try:
                yield from self._unit()
            except Ended as end:
                self.stop, self.detail = end.reason, end.detail
            except LLM_HarnessError as exceeded:
                self.stop, self.detail = str(getattr(exceeded, "limit", "harness")), str(exceeded)
            self._move("DONE")
            self._tell(events.JobStopped(self._now(), self.job, self.stop or "", self.detail))
            yield from self._commit(CommitPoint.ENDED)
            if not self.inbox:
                return
            self._reactivate()

    def push(self, message: str) -> bool:
        """Give the run another user message, read at the next safe moment; return whether `go` is to be called again.

        That is so when the run was DONE: it is taken up again.
        """
        self._tell(events.UserMessage(self._now(), self.job, message))
        self.inbox.append(message)
        if self.status != "DONE":
            return False
        self._reactivate()
        return True

    @property
    def offered(self) -> tuple[str, ...]:
        """The names of the tools that were offered last."""
        return () if self._offer is None else self._offer.names

    def _reactivate(self) -> None:
        self._tell(events.Reactivated(self._now(), self.job, "message", self.completions))
        self.stop = self.detail = self.answer = None
        self.iteration = 0
        self.nudges.in_a_row = 0

    def _unit(self) -> Steps:
        if self.steps == 0:
            self.conversation.add({"role": "user", "content": self._guard_input(self._message)})
        yield from self._commit(CommitPoint.BEGAN)
        while self.status != "DONE":
            yield from self._iterate()

    def _move(self, status: str) -> None:
        self._tell(events.StatusChanged(self._now(), self.job, self.status, status))
        self.status = status

    # -- one iteration -----------------------------------------------------------------------------------------

    def _iterate(self) -> Steps:
        if self.iteration >= self.spec.max_iterations:
            raise Ended(
                "max_iterations", f"Agent did not complete within {self.spec.max_iterations} iterations"
            )
        self.around.harness.check_before_step(self)
        self.iteration += 1
        self.steps += 1
        self._tell(events.StepStarted(self._now(), self.job, self.steps))
        self._read_inbox()
        offer = self._offered()
        self._compact(offer)
        self._hold_budget(offer)
        reply = yield from self._ask(offer)
        self.around.harness.check_after_step(self)
        yield from self._commit(CommitPoint.REPLIED)
        yield from self._take(reply, offer)

    def _read_inbox(self) -> None:
        for message in self.inbox:
            self.conversation.add({"role": "user", "content": self._guard_input(message)})
        self.inbox.clear()

    def _offered(self) -> Offer:
        offer = self.spec.offer()
        if self._hidden:
            offer = offer.without(self._hidden)
        before = self._offer
        if before is None or before.names != offer.names:
            sent = self.spec.variant.sends_tools
            turn = self.counters.asked + 1
            self._tell(events.ToolsOffered(self._now(), self.job, turn, offer.names, sent))
        self._offer = offer
        self.conversation.offer(offer if self.spec.variant.sends_tools else None)
        return offer

    def _compact(self, offer: Offer) -> None:
        compactor = self.around.parts.compactor
        if compactor is None:
            return
        before = self.conversation.prompt_tokens
        told = compactor(self.conversation.messages, tokens=before)
        if told is None:
            return
        count = len(self.conversation.messages)
        self.conversation.replace(told.messages)
        after = self.conversation
        self._tell(
            events.Compacted(
                self._now(), self.job, told.strategy, count, len(after.messages), before, after.prompt_tokens
            )
        )

    def _hold_budget(self, offer: Offer) -> None:
        if not self.budget.unlimited:
            over = self.budget.before_request(self.conversation.prompt_tokens, at=self._now())
            if over is not None:
                raise Ended(over.name.value, str(over))
        if self.around.parts.guards:
            reason = self._guard(GuardPoint.BUDGET, str(self.budget.tokens), None)[1]
            if reason is not None:
                raise Ended("blocked", reason)

    # -- asking ------------------------------------------------------------------------------------------------

    def _ask(self, offer: Offer) -> Generator[Effect, Answer, ModelReply]:
        self.counters.asked += 1
        request = self.conversation.request(self.job, turn=self.counters.asked, attempt=1, at=self._now())
        kept = self.conversation.kept
        while True:
            messages = request.messages
            self._tell(
                events.LLMRequested(
                    request.at,
                    self.job,
                    request.turn,
                    request.attempt,
                    request.model,
                    request.bytes_sent,
                    kept,
                    tuple(messages[kept:]),
                )
            )
            answer = yield AskModel(request)
            if isinstance(answer, RawReply):
                return self._metered(request, answer)
            if not isinstance(answer, ProviderFailure):
                raise TypeError(
                    f"a driver answered AskModel with {answer!r}, expected a RawReply or a failure"
                )
            delay = retry_delay(answer, request.attempt) if self.spec.variant.retries_provider else None
            self._tell(
                events.RequestFailed(self._now(), self.job, request.turn, request.attempt, str(answer), delay)
            )
            if delay is None:
                said = f"{type(answer).__name__}: {answer}"
                raise Ended("crash", said.removesuffix(": "))
            yield LetTimePass(delay)
            kept = len(messages)
            request = self.conversation.request(
                self.job, turn=self.counters.asked, attempt=request.attempt + 1, at=self._now()
            )

    def _metered(self, request: ChatRequest, raw: RawReply) -> ModelReply:
        reply = read_model_reply(raw.body, request.wire)
        if reply.unreadable is not None:
            raise Ended("crash", f"the provider's answer cannot be read: {reply.unreadable}")
        usage = self.conversation.metered(request, raw, reply)
        self.counters.replied(usage)
        prompt = usage.reported_prompt if usage.reported_prompt is not None else usage.measured_prompt
        told = usage.reported_completion
        completion = told if told is not None else usage.measured_completion
        over = self.budget.replied(prompt, completion)
        self._tell(
            events.LLMReplied(
                self._now(),
                self.job,
                request.turn,
                usage.bytes_received,
                usage.measured_prompt,
                usage.measured_completion,
                usage.reported_prompt,
                usage.reported_completion,
                reply.text,
                tuple([f"{call.name}({call.arguments})" for call in reply.calls]),
            )
        )
        if over and not self.budget.unlimited:
            self._tell(
                events.HarnessSpoke(
                    self._now(), self.job, "budget", "overshoot", f"{over} tokens more than were reserved"
                )
            )
        return reply

    # -- taking a reply ----------------------------------------------------------------------------------------

    def _take(self, reply: ModelReply, offer: Offer) -> Steps:
        variant = self.spec.variant
        if reply.truncated and variant.nudge_names == "enum":
            self._fail_reply(reply, reply.calls, Failure.TRUNCATED, {})
            return
        calls, text = reply.calls, reply.text
        reader = self.around.parts.reader
        if not calls and text and reader is not None:
            reading = reader(text, offer.schemas)
            self._tell(
                events.ReplyRead(
                    self._now(),
                    self.job,
                    self.counters.asked,
                    text,
                    tuple(reading.stages),
                    tuple([shown(call) for call in reading.calls]),
                    reading.refused,
                )
            )
            if reading.refused is not None:
                self._fail_reply(reply, (), Failure.REFUSED, {"reason": reading.refused})
                return
            if reading.calls:
                calls, text = reading.calls, reading.text
        if not calls:
            self._take_text(reply, offer)
            return
        if variant.calls_of_reply == "first":
            calls = calls[:1]
        yield from self._take_calls(reply, text, numbered(calls), offer)

    def _take_text(self, reply: ModelReply, offer: Offer) -> None:
        variant = self.spec.variant
        if variant.final_answer == "terminal_tool":
            self._fail_reply(reply, (), Failure.NO_CALL, {"offered": ", ".join(offer.names) or "none"})
            return
        if not reply.text.strip() and variant.nudge_names == "enum":
            self._fail_reply(reply, (), Failure.EMPTY, {})
            return
        open_ = self.enforcer.final()
        if open_ is not None:
            self._fail_reply(reply, (), open_.failure, open_.details)
            return
        text, blocked = self._guard(GuardPoint.OUTPUT, reply.text, None)
        if blocked is not None:
            self._fail_reply(reply, (), Failure.REFUSED, {"reason": blocked})
            return
        self.conversation.said(reply, (), reply.text)
        self._finish(text)

    def _finish(self, answer: str) -> None:
        self.counters.turn_ended(failed=False)
        self.completions = (self.completions or 0) + 1
        self.answer = answer
        raise Ended("final")

    # -- calls -------------------------------------------------------------------------------------------------

    def _take_calls(self, reply: ModelReply, text: str, calls: Sequence[WrittenCall], offer: Offer) -> Steps:
        results: list[str | None] = [None] * len(calls)
        ready: list[tuple[int, ToolCall]] = []
        refusals: list[Refusal] = []
        for at, call in enumerate(calls):
            found = resolved(call, offer, self.spec.registry, self.spec.variant)
            if isinstance(found, Refusal):
                results[at] = self._refuse(call.name, call.arguments, found)
                refusals.append(found)
            else:
                ready.append((at, found[0]))
                if found[1]:
                    self._tell(
                        events.HarnessSpoke(
                            self._now(), self.job, "arguments", "coerced", ", ".join(found[1])
                        )
                    )
        whole = self.spec.variant.batch == "whole"
        if whole and not refusals:
            for at, checked in ready:
                refusal = self._check_step(checked)
                if refusal is not None:
                    results[at] = self._refuse(checked.name, calls[at].arguments, refusal)
                    refusals.append(refusal)
        if whole and refusals:
            self._answer_calls(reply, text, calls, [said or NOT_RUN for said in results])
            self._fail(refusals[0].failure, refusals[0].details)
            return
        yield from self._execute(reply, text, calls, ready, results, refusals)

    def _execute(
        self,
        reply: ModelReply,
        text: str,
        calls: Sequence[WrittenCall],
        ready: list[tuple[int, ToolCall]],
        results: list[str | None],
        refusals: list[Refusal],
    ) -> Steps:
        """Execute the calls that may be, in waves: a step that waits for another one waits for its result."""
        failed, progress, terminal = 0, False, None
        done: list[tuple[ToolCall, ToolOutcome]] = []
        while ready:
            wave, ready = self._next_wave(ready, calls, results, refusals)
            outcomes = yield from self._call(wave)
            for (at, call), outcome in zip(wave, outcomes, strict=True):
                results[at] = self._guarded_result(call, outcome)
                done.append((call, outcome))
                failed += outcome.failed
                progress |= self._is_news(call, outcome)
                if not outcome.failed and self.enforcer.is_terminal(call.name):
                    terminal = outcome.text
        if refusals and not self.spec.variant.keeps_bad_output:
            self._fail(refusals[0].failure, refusals[0].details)
            return
        self._answer_calls(reply, text, calls, [said or "" for said in results])
        self.counters.batch(failed=failed)
        if refusals:
            if progress:
                self.nudges.went_well(progress=True)
            self._fail(refusals[0].failure, refusals[0].details)
        else:
            self.counters.turn_ended(failed=failed > 0)
            self.nudges.went_well(progress=progress)
        if terminal is not None and self.spec.variant.final_answer == "terminal_tool":
            self._finish(terminal)
        self._bound_tool_errors()
        self._watch(reply.text, done)
        yield from self._commit(CommitPoint.TOOLS_RETURNED)

    def _next_wave(
        self,
        ready: list[tuple[int, ToolCall]],
        calls: Sequence[WrittenCall],
        results: list[str | None],
        refusals: list[Refusal],
    ) -> tuple[list[tuple[int, ToolCall]], list[tuple[int, ToolCall]]]:
        """Return the calls that may run now, reserved, and those that have to wait for them."""
        wave: list[tuple[int, ToolCall]] = []
        for position, (at, call) in enumerate(ready):
            refusal = self._check_step(call) if self.enforcer.active else None
            if refusal is not None and wave:
                return wave, ready[position:]
            if refusal is not None:
                results[at] = self._refuse(call.name, calls[at].arguments, refusal)
                refusals.append(refusal)
            elif (reason := self._not_admitted(call, calls[at])) is not None:
                results[at] = reason
            else:
                self._reserve(call)
                wave.append((at, call))
        return wave, []

    def _check_step(self, call: ToolCall) -> Refusal | None:
        found = self.enforcer.check(call.name, iteration=self.iteration - 1)
        if found is None:
            return None
        said = nudge_text(found.failure, found.details, self.spec.variant).removeprefix(PREFIX)
        return Refusal(found.failure, f"Error: {said}", found.details)

    def _not_admitted(self, call: ToolCall, written: WrittenCall) -> str | None:
        """Return why a gate, a guard or the budget keeps a call from being executed."""
        reason: str | None = None
        if self.budget.calls_left(1) == 0:
            reason = "the budget of steps is used up"
        for gate in self.around.parts.gates if reason is None else ():
            reason = gate.admit(call, at=self._now())
            if reason is not None:
                break
        if reason is None and self.around.parts.guards:
            reason = self._guard(GuardPoint.CALL, f"{call.name}({dict(call.arguments)!r})", call.name)[1]
        if reason is None:
            return None
        refusal = Refusal(Failure.REFUSED, f"Error: {reason}", {"reason": reason})
        self.counters.exceptions += 1
        return self._refuse(call.name, written.arguments, refusal)

    def _refuse(self, name: str, arguments: str, refusal: Refusal) -> str:
        failure, reason = refusal.failure.value, refusal.reason
        self.refused.append({"name": name, "failure": failure, "reason": reason})
        self._tell(events.CallRefused(self._now(), self.job, name, arguments, failure, reason))
        return reason

    def _call(self, wave: Sequence[tuple[int, ToolCall]]) -> Generator[Effect, Answer, Sequence[ToolOutcome]]:
        if not wave:
            return ()
        invocations: list[Invocation] = []
        records: list[dict[str, str | None]] = []
        for _, call in wave:
            tool = self.spec.registry.get(call.name)
            if tool is None:
                raise LookupError(f"tool {call.name!r} was checked and is not registered any more")
            timeout = tool.timeout if tool.timeout is not None else self.spec.variant.tool_timeout
            invocations.append(Invocation(call, tool.run, timeout))
            arguments = ", ".join([f"{key}={value!r}" for key, value in call.arguments.items()])
            record: dict[str, str | None] = {"name": call.name, "arguments": arguments, "via": "call"}
            records.append(record)
            self.calls.append(record)
            self._tell(events.ToolCalled(self._now(), self.job, call.name, arguments, "call"))

        def done(position: int, outcome: ToolOutcome) -> None:
            self._ended(wave[position][1], outcome, records[position])

        answer = yield CallTools(invocations, done)
        assert isinstance(answer, Sequence), "a driver answers CallTools with outcomes"
        outcomes = [outcome for outcome in answer if isinstance(outcome, ToolOutcome)]
        for (_, call), outcome in zip(wave, outcomes, strict=True):
            if outcome.failed and self.spec.variant.tool_error == "ends_run":
                raise Ended("crash", f"tool {call.name!r}: {outcome.text}")
        return outcomes

    def _ended(self, call: ToolCall, outcome: ToolOutcome, record: dict[str, str | None]) -> None:
        """Note how a call ended, at the moment it did."""
        failed = outcome.failed
        record["error" if failed else "result"] = outcome.text
        self._tell(
            events.ToolReturned(
                self._now(),
                self.job,
                call.name,
                None if failed else outcome.text,
                outcome.text if failed else None,
            )
        )
        for gate in self.around.parts.gates:
            gate.ended(call, outcome, at=self._now())
        if not self.enforcer.active:
            return
        moved = self.enforcer.roll_back(call.name) if failed else self.enforcer.commit(call.name)
        if moved:
            self._step_moved(call.name, "rolled back" if failed else "committed")

    def _reserve(self, call: ToolCall) -> None:
        if not self.enforcer.active:
            return
        before = self.enforcer.done
        self.enforcer.reserve(call.name)
        if self.enforcer.done != before:
            self._step_moved(call.name, "done as proposed")

    def _step_moved(self, tool: str, change: str) -> None:
        self._tell(events.StepMoved(self._now(), self.job, tool, change, self.enforcer.open))

    def _is_news(self, call: ToolCall, outcome: ToolOutcome) -> bool:
        """Return whether a tool returned something that it had not returned for these arguments before."""
        if outcome.failed:
            return False
        signature = (call.name, repr(sorted(call.arguments.items())), outcome.text)
        news = signature not in self._seen
        self._seen.add(signature)
        return news

    def _guarded_result(self, call: ToolCall, outcome: ToolOutcome) -> str:
        said = outcome.text if not outcome.failed else f"Error: {outcome.text}"
        if not self.around.parts.guards:
            return said
        text, blocked = self._guard(GuardPoint.RESULT, said, call.name)
        return text if blocked is None else f"Error: the result is withheld: {blocked}"

    def _answer_calls(
        self, reply: ModelReply, text: str, calls: Sequence[WrittenCall], results: Sequence[str]
    ) -> None:
        """Append the reply with its calls, and a result for each: a provider refuses a history without."""
        self.conversation.said(reply, calls, text)
        for call, result in zip(calls, results, strict=True):
            self.conversation.add({"role": "tool", "content": result, "tool_call_id": call.id})

    def _bound_tool_errors(self) -> None:
        bound = self.spec.variant.tool_errors_in_a_row
        if bound is not None and self.counters.failed_batches > bound:
            raise Ended(
                "tool_errors", f"{self.counters.failed_batches} batches in a row had a tool that failed"
            )

    def _watch(self, text: str, done: Sequence[tuple[ToolCall, ToolOutcome]]) -> None:
        for watcher in self.around.parts.watchers:
            facts = TurnFacts(turn=self.counters.asked, at=self._now(), text=text, calls=done)
            advice = watcher(facts)
            if advice is not None:
                self._follow(advice)

    def _follow(self, advice: Advice) -> None:
        """Do what a watcher says (002 §6.2: a detection triggers a change of strategy)."""
        self._tell(events.HarnessSpoke(self._now(), self.job, "protection", advice.kind, advice.reason))
        match advice.kind:
            case "stop":
                raise Ended("stuck", advice.reason)
            case "fewer_tools":
                self._hidden |= frozenset(advice.tools)
                self.conversation.add({"role": ROLE, "content": PREFIX + advice.reason})
            case "nudge":
                self._nudge(Failure.STUCK, {"reason": advice.reason})

    # -- failures ----------------------------------------------------------------------------------------------

    def _fail_reply(
        self,
        reply: ModelReply,
        calls: Sequence[WrittenCall],
        failure: Failure,
        details: Mapping[str, object],
    ) -> None:
        """Keep a reply of which nothing is executed, and nudge."""
        if self.spec.variant.keeps_bad_output:
            written = numbered(calls)
            self._answer_calls(reply, reply.text, written, ["Error: not executed."] * len(written))
        self._fail(failure, details)

    def _fail(self, failure: Failure, details: Mapping[str, object]) -> None:
        """Count a reply that could not be used, and nudge."""
        self.counters.exceptions += 1
        self.counters.turn_ended(failed=True)
        self._nudge(failure, details)

    def _nudge(self, failure: Failure, told: Mapping[str, object]) -> None:
        number = self.nudges.take(failure)
        if number is None:
            limit = self.spec.nudges
            shown_details = ", ".join(f"{key}={value}" for key, value in told.items())
            raise Ended(
                "max_nudges",
                f"Agent failed after {limit} retries. Last failure: {failure.value} — {shown_details or 'no details'}",
            )
        try:
            text = nudge_text(failure, told, self.spec.variant)
        except (KeyError, IndexError) as error:
            raise Ended("crash", f"{type(error).__name__}: {error}") from error
        self.nudged.append(failure)
        self._tell(events.Nudged(self._now(), self.job, failure.value, number, self.spec.nudges, text))
        self.conversation.add({"role": ROLE, "content": text})

    # -- guards and commits ------------------------------------------------------------------------------------

    def _guard_input(self, text: str) -> str:
        told, blocked = self._guard(GuardPoint.INPUT, text, None)
        if blocked is not None:
            raise Ended("blocked", blocked)
        return told

    def _guard(self, point: GuardPoint, text: str, tool: str | None) -> tuple[str, str | None]:
        """Return the text as the guards leave it, and why it is blocked (None: it is not)."""
        for guard in self.around.parts.guards:
            verdict = guard(point, text, tool=tool)
            if verdict.action == "pass":
                continue
            detail = verdict.reason or (verdict.text or "")
            self._tell(
                events.HarnessSpoke(self._now(), self.job, f"{point.value} guard", verdict.action, detail)
            )
            if verdict.action == "block":
                return text, verdict.reason
            if verdict.action == "modify" and verdict.text is not None:
                text = verdict.text
        return text, None

    def _commit(self, point: CommitPoint) -> Steps:
        if not self.around.parts.commits:
            return
        snapshot = Snapshot(
            job=self.job,
            point=point,
            iteration=self.iteration,
            messages=self.conversation.messages,
            steps_done=self.enforcer.done,
            nudges=self.nudges.in_all,
            tokens=self.budget.tokens,
            seconds=self._now(),
        )
        yield Commit(snapshot)
        self._tell(
            events.Committed(self._now(), self.job, point.value, self.iteration, len(snapshot.messages))
        )

    def _now(self) -> float:
        return self.around.clock.now()

    def _tell(self, event: events.Event) -> None:
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
