"""The compaction steps, which decide what is removed from a history; steps that remove less come first.

`clear` replaces call results with placeholders, `summarise` replaces turns with a note, `drop` removes turns, and `cut`
shortens results that the model has not read yet. The first three do not change the newest turns until the last round.
As a last resort, `drop` also removes notes and later user messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from statek_sim.agent.context.history import (
    NOTE_OPENING,
    Count,
    Goal,
    Past,
    Step,
    Summarising,
    Unit,
    calls_of,
    open_from,
)
from statek_sim.agent.effects import SUMMARY_PROMPT, SideModel, TextWanted
from statek_sim.providers.wire.request import text_in
from statek_sim.values import Message

_LEFT_OUT: Final = re.compile(r"^\(at least (\d+) earlier messages are not listed\)$")
_SHOWN: Final = (160, 64)
"""The maximum number of characters per line in a rule-based summary: normally, and if lines must be left out."""
_READ: Final = 2_000
"""The maximum number of characters per message for the summarizing model; the middle of longer ones is left out."""


def note_of(lines: Sequence[str], left_out: int, count: Count) -> Unit:
    """Return a summary note with these lines and the number of messages `left_out`."""
    tail = [f"(at least {left_out} earlier messages are not listed)"] if left_out else []
    message: Message = {"role": "user", "content": "\n".join([NOTE_OPENING, *tail, *lines])}
    return Unit(kind="note", messages=(message,), tokens=count(message))


def read_note(unit: Unit) -> tuple[list[str], int]:
    """Return a note's lines, and how many messages it does not list."""
    lines = text_in(unit.messages[0].get("content")).splitlines()[1:]
    found = _LEFT_OUT.match(lines[0]) if lines else None
    return (lines[1:], int(found.group(1))) if found else (lines, 0)


def note_by_rule(units: Sequence[Unit], limit: int, count: Count) -> Unit:
    """Return a note with one line for each message or call in the units.

    If the note exceeds `limit` tokens, its lines are shortened, and then the oldest ones are left out.
    """
    made = _by_rule(units, limit, count, _SHOWN[0])
    if read_note(made)[1] > sum(read_note(unit)[1] for unit in units if unit.kind == "note"):
        made = _by_rule(units, limit, count, _SHOWN[1])
    return made


def _by_rule(units: Sequence[Unit], limit: int, count: Count, shown: int) -> Unit:
    lines: list[tuple[str, int]] = []
    left_out = 0
    for unit in units:
        if unit.kind == "note":
            kept, before = read_note(unit)
            lines += [(line, 0) for line in kept]
            left_out += before
        else:
            lines_of_unit = list(_lines(unit, shown))
            # Omitting a line omits its messages; a unit's first line represents all of them.
            lines += [(line, 0 if at else len(unit.messages)) for at, line in enumerate(lines_of_unit)]
            left_out += 0 if lines_of_unit else len(unit.messages)
    low, high = 0, len(lines)
    while low < high:
        half = (low + high) // 2
        if _note(lines, half, left_out, count).tokens > limit:
            low = half + 1
        else:
            high = half
    return _note(lines, low, left_out, count)


def _note(lines: Sequence[tuple[str, int]], first: int, left_out: int, count: Count) -> Unit:
    gone = sum(max(1, messages) for _, messages in lines[:first])
    return note_of([line for line, _ in lines[first:]], left_out + gone, count)


def _lines(unit: Unit, shown: int) -> Iterator[str]:
    """Yield the lines that describe a unit."""
    first, *rest = unit.whole
    if unit.kind != "turn":
        who = "corrected" if unit.kind == "nudge" else str(first.get("role"))
        yield f"- {who}: {_line(text_in(first.get('content')), shown)}"
        return
    task_text = text_in(first.get("content"))
    if task_text.strip():
        yield f"- said: {_line(task_text, shown)}"
    for at, (name, arguments) in enumerate(calls_of(first)):
        answer = text_in(rest[at].get("content")) if at < len(rest) else ""
        yield f"- {name}({_line(arguments, shown)}) -> {_line(answer, shown)}"


def wanted_of(units: Sequence[Unit], by: SideModel, *, limit: int, room: int, count: Count) -> TextWanted:
    """Return a request for the model `by` to summarize units in at most `limit` tokens.

    It includes as many of the newest messages as fit into `room` tokens together with the summary.
    """
    texts = [text for unit in units for text in _read(unit)]
    ask: Message = {"role": "system", "content": f"{by.prompt or SUMMARY_PROMPT}\nAt most {limit} tokens."}
    left = room - count(ask) - limit
    kept: list[str] = []
    for text in reversed(texts):
        left -= count({"role": "user", "content": text})
        if left < 0 and kept:
            break
        kept.append(text)
    story: Message = {"role": "user", "content": "\n".join(reversed(kept))}
    return TextWanted(by=by, messages=(ask, story), max_tokens=limit)


