"""A history split into units, each kept or removed whole: a call is never separated from its results.

Some units always stay: system messages, the task, pinned facts, and what the model has to answer now (the newest turn
with its results, and later messages). Older units may be shortened. `Past` is a history during compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from statek_sim.agent.effects import SideModel, TextWanted
from statek_sim.values import JSON, Message

NOTE_OPENING: Final = "[CONTEXT SUMMARY — earlier conversation compressed]"
"""The first line of a summary (agent document §5)."""

NUDGE_OPENING: Final = "[CORRECTION REQUIRED]"
"""The start of the harness's corrections, which have the role `user` but are not written by a user.

Source: the agent document §6.
"""

Kind = Literal["system", "task", "user", "nudge", "note", "turn", "stray"]
"""The kind of unit. `turn`: a message from the model with its calls' results; `stray`: results without their call."""

Count = Callable[[Message], int]
"""Returns a message's token count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Messages that belong together, such as a call and its results. `pinned`: a message contains a pinned fact.

    `uncleared` holds the messages as they were before this compaction cleared their results, for a summary that
    follows.
    """

    kind: Kind
    messages: tuple[Message, ...]
    tokens: int
    pinned: bool = False
    uncleared: tuple[Message, ...] | None = None

    @property
    def whole(self) -> tuple[Message, ...]:
        """The messages before their results were cleared."""
        return self.messages if self.uncleared is None else self.uncleared

    @property
    def stays(self) -> bool:
        """Whether the unit must never be removed."""
        return self.pinned or self.kind in ("system", "task")


def units_of(messages: Sequence[Message], count: Count, pinned: Sequence[str] = ()) -> list[Unit]:
    """Return a history's units in order; `pinned` lists facts that must stay."""
    tasks = 0
    found: list[Unit] = []
    for group in _groups(messages):
        kind = _kind(group[0], first_user=not tasks)
        tasks += kind == "task"
        held = any(fact in text for fact in pinned for message in group for text in texts_of(message))
        found.append(
            Unit(kind=kind, messages=group, tokens=sum(count(message) for message in group), pinned=held)
        )
    return found


