"""A scenario's slots: the scenario's runs share a model and wait for each other.

A run waits for a slot in the same way as for a person: it asks a question and continues with the answer.
Therefore, every driver supports slots, and events are ordered as in other waits.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from statek_sim import trace as events
from statek_sim.agent.effects import Answer, AskPerson, Effect, PersonSaid, Question
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.run_state import Pending, RunDeps, Steps
from statek_sim.agent.simulation import Settle
from statek_sim.agent.slots import SlotQueue, SlotRules, Ticket
from statek_sim.agent.spec import AgentSpec
from statek_sim.clock import Clock
from statek_sim.errors import SlotRefused

TOKEN: Final = "slot of "
"""Prefix for the tokens of questions that represent waiting for a slot."""

_GIVEN: Final = PersonSaid("answered")


class Desk:
    """Assigns a scenario's slots to its runs."""

    def __init__(self, rules: SlotRules, clock: Clock) -> None:
        self._queue = SlotQueue(rules)
        self._clock = clock
        self._told: dict[str, Settle] = {}
        self._tickets: dict[str, Ticket] = {}

    def come(self, run: SlottedRun) -> Generator[Effect, Answer, None]:
        """Make a run wait until it has a slot; raises `SlotRefused` if another run takes its place in the queue."""
        now = self._clock.now()
        ticket, gone = self._queue.add(run.submitter, run.priority, now=now)
        self._tickets[run.job] = ticket
        if gone is not None:
            self._send_away(gone)
        self._give()
        yield from self._wait(run, ticket)

    def step(self, run: SlottedRun) -> Generator[Effect, Answer, None]:
        """Give `run`'s slot to a more urgent run if one is waiting, then wait until `run` has a slot again."""
        ticket = self._tickets[run.job]
        if self._queue.rules.preempts != "step" or not self._queue.gives_way(ticket):
            return
        self._queue.give_back(ticket, now=self._clock.now())
        run.spoke("gives way", "a more urgent job is waiting")
        self._give()
        yield from self._wait(run, ticket)

    def leave(self, run: SlottedRun) -> None:
        """Take the run's slot and assign it to the next waiting run."""
        ticket = self._tickets.pop(run.job, None)
        if ticket is not None:
            self._queue.leave(ticket, now=self._clock.now())
            self._give()

    def die(self) -> None:
        """Discard all runs, because their process died."""
        self._told.clear()
        self._tickets.clear()

    def asked(self, question: Question, answered: Settle) -> None:
        """Record how to answer a run that is waiting for a slot; the driver calls this for the run's question."""
        self._told[question.job] = answered

    def _wait(self, run: SlottedRun, ticket: Ticket) -> Generator[Effect, Answer, None]:
        if ticket.state == "waiting":
            run.spoke("waits", f"priority {run.priority}, {self._queue.waiting - 1} others waiting")
            answers = yield AskPerson([_question(run.job)], lambda position, answer: None)
            assert isinstance(answers, list | tuple), "a driver answers AskPerson with what was said"
            (person_answer,) = answers
            if isinstance(person_answer, PersonSaid) and person_answer.kind == "refused":
                raise SlotRefused(person_answer.text)
        run.spoke("has it", f"waited {ticket.waited:g} s in all")

    def _give(self) -> None:
        while (ticket := self._queue.take(now=self._clock.now())) is not None:
            self._tell(ticket, _GIVEN)

    def _tell(self, ticket: Ticket, answer: PersonSaid) -> None:
        job = next(name for name, waiting in self._tickets.items() if waiting is ticket)
        answered = self._told.pop(job, None)
        if answered is not None:
            answered(answer)

    def _send_away(self, ticket: Ticket) -> None:
        most = self._queue.rules.waiting
        why = f"{ticket.submitter}: {most} jobs are already waiting, and this one would be served last"
        job = next(name for name, waiting in self._tickets.items() if waiting is ticket)
        if job not in self._told:
            raise SlotRefused(why)
        self._tell(ticket, PersonSaid("refused", why))


def _question(job: str) -> Question:
    return Question(token=f"{TOKEN}{job}", job=job, tool="", text=f"a slot for {job}")


class SlottedRun(AgentRun):
    """A run that works only while it has a slot. Before each request, a more urgent run may get the slot."""

    def __init__(
        self,
        job: str,
        spec: AgentSpec,
        deps: RunDeps,
        message: str,
        *,
        saved: Pending | None = None,
        desk: Desk,
        priority: int,
        submitter: str,
    ) -> None:
        super().__init__(job, spec, deps, message, saved=saved)
        self._desk = desk
        self.priority = priority
        self.submitter = submitter

    def go(self) -> Steps:
        """Yield a unit of work's effects. The work starts when the run has a slot."""
        try:
            yield from self._desk.come(self)
            yield from super().go()
        finally:
            self._desk.leave(self)

    def iterate(self) -> Steps:
        """Yield an iteration's effects. A more urgent run may get the slot before the iteration."""
        if self.iteration:
            yield from self._desk.step(self)
        yield from super().iterate()

    def spoke(self, action: str, detail: str) -> None:
        """Add a `HarnessSpoke` event about this run's slot to the trace."""
        self.tell(events.HarnessSpoke(self.now(), self.job, "slot", action, detail))
