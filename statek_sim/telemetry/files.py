"""Reads tasks from trace files, as printed by `statek-sim trace`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from statek_sim.errors import BadInput
from statek_sim.input_files import read_text
from statek_sim.telemetry.facts import Cost, TaskFacts, task_facts
from statek_sim.trace import Event, event_of


def groups_of(paths: Sequence[Path]) -> dict[Path, str]:
    """Return each file's group name: the file's name, with the folder if two files have the same name."""
    stems = [path.stem for path in dict.fromkeys(paths)]
    return {
        path: path.stem if stems.count(path.stem) == 1 else path.with_suffix("").as_posix() for path in paths
    }


def tasks_of_file(path: Path, *, cost: Cost | None = None, group: str | None = None) -> list[TaskFacts]:
    """Return the tasks in a trace file, in the order of the traces.

    `group` is the group of all tasks; the default is the file's name. Raises `BadInput` that locates the error.
    """
    found: list[TaskFacts] = []
    for run, events in _runs(path, read_text(path)):
        try:
            found += task_facts(events, run=run, group=group or path.stem, cost=cost)
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise BadInput(f"{run}: an event in this trace has a value of the wrong type: {error}") from None
    return found


def _runs(path: Path, text: str) -> Iterator[tuple[str, list[Event]]]:
    """Yield each trace in a file with its name, `PATH#N`; a trace starts with its header."""
    events: list[Event] | None = None
    count = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{place}: not a trace line: {error}") from None
        if not isinstance(record, dict):
            raise BadInput(f"{place}: expected a JSON object as a trace line, got {type(record).__name__}")
        if "trace" in record and "event" not in record:
            if events is not None:
                yield f"{path.as_posix()}#{count}", events
            events, count = [], count + 1
            continue
        if events is None:
            raise BadInput(f"{place}: expected a trace header, as printed by `statek-sim trace`")
        try:
            events.append(event_of(record))
        except (KeyError, TypeError) as error:
            # Unknown event, or wrong members.
            raise BadInput(f"{place}: not a trace event: {error}") from None
    if events is None:
        raise BadInput(f"{path}: the file is empty; expected a trace, as printed by `statek-sim trace`")
    yield f"{path.as_posix()}#{count}", events
