"""The person of a scenario: is asked what runs want to know, and answers when its events say so."""

from __future__ import annotations

from statek_sim.agent.approvals import word_of
from statek_sim.agent.effects import PersonSaid, Question
from statek_sim.agent.harness import unanswered
from statek_sim.agent.simulated import Said
from statek_sim.errors import NotAsked, Unanswered
from statek_sim.scenario.external_event import Event


class People:
    """Keeps the questions that are open, the oldest first."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Question, Said]] = {}

    def asked(self, question: Question, reply: Said) -> None:
        """Take a question; `reply` is called when an event answers it."""
        self._open[question.token] = (question, reply)

    def forget(self) -> None:
        """Forget every question: the process that asked them is dead."""
        self._open.clear()

    def act(self, event: Event, *, at: float) -> None:
        """Do what an event says; raises `NotAsked` when there is no such question."""
        answer = PersonSaid("answered" if event.action == "answer" else "refused", event.message)
        for token, (question, reply) in list(self._open.items()):
            if question.job == event.target and event.question in question.text:
                del self._open[token]
                # One that expired is no longer open, though nobody told it here.
                if reply(word_of(question, answer)):
                    return
        meant = f"question with {event.question!r}" if event.question else "question"
        raise NotAsked(
            f"at {at:g} s a person answers job {event.target!r}, which has no open {meant} then; "
            "expected the event at a second at which one is out"
        )

    def check_answered(self) -> None:
        """Raise `Unanswered` when a run still waits."""
        forever = [question for question, _ in self._open.values() if question.seconds is None]
        if forever:
            raise Unanswered(
                f"{unanswered(forever)}: add `- {{at: SECOND, answer: {forever[0].job}, message: TEXT}}` to `events`"
            )
