"""A needle audit: what each way to make histories shorter forgets, and what it saves.

A conversation is replayed: before each turn of the model the strategy is asked, as the loop asks it, and the next
messages come behind what it left. A needle is kept when its text is in the last prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from statek_sim.agent.context.manager import ContextManager
from statek_sim.agent.context.settings import STEPS, ContextSettings, TierName
from statek_sim.agent.context.transcripts import Needle, Place, Talk
from statek_sim.agent.context.units import Count, texts_of
from statek_sim.agent.context.wire_check import wire_faults
from statek_sim.agent.effects import Compactor, TextWanted
from statek_sim.errors import CompactionFailed, ContextOverflow
from statek_sim.metering.messages import REPLY_PRIMING
from statek_sim.providers.wire.format import FormatName
from statek_sim.providers.wire.request import text_in
from statek_sim.values import Message, in_common

RESERVED: Final = 8
"""One part in so many of a budget is the reserve, as in 004 §5: 1,024 of 8,192."""

MakeCompactor = Callable[[ContextSettings, Count], Compactor | None]
"""Returns a strategy for these settings, None for one that leaves everything."""


def _steps(*names: TierName) -> MakeCompactor:
    return lambda settings, count: ContextManager(replace(settings, steps=names), count)


STRATEGIES: Final[Mapping[str, MakeCompactor]] = {
    "none": lambda settings, count: None,
    "clear": _steps("clear", "cut"),
    "summarise": _steps("summarise", "cut"),
    "drop": _steps("drop", "cut"),
    "tiered": _steps(*STEPS),
}
"""What is compared; `tiered` is the default. A model's summary is played by `excerpt`."""


def excerpt(wanted: TextWanted) -> str:
    """Return a summary as a small model might write it: the beginning of each line, four characters to the token."""
    lines = [line[:100] for line in text_in(wanted.messages[-1].get("content")).splitlines()]
    return "\n".join(lines)[: wanted.max_tokens * 3]


@dataclass(slots=True, kw_only=True)
class Course:
    """What became of one conversation under one strategy."""

    talk: str
    prompts: int = 0
    sent: int = 0
    hit: int = 0
    largest: int = 0
    over: int = 0
    compactions: int = 0
    refused: int = 0
    failed: str | None = None
    lost: list[tuple[Needle, int]] = field(default_factory=list)
    """Needles that are gone, each with the prompt, from 1, in which it was missed first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """One strategy over all conversations."""

    strategy: str
    courses: tuple[Course, ...]
    planted: Mapping[Place, int]
    kept: Mapping[Place, int]
    whole: int
    """Tokens of all prompts, had nothing been made shorter."""

    @property
    def sent(self) -> int:
        """Tokens of all prompts that were sent."""
        return sum(course.sent for course in self.courses)

    @property
    def saved(self) -> float:
        """The part of the tokens that was saved, from 0 to 1; of conversations that went through only."""
        return 1 - self.sent / self.whole if self.whole else 0.0

    @property
    def hit_share(self) -> float:
        """The part of the tokens sent that a prefix cache would hit, from 0 to 1."""
        return sum(course.hit for course in self.courses) / self.sent if self.sent else 0.0


def audited(
    talks: Sequence[Talk],
    count: Count,
    *,
    share: float = 0.5,
    budget: int | None = None,
    settings: ContextSettings | None = None,
    strategies: Mapping[str, MakeCompactor] = STRATEGIES,
    wire: FormatName = "openai",
) -> list[Audited]:
    """Return what each strategy keeps and saves.

    The budget of a conversation is `budget` tokens, or else a `share` of its own largest prompt; `settings` has the
    rest. A conversation that a strategy gives up, or breaks on, has none of its needles.
    """
    base = settings or ContextSettings()
    whole = {talk.id: replayed(talk, None, count, base.budget, wire) for talk in talks}
    found = []
    for name, make in strategies.items():
        courses = []
        for talk in talks:
            tokens = budget or max(64, int(whole[talk.id].largest * share))
            reserve = tokens // RESERVED
            chosen = replace(base, budget=tokens, reserve=reserve, target=None)
            courses.append(replayed(talk, make(chosen, count), count, chosen.room, wire))
        found.append(_summed(name, talks, courses, whole))
    return found


def _summed(
    name: str, talks: Sequence[Talk], courses: Sequence[Course], whole: Mapping[str, Course]
) -> Audited:
    planted: dict[Place, int] = {}
    kept: dict[Place, int] = {}
    for talk, course in zip(talks, courses, strict=True):
        gone = {needle.text for needle, _ in course.lost}
        for needle in talk.needles:
            planted[needle.place] = planted.get(needle.place, 0) + 1
            kept[needle.place] = kept.get(needle.place, 0) + (needle.text not in gone)
    through = sum(whole[course.talk].sent for course in courses if course.failed is None)
    sent = [course if course.failed is None else replace(course, sent=0, hit=0) for course in courses]
    return Audited(strategy=name, courses=tuple(sent), planted=planted, kept=kept, whole=through)


def replayed(
    talk: Talk, compactor: Compactor | None, count: Count, room: int, wire: FormatName = "openai"
) -> Course:
    """Replay a conversation; `room`: tokens of a prompt over which it counts as over."""
    course = Course(talk=talk.id)
    history: list[Message] = []
    before: Sequence[Message] = ()
    missed: dict[str, int] = {}
    for at, message in enumerate(talk.messages):
        if message.get("role") == "assistant":
            try:
                history = _asked(history, compactor, count, course)
            except ContextOverflow as error:
                course.failed = f"gave up: {error}"
            except CompactionFailed as error:
                course.failed = f"broke: {error}"
            if course.failed is not None:
                course.lost = [(needle, course.prompts + 1) for needle in talk.needles]
                return course
            _note(course, history, before, count, room, wire)
            _miss(course, talk, history, at, missed)
            before = list(history)
        history.append(message)
    course.lost = [(needle, missed[needle.text]) for needle in talk.needles if needle.text in missed]
    return course


def _asked(
    history: list[Message], compactor: Compactor | None, count: Count, course: Course
) -> list[Message]:
    """Return the history as the strategy leaves it."""
    if compactor is None:
        return history
    outcome = compactor(list(history), tokens=sum(map(count, history)) + REPLY_PRIMING)
    if isinstance(outcome, Generator):
        answer: str | None = None
        try:
            wanted = next(outcome)
            while True:
                answer = excerpt(wanted)
                wanted = outcome.send(answer)
        except StopIteration as end:
            outcome = end.value
    if outcome is None:
        return history
    course.compactions += 1
    return list(outcome.messages)


def _note(
    course: Course,
    history: Sequence[Message],
    before: Sequence[Message],
    count: Count,
    room: int,
    wire: FormatName,
) -> None:
    sizes = [count(message) for message in history]
    tokens = sum(sizes) + REPLY_PRIMING
    course.prompts += 1
    course.sent += tokens
    course.hit += sum(sizes[: in_common(before, history)])
    course.largest = max(course.largest, tokens)
    course.over += tokens > room
    course.refused += bool(wire_faults(history, wire))


def _miss(course: Course, talk: Talk, history: Sequence[Message], at: int, missed: dict[str, int]) -> None:
    """Note which needles of the past are not in the prompt; one that is there again was not lost."""
    text = "\n".join(part_text for message in history for part_text in texts_of(message))
    for needle in talk.needles:
        if needle.at >= at:
            continue
        if needle.text in text:
            missed.pop(needle.text, None)
        else:
            missed.setdefault(needle.text, course.prompts)