def _read(unit: Unit) -> Iterator[str]:
    """Yield a unit's messages and calls as strings, for a model to summarize."""
    for message in unit.whole:
        text = text_in(message.get("content"))
        if unit.kind == "note":
            yield "earlier: " + "\n".join(text.splitlines()[1:])
            continue
        if text.strip():
            yield f"{message.get('role')}: {_short(text, _READ)}"
        for name, arguments in calls_of(message):
            yield f"call: {name}({_short(arguments, _READ)})"


def unfit(text: str | None, limit: int, replaced: int, count: Count) -> str | None:
    """Return why a model's summary is rejected, or None to accept it.

    `replaced` is the token count of the turns that the summary would replace.
    """
    if text is None:
        return "the model returned no summary"
    if not text.strip():
        return "the model's summary is empty"
    tokens = count({"role": "user", "content": text})
    if tokens > limit:
        return f"the model's summary has {tokens} tokens, expected at most {limit}"
    if tokens >= replaced:
        return f"the model's summary has {tokens} tokens, no fewer than the {replaced} that it would replace"
    return None


def _line(text: str, most: int) -> str:
    """Return a string on one line, leaving out the middle if it is long."""
    return _short(" ".join(text.split()), most)


def _short(text: str, most: int) -> str:
    """Return a string of about `most` characters, leaving out the middle if it is longer."""
    if len(text) <= most:
        return text
    head = most * 3 // 4
    return f"{text[:head]} [...] {text[len(text) - (most - head) :]}"


LEAST_NOTE: Final = 48
"""The minimum number of tokens for a summary; anything shorter would be useless."""

LEAST_CUT: Final = 24
"""The minimum number of tokens for a shortened result; anything shorter would be useless."""


# -- results -----------------------------------------------------------------------------------------------------


def clear(past: Past, goal: Goal) -> Past:
    """Return the history with call results replaced by placeholders, oldest first, until it fits."""
    units, over, cleared = list(past.units), past.tokens - goal.target, 0
    for at in range(past.recent):
        if over <= 0:
            break
        if units[at].kind == "turn" and not units[at].pinned:
            units[at], saved, number = _cleared(units[at], goal.count)
            over -= saved
            cleared += number
    if not cleared:
        return past
    return replace(past.with_units(units), cleared=past.cleared + cleared).said("clear")


def _cleared(unit: Unit, count: Count) -> tuple[Unit, int, int]:
    """Return a turn with its results cleared, the tokens saved, and the number of results."""
    messages = list(unit.messages)
    number = 0
    for at, message in enumerate(messages[1:], 1):
        tokens = count(message)
        short: Message = {**message, "content": f"[cleared: a result of {tokens} tokens]"}
        if count(short) < tokens:
            messages[at] = short
            number += 1
    left = sum(count(message) for message in messages) if number else unit.tokens
    shorter = replace(unit, messages=tuple(messages), tokens=left, uncleared=unit.whole)
    return shorter, unit.tokens - left, number


# -- turns -------------------------------------------------------------------------------------------------------


def _losable(past: Past) -> list[int]:
    """Return the indexes of units that a note may replace: turns, corrections and older notes."""
    units = past.units
    return [at for at in range(past.recent) if not units[at].stays and units[at].kind != "user"]


def summarise(past: Past, goal: Goal) -> Past | Summarising:
    """Return the history with all turns replaced by one note: a model's summary, or one line per turn."""
    lost = _losable(past)
    units = [past.units[at] for at in lost]
    limit = _room_for_note(past, goal, sum(unit.tokens for unit in units))
    if all(unit.kind == "note" and unit.tokens <= limit for unit in units):
        return past
    if limit < LEAST_NOTE:
        # In the last round, a note without lines is better than an error.
        return _noted(past, lost, note_by_rule(units, 0, goal.count)) if goal.last else past
    if goal.summary is None:
        note = note_by_rule(units, limit, goal.count)
        # Turns with cleared results are more useful than a note that lists nothing.
        return _noted(past, lost, note) if read_note(note)[0] or goal.last else past
    return _by_model(past, goal, lost, limit)


