"""What happened in a run, in words: only what the other run did differently."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.compare.changes import Change
from statek_sim.compare.facts import Difference
from statek_sim.harness.limits import LIMITS
from statek_sim.values import JSON

_LONGEST: Final = 160
"""Characters of a value that are shown."""

_TURN: Final = re.compile(r", turn (\d+), attempt")

_ENDING: Final = ("stop", "status", "exit", "error", "definition_errors")
_COUNTS: Final = {
    "llm_calls": "LLM calls",
    "turns": "turns",
    "exceptions": "exceptions",
    "streak": "failing turns in a row",
    "completions": "completed units",
}
_ONE: Final = {"streak": "failing turn in a row"}
_LISTS: Final = {
    "delivered": "to the user",
    "console": "on the console",
    "history": "in the last prompt",
    "tool_log": "results of tools",
    "subtasks": "subtasks",
    "locals": "variables",
    "steps": "steps",
}
_WORLD: Final = {
    "handlers": "error handlers",
    "items": "work items",
    "leaked_claims": "claims left behind",
    "ledger": "side effects",
    "worker": "worker",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One aspect of a change: what it is about, and both sides in words. `ending`: how the run or a job ends."""

    about: str
    before: str
    after: str
    ending: bool = False

    def sentence(self, words: str) -> str:
        """Return one side's words after what they are about."""
        return f"{self.about} {words}" if self.ending else f"{self.about}: {words}"


def told(change: Change) -> tuple[Told, ...]:
    """Return every aspect of a change, the most telling first: how it ends, what it counts, what the model sees."""
    return tuple(_told(change))


def _told(change: Change) -> Iterator[Told]:
    fields = {difference.field: difference for difference in change.differences}
    before, after = change.before, change.after
    if "error" in fields:
        yield Told("the run", _run_error(before), _run_error(after), ending=True)
    for name in dict.fromkeys((*before.jobs, *after.jobs)):
        old, new = before.jobs.get(name), after.jobs.get(name)
        if old is None or new is None:
            yield Told(f"job {name}", _exists(old), _exists(new), ending=True)
        else:
            yield from _job(name, old, new, fields)
    for field, about in _WORLD.items():
        if field in fields:
            yield Told(about, *_first_difference(fields[field]))


def _exists(job: JobRecord | None) -> str:
    return "never exists" if job is None else _ending(job)


def _run_error(record: RunRecord) -> str:
    if record.error is None:
        return "goes to its end"
    kind, message = record.error.type, record.error.message.splitlines()[0]
    match kind:
        case "ScriptExhausted":
            turn = _TURN.search(message)
            number = f"reply {turn.group(1)}" if turn else "another reply"
            return f"goes on: asks the model for {number}, which the scenario does not have"
        case "UnusedEvents":
            return f"ends early: {message}"
        case "UnusedReplies":
            return f"ends early: {message}"
        case "Livelock":
            return f"hangs: {message}"
        case _:
            return f"fails with {kind}: {message}"


def _job(name: str, before: JobRecord, after: JobRecord, fields: dict[str, Difference]) -> Iterator[Told]:
    changed = [key.removeprefix(f"jobs.{name}.") for key in fields if key.startswith(f"jobs.{name}.")]
    counts = [key for key in _COUNTS if key in changed]
    if any(key in _ENDING for key in changed):
        old, new = (_with_counts(_ending(job), job, counts) for job in (before, after))
        yield Told(name, old, new, ending=True)
    elif counts:
        yield Told(name, _with_counts("", before, counts), _with_counts("", after, counts))
    for key, about in _LISTS.items():
        if key in changed:
            yield Told(f"{name}, {about}", *_first_difference(fields[f"jobs.{name}.{key}"]))


def _ending(job: JobRecord) -> str:
    if job.stop in LIMITS:
        return f"is stopped by the harness ({job.error})"
    match job.stop:
        case "exit":
            return f"ends with exit({_shown(job.exit)})"
        case "final":
            return "ends with its reply"
        case "warmup":
            return f"fails in warmup ({', '.join(job.definition_errors)})"
        case "crash":
            return f"fails ({job.error})"
        case "contained":
            return f"never ends by itself ({job.error})"
        case _:
            return f"is left {job.status}"


def _with_counts(ending: str, job: JobRecord, counts: Sequence[str]) -> str:
    counted = ", ".join(_counted(key, getattr(job, key)) for key in counts)
    if not ending:
        return counted
    return f"{ending} after {counted}" if counted else ending


def _counted(key: str, value: int | None) -> str:
    noun = _COUNTS[key]
    return f"{value or 0} {noun if value != 1 else _ONE.get(key) or noun.removesuffix('s')}"


def _first_difference(difference: Difference) -> tuple[str, str]:
    """Return where two values begin to differ: an entry of a list with its number, a key of a mapping, or the value."""
    before, after = difference.reference, difference.installed
    if isinstance(before, list) and isinstance(after, list):
        pairs = enumerate(zip_longest(before, after, fillvalue=_NOTHING), start=1)
        number, (old, new) = next((n, pair) for n, pair in pairs if pair[0] != pair[1])
        return _counted_entry(before, number, old), _counted_entry(after, number, new)
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key)]
        return ", ".join(_keyed(before, keys)), ", ".join(_keyed(after, keys))
    return _shown(before), _shown(after)


_NOTHING: Final = object()


def _counted_entry(entries: Sequence[object], number: int, entry: object) -> str:
    if entry is _NOTHING:
        return f"{len(entries)} in all" if entries else "nothing"
    return f"number {number} of {len(entries)}: {_entry(entry)}"


def _entry(value: object) -> str:
    """Return an entry of a list: of a message who says what, of a delivery what was said."""
    match value:
        case {"role": role, "content": str(content)}:
            return _shown(f"{role}: {content}")
        case {"role": role, "tool_calls": [{"function": {"name": name}}, *_]}:
            return _shown(f"{role} calls {name}")
        case {"body": str(body)}:
            return _shown(body)
        case _:
            return _shown(value)


def _keyed(mapping: dict[str, JSON], keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        yield f"{key}: {_shown(mapping[key])}" if key in mapping else f"no {key}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
