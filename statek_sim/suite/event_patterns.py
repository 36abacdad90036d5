"""Looking for events in a trace by some of their fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Final, get_args

from statek_sim.did_you_mean import suggestion
from statek_sim.scenario.expect import EventsExpect
from statek_sim.scenario.problem import Keypath
from statek_sim.suite.result import ABSENT, Mismatch
from statek_sim.suite.yaml_value import yaml_value
from statek_sim.trace import Event, as_dict
from statek_sim.values import JSON

_FIELDS: Final = {kind.__name__: tuple(spec.name for spec in fields(kind)) for kind in get_args(Event)}
"""The fields of each kind of event."""

_SHOWN: Final = 20
"""Most events that a mismatch carries."""


def event_mismatches(at: Keypath, expect: EventsExpect, events: Sequence[Event]) -> Iterator[Mismatch]:
    """Yield the first of `contains` that does not come in order, and all of `excludes` that one matches.

    A pattern that no event can match, because of its name or a field, is a mismatch in both.
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
    """Return whether an event, as `trace.as_dict` gives it, has every field of `pattern` with that value."""
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
    """Return why no event at all can match, or None."""
    kind = pattern.get("event")
    # Anything may stand there that YAML can say, also what no dictionary takes as a key.
    if kind is not None and str(kind) not in _FIELDS:
        return f"no event is called {kind!r}.{suggestion(str(kind), _FIELDS)}".removesuffix(".")
    known = ("event", *(_FIELDS[str(kind)] if kind is not None else _every_field()))
    for key in pattern:
        if key == "type":
            return "the kind of an event is its field 'event', not 'type'"
        if key not in known:
            which = f"event {kind} has no" if kind is not None else "no event has a"
            return f"{which} field {key!r}.{suggestion(key, known)}".removesuffix(".")
    return None


def _every_field() -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in _FIELDS.values() for name in names))


def _equal(first: JSON, second: JSON) -> bool:
    # A flag is no number, but a time of 3 seconds is one of 3.0.
    return first == second and isinstance(first, bool) == isinstance(second, bool)
