"""Executes the calls in a reply: decides which of them run and when, and what the model is shown for each."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.agent.approvals import Suspended, ask_people, filled, outcome_of_asking, wait_for, why_not
from statek_sim.agent.effects import (
    CHECK,
    Answer,
    Ask,
    CallGate,
    CallTools,
    CommitPoint,
    Effect,
    GuardPoint,
    Invocation,
    PersonSaid,
    ToolCall,
    ToolFunction,
    ToolOutcome,
    WrittenCall,
)
from statek_sim.agent.guard_points import call_withdrawn, guarded
from statek_sim.agent.replies.calls import Refusal, answer_calls, fail, resolved, watch
from statek_sim.agent.replies.model_reply import ModelReply
from statek_sim.agent.replies.nudges import PREFIX, Failure, nudge_text
from statek_sim.agent.run_state import (
    NoSteps,
    RunState,
    Steps,
    call_values,
    outcome_from,
    outcome_values,
    saved_reply,
    written_values,
)
from statek_sim.agent.tools.registry import Offer
from statek_sim.agent.tools.tool import Tool, code_of

_NO_STEPS: Final = "the step budget is used up"

WITHHELD: Final = "Error: the result is withheld: "
"""The start of the text that replaces a result blocked by a guard, followed by the reason."""


def _take_back(call: ToolCall, gates: Iterable[CallGate], *, at: float) -> None:
    """Notify the gates that admitted a call: the call will not be made."""
    for gate in gates:
        gate.withdrawn(call, at=at)


class Batch:
    """The calls in a reply during their execution; `text` is the rest of the reply."""

    __slots__ = (
        "asks",
        "calls",
        "done",
        "failed",
        "first_record",
        "offer",
        "open_before",
        "outcomes",
        "progress",
        "ready",
        "refusals",
        "reply",
        "results",
        "run",
        "text",
        "wave",
    )

    def __init__(
        self, run: RunState, reply: ModelReply, text: str, calls: Sequence[WrittenCall], offer: Offer
    ) -> None:
        self.run = run
        self.reply = reply
        self.text = text
        self.calls = calls
        self.offer = offer
        self.results: list[str | None] = [None] * len(calls)
        self.ready: list[tuple[int, ToolCall]] = []
        self.refusals: list[Refusal] = []
        self.asks: list[tuple[int, Ask]] = []
        self.wave: list[tuple[int, ToolCall]] = []
        self.outcomes: list[ToolOutcome | None] = []
        self.first_record = 0
        self.done: list[tuple[ToolCall, ToolOutcome]] = []
        self.failed = 0
        self.progress = False
        self.open_before = len(run.enforcer.open)
        run.batch = self

    def go(self) -> Steps:
        """Execute the calls, yielding effects, then append them and their results to the log."""
        run = self.run
        for at, call in enumerate(self.calls):
            found = resolved(call, self.offer, run.spec.registry)
            if isinstance(found, Refusal):
                self._refuse(at, found)
                continue
            self.ready.append((at, found[0]))
            if found[1]:
                coerced = ", ".join(found[1])
                run.tell(events.HarnessSpoke(run.now(), run.job, "arguments", "coerced", coerced))
        return self.execute()

    def execute(self) -> Steps:
        """Execute the allowed calls in waves, so that a step that depends on another waits for its result."""
        while self.ready:
            self.wave = yield from self._next_wave()
            self.outcomes = [None] * len(self.wave)
            if self.asks:
                yield from self.allow()
            if self.wave:
                yield from self.call()
                yield from self.settle()
        yield from self._conclude()

    def settle(self) -> Steps:
        """Record the outcomes of the current wave's calls, and clear the wave."""
        run = self.run
        for (at, call), outcome in zip(self.wave, self.outcomes, strict=True):
            assert outcome is not None, "every call in a wave has ended"
            failed = outcome.failed
            result_text = outcome.text if not failed else f"Error: {outcome.text}"
            if run.deps.parts.guards:
                result_text = yield from self._guarded_result(call, outcome, result_text)
            self.results[at] = result_text
            self.done.append((call, outcome))
            if failed:
                self.failed += 1
                continue
            self.progress |= self._is_news(call, outcome)
        self.wave, self.outcomes = [], []

    def _conclude(self) -> Steps:
        run = self.run
        answer_calls(
            run, self.reply, self.text, self.calls, [result_text or "" for result_text in self.results]
        )
        run.counters.batch(failed=self.failed)
        if self.progress or not self.refusals:
            run.nudges.went_well(progress=self.progress)
        if self.refusals:
            fail(run, self.refusals[0].failure, self.refusals[0].details)
        else:
            run.counters.turn_ended(failed=self.failed > 0)
        if run.deps.parts.watchers:
            watch(run, self.reply.text, self.done, progress=len(run.enforcer.open) < self.open_before)
        if run.deps.parts.commits:
            yield from run.commit(CommitPoint.TOOLS_RETURNED)

    def pending(self, stage: str) -> dict[str, object]:
        """Return the batch's current state, as values that a checkpoint can store."""
        return {
            "stage": stage,
            "reply": saved_reply(self.reply),
            "text": self.text,
            "calls": [written_values(call) for call in self.calls],
            "results": list(self.results),
            "ready": [(at, call_values(call)) for at, call in self.ready],
            "refusals": [
                (refusal.failure.value, refusal.reason, dict(refusal.details)) for refusal in self.refusals
            ],
            "asks": [(at, ask.text, ask.seconds) for at, ask in self.asks],
            "wave": [(at, call_values(call)) for at, call in self.wave],
            "outcomes": [None if result is None else outcome_values(result) for result in self.outcomes],
            "first_record": self.first_record,
            "done": [(call_values(call), outcome_values(outcome)) for call, outcome in self.done],
            "failed": self.failed,
            "progress": self.progress,
            "open_before": self.open_before,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Load the values returned by `pending` into a new batch."""
        self.results = list(saved["results"])
        self.ready = [(at, ToolCall(*call)) for at, call in saved["ready"]]
        self.refusals = [
            Refusal(Failure(name), reason, details) for name, reason, details in saved["refusals"]
        ]
        self.asks = [(at, Ask(text=text, seconds=seconds)) for at, text, seconds in saved["asks"]]
        self.wave = [(at, ToolCall(*call)) for at, call in saved["wave"]]
        self.outcomes = [None if result is None else outcome_from(*result) for result in saved["outcomes"]]
        self.first_record = saved["first_record"]
        self.done = [(ToolCall(*call), outcome_from(*outcome)) for call, outcome in saved["done"]]
        self.failed, self.progress = saved["failed"], saved["progress"]
        # Older versions did not store this.
        self.open_before = saved.get("open_before", self.open_before)

    def _next_wave(self) -> Generator[Effect, Answer, list[tuple[int, ToolCall]]]:
        """Return the calls that can run now, and reserve them; calls that depend on them wait for the next wave."""
        wave = self.wave = []
        ready, self.ready = self.ready, []
        self.asks = []
        guards = self.run.deps.parts.guards
        for position, (at, call) in enumerate(ready):
            refusal = self._check_step(call) if self.run.enforcer.active else None
            if refusal is not None and wave:
                self.ready = ready[position:]
                break
            if refusal is not None:
                self._refuse(at, refusal)
                continue
            admission = (yield from self._admitted(at, call)) if guards else self._let_in(at, call, ())
            if isinstance(admission, str):
                self._keep_out(at, admission)
            else:
                wave.append((at, admission))
        return wave

    def _keep_out(self, at: int, reason: str) -> None:
        """Record a call rejected by a gate, a guard or a person."""
        self.run.counters.exceptions += 1
        self._note(at, Refusal(Failure.REFUSED, f"Error: {reason}", {"reason": reason}))

    def allow(self, suspended: Suspended | None = None) -> Steps:
        """Ask a person all of the gates' questions together; rejected calls are removed from the wave."""
        asks = self.asks
        calls = dict(self.wave)
        if suspended is None:
            # Every question here asks for approval, whether its text says so or not: a "no" must prevent the call.
            about = [(calls[at].name, replace(ask, confirms=True)) for at, ask in asks]
            answers = yield from ask_people(self.run, about, partial(self.pending, "allowing"))
        else:
            answers = yield from wait_for(self.run, suspended)
        for (at, ask), answer in zip(asks, answers, strict=True):
            if answer.kind != "answered" and at in calls:
                call = calls.pop(at)
                self._withdraw(call)
                self._keep_out(at, why_not(answer, ask))
        self.asks = []
        self.wave = list(calls.items())
        self.outcomes = [None] * len(self.wave)

    def dropped(self) -> None:
        """Withdraw admitted calls from their gates, because the run was cancelled or part of it failed."""
        # While a guard checks a later call in the wave, the outcomes have no positions yet.
        at_ends = self.outcomes or [None] * len(self.wave)
        for (_, call), outcome in zip(self.wave, at_ends, strict=True):
            if outcome is None:
                _take_back(call, self.run.deps.parts.gates, at=self.run.now())
        self.wave, self.outcomes = [], []

    def _withdraw(self, call: ToolCall) -> None:
        run = self.run
        run.budget.not_called()
        _take_back(call, run.deps.parts.gates, at=run.now())
        call_withdrawn(run, call.name, call.arguments)
        if run.enforcer.active and run.enforcer.roll_back(call.name):
            self._step_moved(call.name, "rolled back")

    def _refuse(self, at: int, refusal: Refusal) -> None:
        """Record a rejected call for the model to correct."""
        self._note(at, refusal)
        self.refusals.append(refusal)

    def _note(self, at: int, refusal: Refusal) -> None:
        run, call = self.run, self.calls[at]
        failure, reason = refusal.failure.value, refusal.reason
        self.results[at] = reason
        run.refused.append({"name": call.name, "failure": failure, "reason": reason})
        run.tell(events.CallRefused(run.now(), run.job, call.name, call.arguments, failure, reason))

    def _check_step(self, call: ToolCall) -> Refusal | None:
        found = self.run.enforcer.check(call.name)
        if found is None:
            return None
        correction = nudge_text(found.failure, found.details).removeprefix(PREFIX)
        return Refusal(found.failure, f"Error: {correction}", found.details)

    def _admitted(self, at: int, call: ToolCall) -> Generator[Effect, Answer, ToolCall | str]:
        """Count the call as a step and return it, or return why the budget, a gate or a guard rejects it."""
        if not self.run.budget.allows_call:
            # No guard has counted the call, so no guard needs to undo its count.
            return _NO_STEPS
        asks: list[Ask] = []
        ruling = yield from self._guarded_call(call, asks)
        # A guard that asks a model may have used the last step.
        return ruling if isinstance(ruling, str) else self._let_in(at, ruling, asks)

    def _let_in(self, at: int, call: ToolCall, asks: Sequence[Ask]) -> ToolCall | str:
        """Count the call as a step and return it, or return why the budget or a gate rejects it.

        Gates' and guards' questions for a person (`asks`) are collected until all calls are checked.
        """
        run = self.run
        gates = run.deps.parts.gates
        reason = None if run.budget.allows_call else _NO_STEPS
        if reason is None and not gates and not asks:
            run.budget.called()
            return call
        own_asks: list[Ask] = []
        if reason is None:
            reason = self._gates_admit(call, gates, own_asks)
        if reason is not None:
            call_withdrawn(run, call.name, call.arguments)
            return reason
        run.budget.called()
        self.asks += [(at, ask) for ask in (*own_asks, *asks)]
        return call

    def _gates_admit(self, call: ToolCall, gates: Sequence[CallGate], asks: list[Ask]) -> str | None:
        """Return why a gate rejects a call, or None if all gates admit it; collect the gates' questions.

        If a later gate rejects the call or raises an error (which ends the run), the gates that admitted it are
        notified.
        """
        now = self.run.now()
        admitted: list[CallGate] = []
        kept_out: str | None = None
        try:
            for gate in gates:
                answer = gate.admit(call, at=now)
                if isinstance(answer, str):
                    kept_out = answer
                    break
                admitted.append(gate)
                if answer is not None:
                    asks.append(answer)
        except BaseException:
            _take_back(call, admitted, at=now)
            raise
        if kept_out is not None:
            _take_back(call, admitted, at=now)
        return kept_out

    def _guarded_call(self, call: ToolCall, asks: list[Ask]) -> Generator[Effect, Answer, ToolCall | str]:
        """Return the call with its arguments as modified by the guards, or why a guard blocks it."""
        run = self.run
        written = json.dumps(dict(call.arguments), ensure_ascii=False)
        ruling = yield from guarded(run, GuardPoint.CALL, written, tool=call.name, arguments=call.arguments)
        if ruling.blocked is not None:
            return ruling.blocked
        if ruling.text != written:
            changed = WrittenCall(call.id, call.name, ruling.text)
            found = resolved(changed, self.offer, run.spec.registry)
            if isinstance(found, Refusal):
                call_withdrawn(run, call.name, call.arguments)
                return (
                    f"the arguments as changed by a guard do not fit: {found.reason.removeprefix('Error: ')}"
                )
            call = found[0]
        asks += ruling.asks
        return call

    def call(self) -> Steps:
        """Run a wave's tools together, then ask a person the questions that tools have."""
        self.first_record = len(self.run.calls)
        running = [at for at, (_, call) in enumerate(self.wave) if self.tool(call).asks is None]
        if running and self.run.deps.parts.commits:
            yield from self.commit_calls()
        for _, call in self.wave:
            self.begun(call)
        if running:
            yield self.invocations(running)
        if len(running) < len(self.wave):
            yield from self.ask_for_tools()

    def commit_calls(self) -> Steps | NoSteps:
        """Commit which calls are about to be made, so that a resumed run does not repeat them."""
        return self.run.commit(CommitPoint.CALLING, pending=lambda: self.pending("calling"))

    def invocations(self, running: Sequence[int]) -> CallTools:
        """Return the effect that runs these calls in the wave together."""
        invocations = [self.invocation(at) for at in running]
        return CallTools(invocations, lambda position, outcome: self.ended_at(running[position], outcome))

    def invocation(self, at: int, check: ToolFunction | None = None) -> Invocation:
        """Return the invocation for a call in the wave. If given, `check` replaces the tool and leaves no receipt."""
        call = self.wave[at][1]
        tool = self.tool(call)
        limit = self.run.spec.tool_timeout if tool.timeout is None else tool.timeout
        key = self.key(at)
        code = code_of(tool.run)
        if check is not None:
            checked = replace(code_of(check), conversions=code.conversions)
            return Invocation(call, checked, limit, f"{CHECK}{key}")
        return Invocation(call, code, limit, key)

    def key(self, at: int) -> str:
        """Return the key that identifies a call in the wave within its run."""
        return f"{self.run.counters.asked}.{self.wave[at][0] + 1}"

    def ended_at(self, at: int, outcome: ToolOutcome, when: float | None = None) -> None:
        """Record how a call in the wave ended.

        `when` is the time in seconds if the call ended before a crash; its end is then already in the trace.
        """
        self.outcomes[at] = outcome
        call, run = self.wave[at][1], self.run
        failed = outcome.failed
        run.calls[self.first_record + at]["error" if failed else "result"] = outcome.text
        if when is None:
            result, error = (None, outcome.text) if failed else (outcome.text, None)
            run.tell(events.ToolReturned(run.now(), run.job, call.name, result, error, call.id))
        for gate in run.deps.parts.gates:
            gate.ended(call, outcome, at=run.now() if when is None else when)
        if not run.enforcer.active:
            return
        moved = run.enforcer.roll_back(call.name) if failed else run.enforcer.commit(call.name)
        if moved:
            self._step_moved(call.name, "rolled back" if failed else "committed")

    def ask_for_tools(self, suspended: Suspended | None = None) -> Steps:
        """Ask a person the tools' questions, recording the answers as results."""
        asking = [
            (at, filled(ask, call))
            for at, (_, call) in enumerate(self.wave)
            if self.outcomes[at] is None and (ask := self.tool(call).asks) is not None
        ]
        if not asking:
            return

        def take_answer(position: int, answer: PersonSaid) -> None:
            at, ask = asking[position]
            self.ended_at(at, outcome_of_asking(answer, ask))

        if suspended is not None:
            yield from wait_for(self.run, suspended, take_answer)
            return
        about = [(self.wave[at][1].name, ask) for at, ask in asking]
        yield from ask_people(self.run, about, partial(self.pending, "asking"), take_answer)

    def tool(self, call: ToolCall) -> Tool:
        """Return an allowed call's tool."""
        # A tool list that changes between the offer and the call does not remove the tool.
        tool = self.offer.tools.get(call.name) or self.run.spec.registry.get(call.name)
        if tool is None:
            raise LookupError(f"tool {call.name!r} was checked but is no longer registered")
        return tool

    def begun(self, call: ToolCall, *, before: bool = False) -> None:
        """Record that a call is made. If `before` is set, it was made before a crash and is already in the trace."""
        arguments = ", ".join([f"{key}={value!r}" for key, value in call.arguments.items()])
        self.run.calls.append({"name": call.name, "arguments": arguments, "via": "call"})
        if not before:
            self.run.tell(
                events.ToolCalled(self.run.now(), self.run.job, call.name, arguments, "call", call.id)
            )

    def _step_moved(self, tool: str, change: str) -> None:
        self.run.tell(events.StepMoved(self.run.now(), self.run.job, tool, change, self.run.enforcer.open))

    def _is_news(self, call: ToolCall, outcome: ToolOutcome) -> bool:
        """Return whether a tool's result differs from all of its earlier results for the same arguments."""
        seen = self.run.seen
        before = len(seen)
        seen.add((call.name, repr(sorted(call.arguments.items())), outcome.text))
        return len(seen) > before

    def _guarded_result(
        self, call: ToolCall, outcome: ToolOutcome, result_text: str
    ) -> Generator[Effect, Answer, str]:
        run = self.run
        ruling = yield from guarded(
            run, GuardPoint.RESULT, result_text, tool=call.name, arguments=call.arguments
        )
        if ruling.blocked is not None:
            return f"{WITHHELD}{ruling.blocked}"
        if not outcome.failed:
            run.results.append(ruling.text)
        return ruling.text
