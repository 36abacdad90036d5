"""Compares a run's record with the scenario's expectations. Only keys that are present in the file are compared.

Events are found in the trace by some of their fields. Values are compared as plain YAML values.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Final, get_args

from statek_sim.backends.record import JobRecord, RunError, RunRecord
from statek_sim.did_you_mean import with_suggestion
from statek_sim.observed_trace import traced
from statek_sim.scenario import expect as said
from statek_sim.scenario.calls import check_word
from statek_sim.scenario.expect import EventsExpect
from statek_sim.scenario.part import Part
from statek_sim.scenario.problem import Keypath
from statek_sim.suite.result import ABSENT, Mismatch
from statek_sim.trace import Event, HandlerRan, Trace, as_dict
from statek_sim.values import JSON

_HANDLER_KEYS: Final = ("name", "context", "error")


def compare(record: RunRecord, expect: said.Expect) -> tuple[Mismatch, ...]:
    """Return the mismatches, in the order used in the format reference.

    If a run failed unexpectedly, its only mismatch has the key path `("error",)`, because partial results are not
    compared.
    """
    failure = tuple(_run_error(record.error, expect.error))
    if failure and record.error is not None:
        return failure
    return (*failure, *_run(record, expect))


def _run_error(error: RunError | None, expected: said.RunError | None) -> Iterator[Mismatch]:
    at: Keypath = ("error",)
    if expected is None:
        if error is not None:
            yield Mismatch(at, None, _error_text(error))
    elif error is None:
        yield Mismatch(at, yaml_value(expected), ABSENT)
    elif (expected.said("type") and expected.type != error.type) or expected.contains not in error.message:
        yield Mismatch(at, yaml_value(expected), _error_text(error))


def _error_text(error: RunError) -> str:
    return f"{error.type}: {error.message}"


def _run(record: RunRecord, expect: said.Expect) -> Iterator[Mismatch]:
    for key, expected in expect.said_items():
        at: Keypath = (key,)
        match key:
            case "jobs":
                for name, job in expect.jobs.items():
                    yield from _job(("jobs", name), job, record.jobs.get(name))
                    yield from _trajectory(("jobs", name), job, record)
            case "world":
                items: Mapping[str, Mapping[str, object]] = record.items
                for item, wanted in expect.world.items.items():
                    yield from _item(("world", "items", item), wanted, items.get(item))
                if expect.world.said("ledger"):
                    yield from _value(("world", "ledger"), list(expect.world.ledger), list(record.ledger))
            case "claims_leaked":
                yield from _value(at, expected, len(record.leaked_claims))
            case "handlers":
                yield from _list(at, expect.handlers, _handlers(record.handlers, ("job", *_HANDLER_KEYS)))
            case "usage":
                yield from _members(at, expect.usage.said_items(), asdict(record.usage))
            case "metrics":
                yield from _members(at, expect.metrics.said_items(), _metrics(record))
            case "events":
                yield from event_mismatches(at, expect.events, record.events)
            case "error":
                pass
            case _:
                yield from _value(at, expected, getattr(record, key))


def _metrics(record: RunRecord) -> Mapping[str, float | None]:
    # Imported only if metrics are expected, because it loads engine two.
    from statek_sim.telemetry.facts import task_facts  # noqa: PLC0415
    from statek_sim.telemetry.measures import measure  # noqa: PLC0415

    made = measure(task_facts(record.events)).metrics
    return {name: future.value for name, future in made.items()}


def _job(at: Keypath, expect: said.JobExpect, job: JobRecord | None) -> Iterator[Mismatch]:
    if job is None:
        yield Mismatch(at, yaml_value(expect), ABSENT)
        return
    for key, expected in expect.said_items():
        here: Keypath = (*at, key)
        match key:
            case "console":
                yield from _console(here, expect.console, job.console)
            case "history":
                yield from _history(here, expect.history, job.history)
            case "locals":
                yield from _members(here, expect.locals.items(), job.locals)
            case "absent_locals":
                for position, name in enumerate(expect.absent_locals):
                    if name in job.locals:
                        yield Mismatch((*here, position), name, job.locals[name])
            case "handlers":
                yield from _list(here, expect.handlers, _handlers(job.handlers, _HANDLER_KEYS))
            case "delivered":
                yield from _list(here, expect.delivered, job.delivered)
            case "tool_calls":
                yield from _list(here, expect.tool_calls, job.tool_calls)
            case "refused":
                yield from _list(here, expect.refused, job.refused)
            case "subtasks":
                yield from _members(here, expect.subtasks.items(), job.subtasks)
            case "usage":
                yield from _members(here, expect.usage.said_items(), asdict(job.usage))
            case _ if key not in _WORDS:
                yield from _value(here, expected, getattr(job, key))


_WORDS: Final = ("expect_calls", "never_called", "at_most", "within", "answer_quotes_results")
"""The expectations checked by `Trajectory` methods."""


def _trajectory(at: Keypath, expect: said.JobExpect, record: RunRecord) -> Iterator[Mismatch]:
    words = [(key, value) for key, value in expect.said_items() if key in _WORDS]
    if not words or at[-1] not in record.jobs:
        return
    trace = Trace(profile="", seed=0)
    trace.resume(event for event in record.events if event.job == at[-1])
    run = traced(trace)
    for key, wanted in words:
        try:
            check_word(run, key, wanted)
        except AssertionError as error:
            # The position marks a condition, whose value no run can replace.
            yield Mismatch((*at, key, 0), yaml_value(getattr(expect, key)), str(error))


def _item(at: Keypath, expect: said.ItemExpect, item: Mapping[str, object] | None) -> Iterator[Mismatch]:
    if item is None:
        yield Mismatch(at, yaml_value(expect), ABSENT)
    else:
        yield from _members(at, expect.said_items(), item)


def _console(
    at: Keypath, expect: said.ConsoleExpect | Sequence[str], console: Sequence[str]
) -> Iterator[Mismatch]:
    if not isinstance(expect, said.ConsoleExpect):
        yield from _value(at, expect, console)
        return
    yield from _texts(at, expect.contains, expect.excludes, console)
    if expect.said("lines"):
        yield from _value((*at, "lines"), expect.lines, len(console))


def _history(
    at: Keypath,
    expect: said.HistoryExpect | Sequence[Mapping[str, object]],
    history: Sequence[Mapping[str, object]],
) -> Iterator[Mismatch]:
    if not isinstance(expect, said.HistoryExpect):
        yield from _list(at, expect, history)
        return
    if expect.said("roles"):
        yield from _value((*at, "roles"), expect.roles, [message.get("role") for message in history])
    contents = [str(message.get("content") or "") for message in history]
    yield from _texts(at, expect.contains, expect.excludes, contents)


def _texts(
    at: Keypath, contains: Sequence[str], excludes: Sequence[str], texts: Sequence[str]
) -> Iterator[Mismatch]:
    """Yield a mismatch for each of `contains` that is in no string, and each of `excludes` that is in some string."""
    for position, wanted in enumerate(contains):
        if not any(wanted in text for text in texts):
            yield Mismatch((*at, "contains", position), wanted, yaml_value(texts))
    for position, refused in enumerate(excludes):
        found = [text for text in texts if refused in text]
        if found:
            yield Mismatch((*at, "excludes", position), refused, yaml_value(found))


def _value(at: Keypath, expected: object, actual: object) -> Iterator[Mismatch]:
    wanted, got = yaml_value(expected), yaml_value(actual)
    if not same(wanted, got):
        yield Mismatch(at, wanted, got)


def _members(
    at: Keypath, expected: Iterable[tuple[str, object]], actual: Mapping[str, object]
) -> Iterator[Mismatch]:
    """Yield a mismatch for each key whose actual value differs or is missing."""
    for key, value in expected:
        if key in actual:
            yield from _value((*at, key), value, actual[key])
        else:
            yield Mismatch((*at, key), yaml_value(value), ABSENT)


def _list(
    at: Keypath, expected: Sequence[Part | Mapping[str, object]], actual: Sequence[Mapping[str, object]]
) -> Iterator[Mismatch]:
    """Yield a mismatch if lists of mappings differ: in length, or in the keys that the expected entries give.

    The mismatch shows, for each actual entry, the keys of the expected entry at the same position. Additional entries
    are shown with the keys of all expected entries, or with all their keys if there are no expected entries.
    """
    wanted = [entry for entry in map(yaml_value, expected) if isinstance(entry, dict)]
    every = dict.fromkeys(key for entry in wanted for key in entry)
    shown: list[JSON] = []
    for position, entry in enumerate(actual):
        keys = wanted[position] if position < len(wanted) else every or entry
        shown.append({key: yaml_value(entry[key]) for key in keys if key in entry})
    if not same([*wanted], shown):
        yield Mismatch(at, wanted, shown)


def _handlers(calls: Sequence[HandlerRan], keys: Sequence[str]) -> list[dict[str, object]]:
    return [{key: getattr(call, key) for key in keys} for call in calls]


_FIELDS: Final = {kind.__name__: tuple(spec.name for spec in fields(kind)) for kind in get_args(Event)}
"""The fields of each kind of event."""

_SHOWN: Final = 20
"""Maximum number of events shown in a mismatch."""


def event_mismatches(at: Keypath, expect: EventsExpect, events: Sequence[Event]) -> Iterator[Mismatch]:
    """Yield the first of `contains` that does not occur in order, and each of `excludes` that some event matches.

    A pattern with an unknown event or field matches no event, and is a mismatch in both lists.
    """
    records: list[dict[str, object]] = [as_dict(event) for event in events]
    yield from _missing(at, expect.contains, records)
    for position, pattern in enumerate(expect.excludes):
        here: Keypath = (*at, "excludes", position)
        found = [record for record in records if matches(pattern, record)]
        flaw = _flaw(pattern)
        if flaw or found:
            yield Mismatch(here, pattern, flaw or [yaml_value(record) for record in found[:_SHOWN]])


def matches(pattern: Mapping[str, JSON], record: Mapping[str, object]) -> bool:
    """Return whether an event (see `trace.as_dict`) has all fields of `pattern` with equal values."""
    return all(key in record and _equal(value, yaml_value(record[key])) for key, value in pattern.items())


def _missing(
    at: Keypath, patterns: Sequence[Mapping[str, JSON]], records: Sequence[Mapping[str, object]]
) -> Iterator[Mismatch]:
    start = 0
    for position, pattern in enumerate(patterns):
        rest = range(start, len(records))
        found = next((index for index in rest if matches(pattern, records[index])), None)
        if found is None:
            kind = pattern.get("event")
            alike = [yaml_value(records[index]) for index in rest if records[index]["event"] == kind]
            yield Mismatch((*at, "contains", position), pattern, _flaw(pattern) or alike[:_SHOWN] or ABSENT)
            return
        start = found + 1


def _flaw(pattern: Mapping[str, JSON]) -> str | None:
    """Return why no event can ever match a pattern, or None."""
    kind = pattern.get("event")
    # Any YAML value is possible here, including those that cannot be dictionary keys.
    if kind is not None and str(kind) not in _FIELDS:
        return with_suggestion(f"unknown event {kind!r}", str(kind), _FIELDS)
    known = ("event", *(_FIELDS[str(kind)] if kind is not None else _every_field()))
    for key in pattern:
        if key == "type":
            return "an event's kind is its field 'event', not 'type'"
        if key not in known:
            which = f"event {kind} has no" if kind is not None else "no event has a"
            return with_suggestion(f"{which} field {key!r}", key, known)
    return None


def _every_field() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in _FIELDS.values() for name in names))


def _equal(first: JSON, second: JSON) -> bool:
    # A boolean is not a number, but a time of 3 seconds equals one of 3.0.
    return first == second and isinstance(first, bool) == isinstance(second, bool)


_PLAIN: Final = frozenset({str, int, bool, float, type(None)})
_encode: Final = json.JSONEncoder(sort_keys=True).encode


def yaml_value(value: Any) -> JSON:
    """Convert a value to plain YAML: a part of a scenario to its given keys, any other object to its text."""
    if type(value) in _PLAIN:
        return value  # type: ignore[no-any-return]  # one of JSON's own
    match value:
        case Part():
            return {key: yaml_value(inner) for key, inner in value.said_items()}
        case Mapping():
            return {str(key): yaml_value(inner) for key, inner in value.items()}
        case list() | tuple():
            return [yaml_value(inner) for inner in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def same(first: JSON, second: JSON) -> bool:
    """Return whether two plain values are equal in YAML: 1, 1.0 and true differ; key order does not matter."""
    if type(first) is str or type(second) is str:
        return first == second
    return _encode(first) == _encode(second)
