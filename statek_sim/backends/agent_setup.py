"""What engine two's loop takes from a scenario: its ladder, its layers of instructions and memory, and its person."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from statek_sim.agent.approvals import word_of
from statek_sim.agent.effects import PersonSaid, Question
from statek_sim.agent.escalation.ladder import Judgement, Ladder, Level, Price, QualityCheck, Strategy
from statek_sim.agent.harness import unanswered
from statek_sim.agent.memory.handoff import HandoffFile, memory_block
from statek_sim.agent.memory.instructions import discover, instructions_block
from statek_sim.agent.simulated import Said
from statek_sim.errors import BadInput, BadStore, NotAsked, Unanswered
from statek_sim.scenario.agent import EscalationText, LayersText, LevelText
from statek_sim.scenario.events import Event
from statek_sim.store.simulated_disk import SimulatedDisk


def ladder_of(text: EscalationText, checks: Iterable[QualityCheck]) -> Ladder:
    """Return the ladder of `text`; `checks` are its own, imported. `BadInput` for one that is none."""
    return Ladder(
        levels=tuple(map(_level, text.levels)),
        checks=(*map(_contains, text.contains), *checks),
        backoff=text.backoff,
        longest=text.longest,
    )


def _level(text: LevelText) -> Level:
    return Level(
        name=text.name,
        model=text.model,
        attempts=text.attempts,
        strategy=_adding(text.adds) if text.adds else None,
        carry=text.carry,
        price=None if text.price is None else Price(per_million=Decimal(str(text.price))),
        question=text.question,
        seconds=text.within,
    )


def _adding(words: str) -> Strategy:
    return lambda task: f"{task}\n\n{words}"


def _contains(wanted: str) -> QualityCheck:
    def check(task: str, answer: str) -> Judgement:
        return (
            Judgement(True, score=1.0)
            if wanted in answer
            else Judgement(False, f"{wanted!r} is not in the answer")
        )

    return check


def project_layer(text: LayersText) -> str:
    """Return the project layer: what is said, then the files that hold for the folder."""
    if not text.files:
        return text.project
    content = {path: file_text.encode() for path, file_text in text.files.items()}
    return instructions_block(discover(content.get, text.folder, own=text.project))


def session_layer(text: LayersText) -> str:
    """Return the session layer: what is said, then the memory block of the handoff file."""
    if not text.handoff:
        return text.session
    content = text.files.get(text.handoff)
    if content is None:
        raise BadInput(f"layers.handoff: {text.handoff!r} is none of `files`")
    return "\n\n".join(filter(None, (text.session, _block(content))))


def _block(content: str) -> str:
    disk = SimulatedDisk({"handoff.json": content.encode()})
    try:
        handoff = HandoffFile(disk, wall=lambda: "", path="handoff.json").resume()
    except BadStore as error:
        raise BadInput(f"layers.handoff: {error}") from error
    return "" if handoff is None else memory_block(handoff)


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
