"""From the words of a scenario of engine two to what its loop takes; and the person that its runs ask."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from statek_sim.agent.approvals import word_of
from statek_sim.agent.budget import Budget, Prices
from statek_sim.agent.context.manager import ContextSettings
from statek_sim.agent.context.vram import MIB, fitting, known_models
from statek_sim.agent.effects import SUMMARY_PROMPT, PersonSaid, Question, SideModel
from statek_sim.agent.escalation import Judgement, Ladder, Level, Price, QualityCheck, Strategy
from statek_sim.agent.harness import unanswered
from statek_sim.agent.memory import HandoffFile, discover, instructions_block, memory_block
from statek_sim.agent.simulated import Said
from statek_sim.agent.slots import SlotRules
from statek_sim.agent.spec import AgentSpec, Choice, Layers
from statek_sim.agent.step_enforcement import Step, StepPlan
from statek_sim.errors import BadInput, BadStore, NotAsked, Unanswered
from statek_sim.scenario.agent import (
    BudgetText,
    ContextText,
    EscalationText,
    LayersText,
    LevelText,
    SlotsText,
    StepsText,
    VramText,
)
from statek_sim.scenario.events import Event
from statek_sim.scenario.schema import AgentText
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


def _project_layer(text: LayersText) -> str:
    """Return the project layer: what is said, then the files that hold for the folder."""
    if not text.files:
        return text.project
    content = {path: file_text.encode() for path, file_text in text.files.items()}
    return instructions_block(discover(content.get, text.folder, own=text.project))


def _session_layer(text: LayersText) -> str:
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


def slot_rules(text: SlotsText) -> SlotRules:
    """Return the rules of a scenario's slots."""
    return SlotRules(**text.model_dump())


def context_settings(text: ContextText, by: AgentSpec | None) -> ContextSettings:
    """Return a context's settings; `by` writes the summaries, None: they are made by rule."""
    return ContextSettings(
        budget=text.budget if text.vram is None else _fitting(text.vram),
        reserve=text.reserve,
        target=text.target,
        keep=text.keep,
        pinned=text.pinned,
        steps=text.steps,
        summary=None if by is None else side_model(by, SUMMARY_PROMPT),
        max_summary=text.max_summary,
    )


def _fitting(text: VramText) -> int:
    """Return how many tokens fit into the cards."""
    return fitting(known_models()[text.model], [free * MIB for free in text.free], kv=text.kv).tokens


def side_model(spec: AgentSpec, prompt: str) -> SideModel:
    """Return an agent as a model beside another one: its model, its prompt (or this one), its script."""
    return SideModel(
        model=spec.model,
        role=spec.role,
        prompt=spec.layers.block() or prompt,
        provider=spec.provider,
        wire=spec.wire,
        temperature=spec.temperature,
    )


def layers_of(text: AgentText) -> Layers:
    """Return the layers of an agent's system block."""
    return Layers(
        rules=text.prompt,
        project=_project_layer(text.layers),
        session=_session_layer(text.layers),
        environment=text.layers.environment,
    )


def choice_of(text: AgentText) -> Choice:
    """Return which tools an agent is offered."""
    names = tuple(name.rpartition(":")[2] for name in text.tools) if text.said("tools") else None
    offer = text.offer
    return Choice(names=names, task=offer.task, all_tags=offer.all_tags, any_tag=offer.any_tag)


def plan_of(text: StepsText) -> StepPlan:
    """Return the steps of an agent's workflow."""
    steps = tuple(Step(**step.model_dump()) for step in text.steps)
    return StepPlan(steps=steps, order=text.order, helpers=text.helpers)


def prices_of(text: BudgetText) -> Prices | None:
    """Return the prices that an agent's budget says, None where it does not say both."""
    if text.prompt_price is None or text.completion_price is None:
        return None
    return Prices(prompt=Decimal(str(text.prompt_price)), completion=Decimal(str(text.completion_price)))


def budget_of(text: BudgetText) -> Budget:
    """Return what an agent may spend."""
    return Budget(
        tokens=text.tokens,
        cost=None if text.cost is None else Decimal(str(text.cost)),
        seconds=text.seconds,
        steps=text.steps,
        answer_tokens=text.answer_tokens,
        prices=prices_of(text),
        model_prices={
            model: Prices(
                prompt=Decimal(str(price.prompt_price)), completion=Decimal(str(price.completion_price))
            )
            for model, price in text.model_prices.items()
        },
    )


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