def _room_for_note(past: Past, goal: Goal, replaced: int) -> int:
    """Return the maximum number of tokens for a summary: its own limit or, if less, half of the room that is left.

    The other half is for new turns, so that the next turn does not need another summary. If half is too little for a
    useful summary, more is used.
    """
    beside = past.tokens - replaced
    spare = goal.room - beside
    return min(goal.max_summary, max(goal.target - beside, spare // 2, min(spare, LEAST_NOTE)))


def _by_model(past: Past, goal: Goal, lost: list[int], limit: int) -> Summarising:
    units = [past.units[at] for at in lost]
    assert goal.summary is not None, "requested by the caller"
    replaced = sum(unit.tokens for unit in units)
    text = yield wanted_of(units, goal.summary, limit=limit, room=goal.prompt_room, count=goal.count)
    why = unfit(text, limit, replaced, goal.count)
    if why is not None or text is None:
        return _noted(past.said(f"summarise by rule: {why}"), lost, note_by_rule(units, limit, goal.count))
    return _noted(past, lost, note_of(text.strip().splitlines(), 0, goal.count))


def _noted(past: Past, lost: list[int], note: Unit) -> Past:
    """Return the history with the note in place of the lost units, or unchanged if that would not be shorter."""
    turns = sum(past.units[at].kind == "turn" for at in lost)
    made = past.without(lost, note)
    if made.tokens >= past.tokens:
        return past
    return replace(made, summarised=past.summarised + turns).said("summarise")


def drop(past: Past, goal: Goal) -> Past:
    """Return the history without its oldest turns; a note counts the removed messages."""
    turns = [at for at in _losable(past) if past.units[at].kind != "note"]
    lost = _oldest(past, turns, past.tokens - goal.target)
    return _dropped(past, lost, goal) if lost else past


def drop_the_rest(past: Past, goal: Goal) -> Past:
    """Return the history without later user messages and then, as a last resort, without notes."""
    later = [at for at in range(past.recent) if past.units[at].kind == "user" and not past.units[at].stays]
    lost = _oldest(past, later, past.tokens - goal.room)
    made = _dropped(past, lost, goal) if lost else past
    return _without_notes(made, goal)


def _oldest(past: Past, order: list[int], over: int) -> list[int]:
    """Return the first of these positions that together save `over` tokens; a correction is dropped with its turn."""
    lost: list[int] = []
    for at in order:
        corrects_lost = bool(lost) and past.units[at].kind == "nudge" and lost[-1] == at - 1
        if over <= 0 and not corrects_lost:
            break
        lost.append(at)
        over -= past.units[at].tokens
    return lost


def _dropped(past: Past, lost: list[int], goal: Goal) -> Past:
    """Return the history without the removed units, with a note that says how many if there is room for one."""
    dropped = sum(len(past.units[at].messages) for at in lost)
    old = next(iter(_notes(past)), None)
    lines, before = ([], 0) if old is None else read_note(past.units[old])
    note = note_of(lines, before + dropped, goal.count)
    made = past.without(lost if old is None else [*lost, old], note)
    if made.tokens > goal.room:
        made = past.without(lost)
    return replace(made, dropped=past.dropped + dropped).said("drop")


def _notes(past: Past) -> list[int]:
    return [at for at in range(past.recent) if past.units[at].kind == "note" and not past.units[at].stays]


def _without_notes(past: Past, goal: Goal) -> Past:
    """Return the history without its notes if it still does not fit."""
    notes = _notes(past)
    if not notes or past.tokens <= goal.room:
        return past
    made = past.without(notes)
    return replace(made, dropped=past.dropped + len(notes)).said("drop")


# -- unread messages ---------------------------------------------------------------------------------------------


def cut(past: Past, goal: Goal) -> Past:
    """Return the history with the longest unread results shortened until they fit; only in the last round."""
    at = open_from(past.units)
    if not goal.last or at >= len(past.units) or past.units[at].kind != "turn":
        return past
    unit, count = past.units[at], goal.count
    sizes = {
        number: count(message)
        for number, message in enumerate(unit.messages)
        if number and not any(fact in text_in(message.get("content")) for fact in goal.pinned)
    }
    most = _most(list(sizes.values()), sum(sizes.values()) - (past.tokens - goal.room))
    messages, number = list(unit.messages), 0
    for which, size in sizes.items():
        if most is not None and size > most:
            messages[which] = _cut(messages[which], most, size, count)
            number += 1
    if not number:
        return past
    shorter = replace(unit, messages=tuple(messages), tokens=sum(count(message) for message in messages))
    units = (*past.units[:at], shorter, *past.units[at + 1 :])
    return replace(past.with_units(units), cut=past.cut + number).said("cut")


def _most(sizes: list[int], room: int) -> int | None:
    """Return the tokens per result with which all results fit into `room`, or None if that is too few to be useful."""
    left = sorted(sizes)
    while left and left[0] * len(left) <= room:
        room -= left.pop(0)
    if not left:
        return None
    most = room // len(left)
    return most if most >= LEAST_CUT else None


def _cut(message: Message, most: int, size: int, count: Count) -> Message:
    """Return a result shortened to `most` tokens: its start, a marker with the original size, and its end."""
    text = text_in(message.get("content"))
    mark = f"\n[... cut to fit: the whole result has {size} tokens ...]\n"
    low, high = 0, min(len(text), most * 64)
    best: Message = {**message, "content": mark.strip()}
    while low < high:
        half = (low + high + 1) // 2
        head = half * 3 // 4
        made: Message = {**message, "content": text[:head] + mark + text[len(text) - (half - head) :]}
        if count(made) <= most:
            low, best = half, made
        else:
            high = half - 1
    return best


STEPS: Final[Mapping[str, Step]] = {"clear": clear, "summarise": summarise, "drop": drop, "cut": cut}
"""The steps, keyed by name."""
