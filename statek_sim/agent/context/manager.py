"""An agent's context manager, which compacts a history that is too long for the next request.

`ContextManager` is part of the agent's loop. The function `compacted` does the same for other loops and for tests.

Source: the agent document §5.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from statek_sim.agent.context.compaction_steps import STEPS, cut, drop, drop_the_rest, summarise
from statek_sim.agent.context.history import (
    Count,
    Goal,
    Past,
    Step,
    Unit,
    messages_of,
    open_from,
    recent_from,
    units_of,
)
from statek_sim.agent.context.wire_check import wire_faults
from statek_sim.agent.effects import Compaction, SideModel, TextWanted
from statek_sim.agent.option_names import COMPACTION_STEP_NAMES, CompactionStepName
from statek_sim.errors import BadInput, CompactionFailed, ContextOverflow
from statek_sim.providers.wire.request import FormatName
from statek_sim.values import Message

if TYPE_CHECKING:
    from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextSettings:
    """Limits for a prompt in tokens, and the steps that shorten a longer one.

    `budget` covers the prompt and the `reserve` kept for its answer. `target` is the size to which a compaction reduces
    the messages, so that several turns pass before the next compaction (None: half of the budget minus the reserve).
    `keep` is the number of newest turns that stay unchanged as long as possible. A message that contains a `pinned`
    fact never changes. `steps` are step names or callables, in order. `summary` is the model that writes summaries
    (None: they are written by a rule). The defaults are those of the agent document §5.
    """

    budget: int = 8192
    reserve: int = 1024
    target: int | None = None
    keep: int = 4
    pinned: tuple[str, ...] = ()
    steps: tuple[CompactionStepName | Step, ...] = COMPACTION_STEP_NAMES
    summary: SideModel | None = None
    max_summary: int = 512

    def __post_init__(self) -> None:
        """Raise `BadInput` for invalid or contradictory numbers."""
        for name in ("budget", "max_summary"):
            if getattr(self, name) < 1:
                raise BadInput(f"context: {name} must be at least 1 token, got {getattr(self, name)}")
        if not 0 <= self.reserve < self.budget:
            raise BadInput(
                f"context: reserve is {self.reserve}; expected at least 0 and less than the budget, {self.budget}"
            )
        if self.keep < 0:
            raise BadInput(f"context: keep must be 0 or more turns, got {self.keep}")
        if self.target is not None and not 0 < self.target <= self.room:
            raise BadInput(
                f"context: target is {self.target}; expected 1 to {self.room}, the budget minus the reserve"
            )
        if self.steps == ():
            raise BadInput("context: steps must not be empty")
        for name in ("pinned", "steps"):
            if isinstance(getattr(self, name), str):
                raise BadInput(f"context: {name} must be a list, got {getattr(self, name)!r}")
        if not all(fact.strip() for fact in self.pinned):
            raise BadInput("context: a pinned fact is empty; expected a string to search for")

    @property
    def room(self) -> int:
        """The maximum number of tokens in a prompt."""
        return self.budget - self.reserve

    @property
    def aim(self) -> int:
        """The number of tokens to which a compaction reduces the messages."""
        return max(1, self.room // 2) if self.target is None else self.target


Compacting: TypeAlias = Generator[TextWanted, str | None, Compaction | None]  # Python 3.11
"""A compaction in progress, which may request a summary from a model."""

Summarise = Callable[[TextWanted], str | None]
"""Takes a summary request and returns the text, or None if there is no answer."""


class ContextManager:
    """Keeps an agent's prompts within a budget.

    `count` returns a message's token count; `wire` is the format of requests. A manager is stateless: its result
    depends on the history alone.
    """

    stateless: Final = True

    def __init__(
        self,
        settings: ContextSettings,
        count: Count,
        *,
        wire: FormatName = "openai",
    ) -> None:
        self.settings = settings
        self._count = count
        self._wire = wire
        self._steps = _steps(settings)

    def __call__(self, messages: Sequence[Message], *, tokens: int) -> Compacting | None:
        """Return a compaction, or None if the prompt's `tokens` fit.

        When run, the compaction raises `ContextOverflow` for a history that cannot fit, and `CompactionFailed` for a
        result that no provider would accept.
        """
        return None if tokens <= self.settings.room else self._compacting(messages, tokens)

    def _compacting(self, messages: Sequence[Message], tokens: int) -> Compacting:
        settings = self.settings
        units = units_of(messages, self._count, settings.pinned)
        around = tokens - sum(unit.tokens for unit in units)
        goal = Goal(
            room=settings.room - around,
            target=max(1, settings.aim - around),
            prompt_room=settings.room,
            count=self._count,
            pinned=settings.pinned,
            summary=settings.summary,
            max_summary=settings.max_summary,
        )
        past = Past(units=tuple(units), recent=recent_from(units, settings.keep))
        past = yield from self._shorter(past, goal)
        if past.tokens > goal.room:
            last = replace(goal, target=max(1, goal.room), last=True)
            past = yield from self._shorter(replace(past, recent=open_from(past.units)), last)
            past = self._least(past, last)
        if past.tokens > goal.room:
            raise ContextOverflow(_overflow(past, around, settings))
        made = messages_of(past.units)
        self._check(messages, made)
        return Compaction(
            messages=made,
            strategy=" > ".join(past.told) or "nothing",
            cleared=past.cleared,
            summarised=past.summarised,
            dropped=past.dropped,
            cut=past.cut,
        )

    def _shorter(self, past: Past, goal: Goal) -> Generator[TextWanted, str | None, Past]:
        for step in self._steps:
            if past.tokens <= (goal.enough if step is summarise else goal.room):
                break
            made = step(past, goal)
            past = (yield from made) if isinstance(made, Generator) else made
        return past

    def _least(self, past: Past, goal: Goal) -> Past:
        """Return the history; if it still does not fit, remove the units that are kept until the last resort."""
        if past.tokens > goal.room and drop in self._steps:
            past = drop_the_rest(past, goal)
        if past.tokens > goal.room and cut in self._steps:
            past = cut(past, goal)
        return past

    def _check(self, before: Sequence[Message], after: Sequence[Message]) -> None:
        """Raise `CompactionFailed` if the provider would not accept the history."""
        faults = wire_faults(after, self._wire)
        if faults:
            whose = (
                "the original history has this problem"
                if wire_faults(before, self._wire)
                else "the compaction steps caused it"
            )
            raise CompactionFailed(
                f"the compacted history cannot be sent in the format {self._wire}: {faults[0].sentence} ({whose})"
            )


def _steps(settings: ContextSettings) -> tuple[Step, ...]:
    found: list[Step] = []
    for name in settings.steps:
        if callable(name):
            found.append(name)
        elif name in STEPS:
            found.append(STEPS[name])
        else:
            raise BadInput(f"context: unknown step {name!r}; expected {', '.join(STEPS)} or a callable")
    return tuple(found)


def _overflow(past: Past, around: int, settings: ContextSettings) -> str:
    """Return an overflow message with the token count of each part of the prompt."""
    at = open_from(past.units)
    parts = {"tools and framing": around}
    for position, unit in enumerate(past.units):
        name = _name(unit, is_open=position >= at)
        parts[name] = parts.get(name, 0) + unit.tokens
    shares = ", ".join(f"{name} {tokens}" for name, tokens in parts.items() if tokens)
    return (
        f"the prompt has {sum(parts.values())} tokens that cannot be removed ({shares}), but only "
        f"{settings.room} are available: {settings.budget} minus {settings.reserve} for the answer; expected a larger "
        "budget, shorter results, or fewer pinned facts"
    )


def _name(unit: Unit, *, is_open: bool) -> str:
    if unit.kind in ("system", "task"):
        return unit.kind
    if unit.pinned:
        return "pinned"
    return "messages to answer" if is_open else "the rest"


def compacted(
    messages: Sequence[Message],
    settings: ContextSettings,
    count: Count,
    *,
    summary: Summarise | None = None,
    around: int = 0,
    wire: FormatName = "openai",
) -> Compaction | None:
    """Return a shorter history, or None if `messages` fit; `around` is the number of tokens outside the messages.

    `summary` answers in place of the model in the settings. Raises the same errors as `ContextManager`.
    """
    manager = ContextManager(settings, count, wire=wire)
    tokens = around + sum(count(message) for message in messages)
    made = manager(messages, tokens=tokens)
    if made is None:
        return None
    answer: str | None = None
    try:
        wanted = next(made)
        while True:
            answer = None if summary is None else summary(wanted)
            wanted = made.send(answer)
    except StopIteration as end:
        done: Compaction | None = end.value
        return done
