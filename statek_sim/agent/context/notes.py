"""What stands for a past that is not there any more: a note with a summary, by a rule or by a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from statek_sim.agent.context.history import NOTE_OPENING, Count, Unit, calls_of
from statek_sim.agent.effects import SUMMARY_PROMPT, SideModel, TextWanted
from statek_sim.providers.wire.request import text_in
from statek_sim.values import Message

_LEFT_OUT: Final = re.compile(r"^\(at least (\d+) earlier messages are not listed\)$")
_SHOWN: Final = (160, 64)
"""Characters of a text in a line of a summary by rule; the second where there is little room."""
_READ: Final = 2_000
"""Characters of a text that a model is shown to summarise; of longer ones the beginning and the end."""


def note_of(lines: Sequence[str], left_out: int, count: Count) -> Unit:
    """Return a note with these lines; `left_out` messages have none."""
    tail = [f"(at least {left_out} earlier messages are not listed)"] if left_out else []
    message: Message = {"role": "user", "content": "\n".join([NOTE_OPENING, *tail, *lines])}
    return Unit(kind="note", messages=(message,), tokens=count(message))


def read_note(unit: Unit) -> tuple[list[str], int]:
    """Return a note's lines, and how many messages have none."""
    lines = text_in(unit.messages[0].get("content")).splitlines()[1:]
    found = _LEFT_OUT.match(lines[0]) if lines else None
    return (lines[1:], int(found.group(1))) if found else (lines, 0)


def note_by_rule(units: Sequence[Unit], limit: int, count: Count) -> Unit:
    """Return a note with a line for each thing that was said or done.

    Over `limit` tokens the lines are shorter, and where that is not enough the oldest are left out.
    """
    made = _by_rule(units, limit, count, _SHOWN[0])
    if read_note(made)[1] > _left_out(units):
        made = _by_rule(units, limit, count, _SHOWN[1])
    return made


def _left_out(units: Sequence[Unit]) -> int:
    return sum(read_note(unit)[1] for unit in units if unit.kind == "note")


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
            # A line that is left out takes its messages with it; a unit's first line stands for all of them.
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
    """Yield what a unit was, in lines."""
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
    """Return the request for a summary of these units: the newest of their texts that fit into `room` tokens."""
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
    """Yield what a model reads of a unit that it summarises."""
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
    """Return why a model's summary is not used, None when it is; `replaced`: tokens of what it stands for."""
    if text is None:
        return "the model gave none"
    if not text.strip():
        return "the model's is empty"
    tokens = count({"role": "user", "content": text})
    if tokens > limit:
        return f"the model's has {tokens} tokens, {limit} were allowed"
    if tokens >= replaced:
        return f"the model's has {tokens} tokens, no fewer than the {replaced} that it stands for"
    return None


def _line(text: str, most: int) -> str:
    """Return a text in one line; of a long one the beginning and the end."""
    return _short(" ".join(text.split()), most)


def _short(text: str, most: int) -> str:
    """Return a text; of a long one the beginning and the end."""
    if len(text) <= most:
        return text
    head = most * 3 // 4
    return f"{text[:head]} [...] {text[len(text) - (most - head) :]}"