def _groups(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    group: list[Message] = []
    for message in messages:
        if message.get("role") == "tool" and group and group[0].get("role") in ("assistant", "tool"):
            group.append(message)
            continue
        if group:
            yield tuple(group)
        group = [message]
    if group:
        yield tuple(group)


def _kind(message: Message, *, first_user: bool) -> Kind:
    role, content = message.get("role"), message.get("content")
    if role in ("system", "developer"):
        return "system"
    if role == "assistant":
        return "turn"
    if role == "tool":
        return "stray"
    text = content if isinstance(content, str) else ""
    if text.startswith(NOTE_OPENING):
        return "note"
    if text.startswith(NUDGE_OPENING):
        return "nudge"
    return "task" if first_user else "user"


def open_from(units: Sequence[Unit]) -> int:
    """Return the index of the first unit that the model has to answer now: its newest turn, or 0 if there is no turn.

    Everything after that turn belongs to it, because a correction is useless without the corrected turn, and a result
    without its call.
    """
    last = next((at for at in range(len(units) - 1, -1, -1) if units[at].kind == "turn"), None)
    return 0 if last is None else last


def recent_from(units: Sequence[Unit], keep: int) -> int:
    """Return the index of the earliest of the newest `keep` turns, but at most `open_from`."""
    turns = [at for at, unit in enumerate(units) if unit.kind == "turn"]
    return min(turns[-keep] if 0 < keep <= len(turns) else 0 if keep else len(units), open_from(units))


def messages_of(units: Sequence[Unit]) -> list[Message]:
    """Return the messages of units, in order."""
    return [message for unit in units for message in unit.messages]


def texts_of(message: Message) -> Iterator[str]:
    """Yield every string in a message that a model reads: content, call names and call arguments."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (text for part in content if isinstance(text := _part_text(part), str))
    for name, arguments in calls_of(message):
        yield name
        yield arguments


def calls_of(message: Message) -> list[tuple[str, str]]:
    """Return the name and arguments of each call in a message, as written."""
    calls = message.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found.append((str(function.get("name")), str(function.get("arguments"))))
    return found


def call_ids(message: Message) -> list[JSON]:
    """Return the ids of the calls in a message."""
    calls = message.get("tool_calls")
    return [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _part_text(part: JSON) -> JSON:
    return part.get("text") if isinstance(part, dict) else part


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The goal of a compaction: at most `room` tokens of messages; a step that has to act reduces them to `target`.

    `prompt_room` is the limit for a whole prompt; `pinned`, `summary` and `max_summary` come from the settings.
    """

    room: int
    target: int
    prompt_room: int
    count: Count
    pinned: tuple[str, ...] = ()
    summary: SideModel | None = None
    max_summary: int
    last: bool = False
    """Whether this is the last round, in which steps may change any unit before those to be answered now."""

    @property
    def enough(self) -> int:
        """The token count above which a history is summarised: halfway from the target to the limit.

        Above it, the next turn would need compaction again, which invalidates the prefix cache each time.
        """
        return (self.target + self.room) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A history during compaction; steps may change the units before `recent`.

    `cleared` and `cut` count results, `summarised` counts turns, and `dropped` counts messages.
    """

    units: tuple[Unit, ...]
    recent: int
    cleared: int = 0
    summarised: int = 0
    dropped: int = 0
    cut: int = 0
    told: tuple[str, ...] = ()
    """Descriptions of the steps taken, for the trace."""

    @property
    def tokens(self) -> int:
        """The number of tokens in all messages."""
        return sum(unit.tokens for unit in self.units)

    def said(self, what: str) -> Past:
        """Return a copy with one more step description."""
        return self if what in self.told else replace(self, told=(*self.told, what))

    def with_units(self, units: Sequence[Unit]) -> Past:
        """Return a copy with these units; `recent` stays at the same unit."""
        made = tuple(units)
        if len(made) == len(self.units):
            return replace(self, units=made)
        fixed = {id(unit) for unit in self.units[self.recent :]}
        recent = next((at for at, unit in enumerate(made) if id(unit) in fixed), len(made))
        return replace(self, units=made, recent=recent)

    def without(self, lost: Collection[int], note: Unit | None = None) -> Past:
        """Return a copy without the units at these positions; `note` takes the place of the first one.

        A unit stays if removing it would leave two of the model's turns adjacent, which Gemini rejects.
        """
        at = min(lost, default=len(self.units))
        lost = _loosened(self.units, lost, bridge=at if note is not None else None)
        kept: list[Unit] = []
        recent = 0
        for position, unit in enumerate(self.units):
            if position == self.recent:
                recent = len(kept)
            if position == at and note is not None:
                kept.append(note)
                recent += position >= self.recent
            if position not in lost:
                kept.append(unit)
        if self.recent >= len(self.units):
            recent = len(kept)
        return replace(self, units=tuple(kept), recent=recent)


Summarising = Generator[TextWanted, str | None, Past]
"""A step in progress that consults a model: it yields a request, is sent the text or None, and returns the history."""

Step = Callable[[Past, Goal], Past | Summarising]
"""A compaction step: takes a history and the goal, and returns the changed history."""


def _loosened(units: Sequence[Unit], lost: Collection[int], bridge: int | None) -> set[int]:
    """Return the positions in `lost` that can be removed without leaving two of the model's turns adjacent."""
    gone = set(lost)
    for position in sorted(lost):
        if units[position].kind in ("turn", "stray"):
            continue
        before = next((at for at in range(position - 1, -1, -1) if at not in gone), None)
        after = next((at for at in range(position + 1, len(units)) if at not in gone), None)
        if before is None or after is None or (bridge is not None and before < bridge < after):
            continue
        if len(units[before].messages) == 1 and units[before].kind == units[after].kind == "turn":
            gone.discard(position)
    return gone
