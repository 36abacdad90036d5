"""Recovers calls that were in flight when a process died; calls with receipts are not repeated.

A call without a receipt may or may not have happened. Its tool defines what to do: call it again, run the tool's own
check, or ask a person. The outcome is never guessed.
"""

from __future__ import annotations

import inspect
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from statek_sim import trace as events
from statek_sim.agent.approvals import Suspended, ask_people, suspended, wait_for, why_not
from statek_sim.agent.batch import Batch
from statek_sim.agent.effects import (
    Answer,
    Ask,
    CallTools,
    Effect,
    PersonSaid,
    Receipt,
    ToolOutcome,
    ToolStatus,
)
from statek_sim.agent.run_state import RunState, Steps, calls_from, outcome_from, reply_from
from statek_sim.agent.tools.tool import Happened, Tool, result_text

if TYPE_CHECKING:
    from collections.abc import Callable


Checking = Generator[Effect, Answer, list[int]]

AGAIN: Final = "again"
"""A person's answer meaning that a call did not happen and should be made now."""

_DID_NOT_HAPPEN: Final = ToolOutcome(ToolStatus.CANCELLED, "")


class Recall:
    """Resumes an interrupted batch of calls, using the values in its checkpoint."""

    def __init__(
        self, run: RunState, saved: Mapping[str, Any], receipts: Sequence[Receipt], committed: float
    ) -> None:
        offer = run.offer_made
        assert offer is not None, "calls are made of what was offered"
        self._run = run
        self._stage = str(saved["stage"])
        self._receipts = receipts
        self._no_word: dict[int, str] = {}
        self._suspended = suspended(saved, receipts, committed=committed, now=run.now())
        self.batch = Batch(run, reply_from(saved["reply"]), saved["text"], calls_from(saved), offer)
        self.batch.restore(saved)

    def go(self) -> Steps:
        """Settle the interrupted wave, then continue with the batch."""
        batch = self.batch
        match self._stage:
            case "allowing":
                yield from batch.allow(self._suspended)
                yield from batch.call()
            case "calling":
                yield from self._find_out()
                yield from batch.ask_for_tools()
            case "unknown":
                yield from self._ask_about(self._open(), self._suspended)
                yield from batch.ask_for_tools()
            case _:
                yield from batch.ask_for_tools(self._suspended)
        yield from batch.settle()
        yield from batch.execute()

    def _open(self) -> list[int]:
        """Return the positions of the wave's unsettled calls, except for tools that only ask a person."""
        wave, outcomes = self.batch.wave, self.batch.outcomes
        return [at for at in range(len(wave)) if outcomes[at] is None and self._tool(at).asks is None]

    def _tool(self, at: int) -> Tool:
        return self.batch.tool(self.batch.wave[at][1])

    def _find_out(self) -> Steps:
        batch = self.batch
        if len(self._run.calls) == batch.first_record:
            for _, call in batch.wave:
                batch.begun(call, before=True)
        places = {batch.key(at): at for at in range(len(batch.wave))}
        for receipt in self._receipts:
            at = places.get(receipt.key)
            if at is not None:
                self._recalled(at, "receipt", receipt.text)
                batch.ended_at(at, outcome_from(receipt.status, receipt.text), receipt.at)
        again = yield from self._check()
        again += [at for at in self._open() if self._tool(at).after_crash == "again"]
        yield from self._call_again(again)
        yield from self._ask_about(self._open(), None)

    def _check(self) -> Checking:
        """Run the tools' own checks of whether calls happened; return the positions of calls that did not."""
        checks = [at for at in self._open() if callable(self._tool(at).after_crash)]
        again: list[int] = []

        def found(position: int, outcome: ToolOutcome) -> None:
            at = checks[position]
            if outcome is _DID_NOT_HAPPEN:
                again.append(at)
            elif outcome.failed:
                self._no_word[at] = f" Its own check does not know: {outcome.text}"
            else:
                self._recalled(at, "check", outcome.text)
                self.batch.ended_at(at, outcome)

        if checks:
            calls = [self.batch.invocation(at, _checking(self._tool(at).after_crash)) for at in checks]
            yield CallTools(calls, found)
        return again

    def _call_again(self, places: Sequence[int]) -> Steps:
        if not places:
            return
        for at in places:
            self._recalled(at, "again", "it is called again")
        yield from self.batch.commit_calls()
        yield self.batch.invocations(places)

    def _ask_about(self, places: Sequence[int], waiting: Suspended | None) -> Steps:
        """Ask a person about calls with an unknown outcome."""
        if not places:
            return
        asks = [self._question(at) for at in places]
        if waiting is not None:
            answers = yield from wait_for(self._run, waiting)
        else:
            about = [(self.batch.wave[at][1].name, ask) for at, ask in zip(places, asks, strict=True)]
            answers = yield from ask_people(self._run, about, partial(self.batch.pending, "unknown"))
        for at, ask, answer in zip(places, asks, answers, strict=True):
            if answer.kind != "answered" or answer.text != AGAIN:
                self._believe(at, answer, ask)
        yield from self._call_again([at for at in places if self.batch.outcomes[at] is None])

    def _question(self, at: int) -> Ask:
        call = self.batch.wave[at][1]
        arguments = ", ".join([f"{key}={value!r}" for key, value in call.arguments.items()])
        return Ask(
            text=f"The process died while {call.name}({arguments}) was being executed.{self._no_word.get(at, '')} "
            "Did it happen? Answer with its "
            f"result, with {AGAIN!r} if it did not and should be called now, or refuse if it should not be called."
        )

    def _believe(self, at: int, answer: PersonSaid, ask: Ask) -> None:
        if answer.kind == "answered":
            outcome = ToolOutcome(ToolStatus.RETURNED, answer.text)
        else:
            outcome = ToolOutcome(ToolStatus.CANCELLED, f"not known to have happened: {why_not(answer, ask)}")
        self._recalled(at, "person", outcome.text)
        self.batch.ended_at(at, outcome)

    def _recalled(self, at: int, how: str, detail: str) -> None:
        run = self._run
        run.tell(events.CallRecalled(run.now(), run.job, self.batch.wave[at][1].name, how, detail))


def _checking(check: Any) -> Callable[..., Any]:
    """Return code for a driver that runs a tool's check; its outcome is the call's, if the call happened."""

    def code(**arguments: Any) -> Any:
        found = check(**arguments)
        return _awaited(found) if inspect.isawaitable(found) else _found(found)

    return code


async def _awaited(found: Any) -> ToolOutcome:
    return _found(await found)


def _found(found: object) -> ToolOutcome:
    if found is None:
        return _DID_NOT_HAPPEN
    if not isinstance(found, Happened):
        raise TypeError(
            f"a check must return Happened(result), or None if the call did not happen, got {found!r}"
        )
    return ToolOutcome(ToolStatus.RETURNED, result_text(found.value))
