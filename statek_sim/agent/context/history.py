"""A history in units that are kept or lost as a whole: a call and its results never without one another.

What the agent is there for (the system's messages, the task, pinned facts) and what it has to answer now (the newest
turn with its results, and what was said after it) are told apart from the past, which may be made shorter. `Past` is a
history on its way to that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from statek_sim.agent.effects import SideModel, TextWanted
from statek_sim.values import JSON, Message

NOTE_OPENING: Final = "[CONTEXT SUMMARY — earlier conversation compressed]"
"""What a summary begins with (agent document §5)."""

NUDGE_OPENING: Final = "[CORRECTION REQUIRED]"
"""What the harness's own corrections begin with; they have the role of the user and are none of his.

Source: the agent document §6.
"""

Kind = Literal["system", "task", "user", "nudge", "note", "turn", "stray"]
"""What a unit is. `turn`: what the model said, with the results of its calls; `stray`: results without their call."""

Count = Callable[[Message], int]
"""Returns the tokens of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Messages that belong together. `pinned`: one of them holds a pinned fact.

    `uncleared`: what they were before their results were cleared a moment ago, for a summary that comes after that.
    """

    kind: Kind
    messages: tuple[Message, ...]
    tokens: int
    pinned: bool = False
    uncleared: tuple[Message, ...] | None = None

    @property
    def whole(self) -> tuple[Message, ...]:
        """The messages with their results."""
        return self.messages if self.uncleared is None else self.uncleared

    @property
    def stays(self) -> bool:
        """Whether nothing may take it away."""
        return self.pinned or self.kind in ("system", "task")


def units_of(messages: Sequence[Message], count: Count, pinned: Sequence[str] = ()) -> list[Unit]:
    """Return a history's units in order."""
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
    """Return where the part of a history begins that the model has to answer now.

    That is its newest turn, for a correction is read beside what it corrects and a result beside its call, and what
    follows it; where the model has said nothing yet, or the newest turn was answered by the user long since, all
    that was said at the end.
    """
    last = next((at for at in range(len(units) - 1, -1, -1) if units[at].kind == "turn"), None)
    return 0 if last is None else last


def recent_from(units: Sequence[Unit], keep: int) -> int:
    """Return where the newest `keep` turns begin; never after what has to be answered now."""
    turns = [at for at, unit in enumerate(units) if unit.kind == "turn"]
    return min(turns[-keep] if 0 < keep <= len(turns) else 0 if keep else len(units), open_from(units))


def messages_of(units: Sequence[Unit]) -> list[Message]:
    """Return the messages of units, in order."""
    return [message for unit in units for message in unit.messages]


def texts_of(message: Message) -> Iterator[str]:
    """Yield every text of a message that a model reads: content, arguments, names of calls."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from (text for part in content if isinstance(text := _part_text(part), str))
    for name, arguments in calls_of(message):
        yield name
        yield arguments


def calls_of(message: Message) -> list[tuple[str, str]]:
    """Return name and arguments of a message's calls, as written."""
    calls = message.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            found.append((str(function.get("name")), str(function.get("arguments"))))
    return found


def call_ids(message: Message) -> list[JSON]:
    """Return the ids of a message's calls."""
    calls = message.get("tool_calls")
    return [call.get("id") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _part_text(part: JSON) -> JSON:
    return part.get("text") if isinstance(part, dict) else part


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What has to come out: at most `room` tokens of messages, and `target` where a step has to act at all.

    `prompt_room` are the tokens of a whole prompt; `pinned`, `summary` and `max_summary` are those of the settings.
    """

    room: int
    target: int
    prompt_room: int
    count: Count
    pinned: tuple[str, ...] = ()
    summary: SideModel | None = None
    max_summary: int
    last: bool = False
    """Whether this is the last round, in which all but what has to be answered now may be touched."""

    @property
    def enough(self) -> int:
        """Tokens at which nothing is summarised: half way from the target to what there is room for.

        Where clearing leaves more it would be due again with the next turn, and each time the prefix in the cache is
        lost.
        """
        return (self.target + self.room) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Units before `recent` may be touched; the counts are of results, turns and messages that were."""

    units: tuple[Unit, ...]
    recent: int
    cleared: int = 0
    summarised: int = 0
    dropped: int = 0
    cut: int = 0
    told: tuple[str, ...] = ()
    """What was done, in words, for the trace."""

    @property
    def tokens(self) -> int:
        """Tokens of all messages."""
        return sum(unit.tokens for unit in self.units)

    def said(self, what: str) -> Past:
        """Return it with one thing more that was done."""
        return self if what in self.told else replace(self, told=(*self.told, what))

    def with_units(self, units: Sequence[Unit]) -> Past:
        """Return it with these units; what may be touched ends where it did, whatever is gone before that."""
        made = tuple(units)
        if len(made) == len(self.units):
            return replace(self, units=made)
        fixed = {id(unit) for unit in self.units[self.recent :]}
        recent = next((at for at, unit in enumerate(made) if id(unit) in fixed), len(made))
        return replace(self, units=made, recent=recent)

    def without(self, lost: Collection[int], note: Unit | None = None) -> Past:
        """Return it without the units at these positions; `note` stands where the first of them stood.

        A message between two turns of the model stays where its loss would put them side by side, which Gemini refuses.
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

    def in_last_round(self) -> Past:
        """Return it with everything touchable but what has to be answered now."""
        return replace(self, recent=open_from(self.units))


Summarising = Generator[TextWanted, str | None, Past]
"""A step that needs a model: it yields what it wants and is sent the text, None where there is none."""

Step = Callable[[Past, Goal], Past | Summarising]
"""One way to make a history shorter; any plain callable is one."""


def past_of(units: Sequence[Unit], keep: int) -> Past:
    """Return a history before anything was done; the newest `keep` turns may not be touched."""
    return Past(units=tuple(units), recent=recent_from(units, keep))


def _loosened(units: Sequence[Unit], lost: Collection[int], bridge: int | None) -> set[int]:
    """Return the positions that can be lost without putting two turns of the model side by side."""
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
