"""Tasks from files: traces as `statek-sim trace` prints them, and reports as `statek-sim run --json` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from statek_sim.errors import BadInput
from statek_sim.input_files import text_of, why_another
from statek_sim.telemetry.facts import COMPLETED, Cost, TaskFacts, task_facts
from statek_sim.trace import Event, ToolCalled, ToolReturned, event_of

_REPORT = "statek-sim/report@1"
_NOT_IN_REPORTS: Final = (
    "calls", "loops", "cost", "escalations", "restores", "blocks", "step_seconds",
)  # fmt: skip
MOST: Final = 2**53
"""Maximum accepted number."""
_PLAIN: Final[dict[str, type[str | int | float] | tuple[type[int], type[float]]]] = {
    "str": str,
    "int": int,
    "float": (int, float),
    "bool": bool,
}


def groups_of(paths: Sequence[Path]) -> dict[Path, str]:
    """Return the names of the files' groups: their names, with their folders if two are equal."""
    stems = [path.stem for path in dict.fromkeys(paths)]
    return {
        path: path.stem if stems.count(path.stem) == 1 else path.with_suffix("").as_posix() for path in paths
    }


def tasks_of_file(path: Path, *, cost: Cost | None = None, group: str | None = None) -> list[TaskFacts]:
    """Return the tasks in a file of traces, in order, or in a report; `group` is theirs, by default the file's name.

    A report only has a job's stop, turns and tokens; other inputs of metrics are unknown. Raises `BadInput` with the
    place of an error.
    """
    text = _text(path)
    if path.suffix == ".json":
        return list(_of_report(path, text))
    return [
        task
        for run, events in _runs(path, text)
        for task in task_facts(events, run=run, group=group or path.stem, cost=cost)
    ]


def _text(path: Path) -> str:
    """Return a file's text; raises `BadInput` that names one that is not UTF-8."""
    try:
        return text_of(path)
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from None


def _runs(path: Path, text: str) -> Iterator[tuple[str, list[Event]]]:
    """Yield the traces of a file, each starting with its header, with names by path.

    Two folders may have files of one name.
    """
    events: list[Event] | None = None
    count = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        record = _record(line, f"{path}:{number}")
        if "trace" in record and "event" not in record:
            if events is not None:
                yield f"{path.as_posix()}#{count}", events
            events, count = [], count + 1
            continue
        if events is None:
            raise BadInput(
                f"{path}:{number}: expected the header of a trace, as `statek-sim trace` prints it"
            )
        events.append(_event(record, f"{path}:{number}"))
    if events is None:
        raise BadInput(f"{path}: expected a trace, as `statek-sim trace` prints it; it is empty")
    yield f"{path.as_posix()}#{count}", events


def _record(line: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{place}: not a line of a trace: {error}") from None
    if not isinstance(record, dict):
        raise BadInput(f"{place}: expected an object as a line of a trace, got {type(record).__name__}")
    return record


def _event(record: dict[str, Any], place: str) -> Event:
    try:
        event = event_of(record)
    except (KeyError, TypeError) as error:
        # Unknown event, or wrong members.
        raise BadInput(f"{place}: not an event of a trace: {error}") from None
    for spec in fields(event):
        value, kind = getattr(event, spec.name), str(spec.type)
        if value is None and kind == "str" and isinstance(event, ToolCalled | ToolReturned):
            continue  # A tool created by agents' code may have no name.
        if not _fits(value, kind, spec.name):
            found = repr(record.get(spec.name))[:40]
            raise BadInput(f"{place}: {record['event']}: {spec.name}: expected {spec.type}, found {found}")
    return event


def _fits(value: object, kind: str, name: str) -> bool:
    """Return whether a value has a plain type, given by name; contents of containers are not checked."""
    wanted = kind.removesuffix(" | None")
    if wanted not in _PLAIN or (value is None and wanted != kind):
        return True
    if not isinstance(value, _PLAIN[wanted]) or (isinstance(value, bool) and wanted != "bool"):
        return False
    if isinstance(value, str):
        return True
    return (0 if "tokens" in name else -MOST) <= value <= MOST


def _of_report(path: Path, text: str) -> Iterator[TaskFacts]:
    try:
        report = json.loads(text)
        if report["schema"] != _REPORT:
            raise BadInput(f"{path}: schema is {report['schema']!r}, expected {_REPORT!r}")
        for scenario in report["scenarios"]:
            for job in scenario["jobs"]:
                yield _of_job(scenario, job)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(f"{path}: not a report of `statek-sim run --json`: {why_another(error)}") from None


def _of_job(scenario: dict[str, Any], job: dict[str, Any]) -> TaskFacts:
    stop, usage = job["stop"], job["usage"]
    reported = usage["reported_tokens"]
    tokens = usage["measured_tokens"] if reported is None else reported
    found = {
        "suite": (scenario["suite"], "str"),
        "name": (job["name"], "str"),
        "stop": (stop, "str | None"),
        "turns": (job["turns"], "int"),
        "tokens": (tokens, "int"),
    }
    for name, (value, kind) in found.items():
        if not _fits(value, kind, name) or (name == "turns" and value < 0):
            raise TypeError(f"{name}: expected {kind}, found {str(value)[:40]!r}")
    return TaskFacts(
        run=f"{scenario['suite']}/{scenario['id']}[{scenario['profile']}]",
        group=scenario["suite"],
        job=job["name"],
        ended=0.0,
        outcome="open" if stop is None else "completed" if stop in COMPLETED else "failed",
        stop=stop,
        steps=job["turns"],
        tokens=tokens,
        subtasks=int(stop in COMPLETED),
        unmeasured=dict.fromkeys(_NOT_IN_REPORTS, "a report has no events; pass the trace instead"),
    )
