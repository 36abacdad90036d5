"""The calls of one reply: which of them are executed, when, and what the model reads about each."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Final

from statek_sim import trace as events
from statek_sim.agent.calls import Refusal, resolved
from statek_sim.agent.correcting import answer_calls, fail, watch
from statek_sim.agent.effects import (
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
    ToolOutcome,
    WrittenCall,
)
from statek_sim.agent.ending import Ended
from statek_sim.agent.guarding import call_withdrawn, guarded
from statek_sim.agent.nudges import PREFIX, Failure, nudge_text
from statek_sim.agent.people import ask_people, filled, outcome_of_asking, why_not
from statek_sim.agent.reading import ModelReply
from statek_sim.agent.tools.registry import Offer
from statek_sim.agent.tools.tool import Tool

if TYPE_CHECKING:
    from statek_sim.agent.loop import AgentRun, Steps

NOT_RUN: Final = "Error: not executed, because another call of the same reply was refused."
"""The result of a good call in a reply that is refused whole."""


class Batch:
    """The calls of one reply while they are executed. `text` is what the reply says beside them."""

    def __init__(
        self, run: AgentRun, reply: ModelReply, text: str, calls: Sequence[WrittenCall], offer: Offer
    ) -> None:
        self._run = run
        self._reply = reply
        self._text = text
        self._calls = calls
        self._offer = offer
        self._results: list[str | None] = [None] * len(calls)
        self._ready: list[tuple[int, ToolCall]] = []
        self._refusals: list[Refusal] = []
        self._asks: list[tuple[int, Ask]] = []

    def go(self) -> Steps:
        """Resolve and execute the calls, append them with their results, and say what was wrong."""
        run = self._run
        for at, call in enumerate(self._calls):
            found = resolved(call, self._offer, run.spec.registry, run.spec.variant)
            if isinstance(found, Refusal):
                self._refuse(at, found)
                continue
            self._ready.append((at, found[0]))
            if found[1]:
                coerced = ", ".join(found[1])
                run.tell(events.HarnessSpoke(run.now(), run.job, "arguments", "coerced", coerced))
        if run.spec.variant.batch == "whole" and self._refuse_whole():
            answer_calls(
                run, self._reply, self._text, self._calls, [said or NOT_RUN for said in self._results]
            )
            fail(run, self._refusals[0].failure, self._refusals[0].details)
            return
        yield from self._execute()

    def _refuse_whole(self) -> bool:
        """Return whether one call of the reply is refused, which takes all others with it."""
        if not self._refusals:
            for at, call in self._ready:
                refusal = self._check_step(call)
                if refusal is not None:
                    self._refuse(at, refusal)
        return bool(self._refusals)

    def _execute(self) -> Steps:
        """Execute the calls that may be, in waves: a step that waits for another one waits for its result."""
        run = self._run
        failed, progress, terminal = 0, False, None
        done: list[tuple[ToolCall, ToolOutcome]] = []
        while self._ready:
            wave = yield from self._allowed((yield from self._next_wave()))
            outcomes = yield from self._call(wave)
            for (at, call), outcome in zip(wave, outcomes, strict=True):
                self._results[at] = yield from self._guarded_result(call, outcome)
                done.append((call, outcome))
                failed += outcome.failed
                progress |= self._is_news(call, outcome)
                if not outcome.failed and run.enforcer.is_terminal(call.name):
                    terminal = outcome.text
        if run.spec.variant.keeps_bad_output or not self._refusals:
            answer_calls(run, self._reply, self._text, self._calls, [said or "" for said in self._results])
        run.counters.batch(failed=failed)
        if progress or not self._refusals:
            run.nudges.went_well(progress=progress)
        if self._refusals:
            fail(run, self._refusals[0].failure, self._refusals[0].details)
        else:
            run.counters.turn_ended(failed=failed > 0)
        if terminal is not None and run.spec.variant.final_answer == "terminal_tool":
            run.finish(terminal)
        self._bound_tool_errors()
        watch(run, self._reply.text, done)
        yield from run.commit(CommitPoint.TOOLS_RETURNED)

    def _next_wave(self) -> Generator[Effect, Answer, list[tuple[int, ToolCall]]]:
        """Return the calls that may run now, reserved; those that have to wait for them stay ready."""
        wave: list[tuple[int, ToolCall]] = []
        ready, self._ready = self._ready, []
        self._asks = []
        for position, (at, call) in enumerate(ready):
            refusal = self._check_step(call) if self._run.enforcer.active else None
            if refusal is not None and wave:
                self._ready = ready[position:]
                break
            if refusal is not None:
                self._refuse(at, refusal)
                continue
            told = yield from self._admitted(at, call)
            if isinstance(told, str):
                self._keep_out(at, told)
            else:
                self._reserve(told)
                wave.append((at, told))
        return wave

    def _keep_out(self, at: int, reason: str) -> None:
        """Note a call that a gate, a guard or a person does not let through."""
        self._run.counters.exceptions += 1
        self._note(at, Refusal(Failure.REFUSED, f"Error: {reason}", {"reason": reason}))

    def _allowed(
        self, wave: list[tuple[int, ToolCall]]
    ) -> Generator[Effect, Answer, list[tuple[int, ToolCall]]]:
        """Ask a person what gates want to know, all at once; return the calls that may be made."""
        asks = self._asks
        if not asks:
            return wave
        calls = dict(wave)
        said = yield from ask_people(
            self._run, [(calls[at].name, ask) for at, ask in asks], lambda position, answer: None
        )
        for (at, ask), answer in zip(asks, said, strict=True):
            if answer.kind != "answered" and at in calls:
                call = calls.pop(at)
                self._withdraw(call)
                self._keep_out(at, why_not(answer, ask))
        return list(calls.items())

    def _withdraw(self, call: ToolCall) -> None:
        run = self._run
        run.budget.not_called()
        for gate in run.around.parts.gates:
            gate.withdrawn(call, at=run.now())
        call_withdrawn(run, call.name, call.arguments)
        if run.enforcer.active and run.enforcer.roll_back(call.name):
            self._step_moved(call.name, "rolled back")

    def _refuse(self, at: int, refusal: Refusal) -> None:
        """Note a call that is refused, and that the model has to be told so."""
        self._note(at, refusal)
        self._refusals.append(refusal)

    def _note(self, at: int, refusal: Refusal) -> None:
        run, call = self._run, self._calls[at]
        failure, reason = refusal.failure.value, refusal.reason
        self._results[at] = reason
        run.refused.append({"name": call.name, "failure": failure, "reason": reason})
        run.tell(events.CallRefused(run.now(), run.job, call.name, call.arguments, failure, reason))

    def _check_step(self, call: ToolCall) -> Refusal | None:
        found = self._run.enforcer.check(call.name, iteration=self._run.iteration - 1)
        if found is None:
            return None
        said = nudge_text(found.failure, found.details, self._run.spec.variant).removeprefix(PREFIX)
        return Refusal(found.failure, f"Error: {said}", found.details)

    def _admitted(self, at: int, call: ToolCall) -> Generator[Effect, Answer, ToolCall | str]:
        """Return why the budget, a gate or a guard keeps a call from being executed, or the call, counted as a step.

        What gates want to ask a person is kept for when all calls were looked at.
        """
        run = self._run
        if not run.budget.allows_call:
            return "the budget of steps is used up"
        reason, admitted, asks = None, list[CallGate](), list[Ask]()
        for gate in run.around.parts.gates:
            answer = gate.admit(call, at=run.now())
            if isinstance(answer, str):
                reason = answer
                break
            admitted.append(gate)
            if answer is not None:
                asks.append(answer)
        told: ToolCall | str = call if reason is None else reason
        if reason is None and run.around.parts.guards:
            told = yield from self._guarded_call(call, asks)
        if isinstance(told, str):
            for gate in admitted:
                gate.withdrawn(call, at=run.now())
            return told
        run.budget.called()
        self._asks += [(at, ask) for ask in asks]
        return told

    def _guarded_call(self, call: ToolCall, asks: list[Ask]) -> Generator[Effect, Answer, ToolCall | str]:
        """Return the call with its arguments as the guards leave them, or why they block it."""
        run = self._run
        written = json.dumps(dict(call.arguments), ensure_ascii=False)
        ruling = yield from guarded(run, GuardPoint.CALL, written, tool=call.name, arguments=call.arguments)
        if ruling.blocked is not None:
            return ruling.blocked
        if ruling.text != written:
            changed = WrittenCall(call.id, call.name, ruling.text)
            found = resolved(changed, self._offer, run.spec.registry, run.spec.variant)
            if isinstance(found, Refusal):
                call_withdrawn(run, call.name, call.arguments)
                return (
                    f"what a guard made of the arguments does not fit: {found.reason.removeprefix('Error: ')}"
                )
            call = found[0]
        asks += ruling.asks
        return call

    def _call(self, wave: Sequence[tuple[int, ToolCall]]) -> Generator[Effect, Answer, Sequence[ToolOutcome]]:
        """Run the tools of a wave at once, then ask a person what those tools want to know that ask."""
        if not wave:
            return ()
        tools = [self._tool(call) for _, call in wave]
        records = [self._begun(call) for _, call in wave]
        outcomes: list[ToolOutcome | None] = [None] * len(wave)

        def done(at: int, outcome: ToolOutcome) -> None:
            outcomes[at] = outcome
            self._ended(wave[at][1], outcome, records[at])

        running = [at for at, tool in enumerate(tools) if tool.asks is None]
        if running:
            limit = self._run.spec.variant.tool_timeout
            invocations = [
                Invocation(
                    wave[at][1], tools[at].run, limit if tools[at].timeout is None else tools[at].timeout
                )
                for at in running
            ]
            yield CallTools(invocations, lambda position, outcome: done(running[position], outcome))
        asking = [
            (at, filled(tool.asks, wave[at][1])) for at, tool in enumerate(tools) if tool.asks is not None
        ]
        if asking:

            def said(position: int, answer: PersonSaid) -> None:
                at, ask = asking[position]
                done(at, outcome_of_asking(answer, ask))

            yield from ask_people(self._run, [(wave[at][1].name, ask) for at, ask in asking], said)
        ended = [outcome for outcome in outcomes if outcome is not None]
        for (_, call), outcome in zip(wave, ended, strict=True):
            if outcome.failed and self._run.spec.variant.tool_error == "ends_run":
                raise Ended("crash", f"tool {call.name!r}: {outcome.text}")
        return ended

    def _tool(self, call: ToolCall) -> Tool:
        # A list change between the offer and the call does not take the tool from it.
        tool = self._offer.tools.get(call.name) or self._run.spec.registry.get(call.name)
        if tool is None:
            raise LookupError(f"tool {call.name!r} was checked and is not registered any more")
        return tool

    def _begun(self, call: ToolCall) -> dict[str, str | None]:
        """Note that a call is made; return its record."""
        arguments = ", ".join([f"{key}={value!r}" for key, value in call.arguments.items()])
        record: dict[str, str | None] = {"name": call.name, "arguments": arguments, "via": "call"}
        self._run.calls.append(record)
        self._run.tell(events.ToolCalled(self._run.now(), self._run.job, call.name, arguments, "call"))
        return record

    def _ended(self, call: ToolCall, outcome: ToolOutcome, record: dict[str, str | None]) -> None:
        """Note how a call ended, at the moment it did."""
        failed = outcome.failed
        record["error" if failed else "result"] = outcome.text
        self._run.tell(
            events.ToolReturned(
                self._run.now(),
                self._run.job,
                call.name,
                None if failed else outcome.text,
                outcome.text if failed else None,
            )
        )
        for gate in self._run.around.parts.gates:
            gate.ended(call, outcome, at=self._run.now())
        if not self._run.enforcer.active:
            return
        moved = self._run.enforcer.roll_back(call.name) if failed else self._run.enforcer.commit(call.name)
        if moved:
            self._step_moved(call.name, "rolled back" if failed else "committed")

    def _reserve(self, call: ToolCall) -> None:
        if not self._run.enforcer.active:
            return
        before = self._run.enforcer.done
        self._run.enforcer.reserve(call.name)
        if self._run.enforcer.done != before:
            self._step_moved(call.name, "done as proposed")

    def _step_moved(self, tool: str, change: str) -> None:
        self._run.tell(
            events.StepMoved(self._run.now(), self._run.job, tool, change, self._run.enforcer.open)
        )

    def _is_news(self, call: ToolCall, outcome: ToolOutcome) -> bool:
        """Return whether a tool returned something that it had not returned for these arguments before."""
        if outcome.failed:
            return False
        signature = (call.name, repr(sorted(call.arguments.items())), outcome.text)
        news = signature not in self._run.seen
        self._run.seen.add(signature)
        return news

    def _guarded_result(self, call: ToolCall, outcome: ToolOutcome) -> Generator[Effect, Answer, str]:
        run = self._run
        said = outcome.text if not outcome.failed else f"Error: {outcome.text}"
        if not run.around.parts.guards:
            return said
        ruling = yield from guarded(run, GuardPoint.RESULT, said, tool=call.name, arguments=call.arguments)
        if ruling.blocked is not None:
            return f"Error: the result is withheld: {ruling.blocked}"
        if not outcome.failed:
            run.results.append(ruling.text)
        return ruling.text

    def _bound_tool_errors(self) -> None:
        bound = self._run.spec.variant.tool_errors_in_a_row
        if bound is not None and self._run.counters.failed_batches > bound:
            raise Ended(
                "tool_errors", f"{self._run.counters.failed_batches} batches in a row had a tool that failed"
            )
