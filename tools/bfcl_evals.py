"""Evals made of the multi-turn tasks of BFCL v4, for `statek-sim evals`; nothing of them is kept in this repository.

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d BFCL
    python -m tools.bfcl_evals BFCL evals-of-bfcl && statek-sim evals check evals-of-bfcl

The tasks, their right calls, the descriptions of the tools and the programs that the calls run in are BFCL's (the
Berkeley Function Calling Leaderboard, Apache License, Version 2.0). The turns of a task are asked for at once. Tasks
are left out whose calls fail, do not fit their tools, give different results for the same arguments, or show nothing to
be cited.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tools.bfcl_talks import _MODULES, _called, _program
from tools.borrowed_evals import Call, Citation, Task, Tool, folders, is_steady, newest_value, write_evals

_SOURCE: Final = "BFCL_v4_multi_turn_base.json"
_TYPES: Final = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


def main(folder: Path, into: Path) -> None:
    """Write the evals as files of `into`, and print how many tasks became one."""
    sys.path.insert(0, str(folder))
    data = folder / "bfcl_eval" / "data"
    tasks = [json.loads(line) for line in (data / _SOURCE).read_text("utf-8").splitlines()]
    answers = (data / "possible_answer" / _SOURCE).read_text("utf-8").splitlines()
    right = {answer["id"]: answer["ground_truth"] for answer in map(json.loads, answers)}
    found = [_task(data, task, right[task["id"]]) for task in tasks]
    write_evals([task for task in found if task is not None], len(tasks), into, "bfcl")


def _task(data: Path, task: dict[str, Any], turns: Sequence[Sequence[str]]) -> Task | None:
    if not all(name in _MODULES for name in task["involved_classes"]):
        return None  # MathAPI needs a library of its own
    calls = list(_right_calls(task, turns))
    if len(calls) < 2 or any(isinstance(call.gave, dict) and "error" in call.gave for call in calls):
        return None
    question = " Then: ".join(message["content"] for turn in task["question"] for message in turn)
    newest = newest_value(calls, question)
    if newest is None or not is_steady(calls):
        return None
    name, key, value = newest
    return Task(
        name=task["id"].replace("_", "-"),
        title=f"BFCL's task {task['id']}, its turns asked for at once",
        source=f"BFCL v4, {task['id']} (Apache-2.0)",
        asked=f"{question} At the end tell me the {key} that {name} gave last.",
        prompt=None,
        tools=_tools(data, task["involved_classes"]),
        calls=calls,
        lookups=(),
        cited=[Citation(value=value, tool=name)],
        answer=f"Done. The {key} is {value}.",
    )


def _right_calls(task: dict[str, Any], turns: Sequence[Sequence[str]]) -> Iterator[Call]:
    programs = [_program(name, task["initial_config"].get(name)) for name in task["involved_classes"]]
    for written in [call for turn in turns for call in turn]:
        name, arguments, result = _called(programs, written)
        try:
            gave = json.loads(result)
        except ValueError:
            gave = result
        yield Call(tool=name, given=arguments, gave=gave)


def _tools(data: Path, classes: Sequence[str]) -> dict[str, Tool]:
    """Return BFCL's descriptions of the tools of these programs."""
    found = {}
    for name in classes:
        text = (data / "multi_turn_func_doc" / f"{_MODULES[name]}.json").read_text("utf-8")
        for spec in map(json.loads, text.splitlines()):
            parts: Mapping[str, Any] = spec["parameters"].get("properties", {})
            found[spec["name"]] = Tool(
                description=spec["description"].rpartition("Tool description: ")[2],
                arguments={key: _schema(part) for key, part in parts.items()},
                required=spec["parameters"].get("required", []),
                defaults={key: _default(part) for key, part in parts.items()},
            )
    return found


def _default(part: Mapping[str, Any]) -> Any:
    default = part.get("default")
    if isinstance(default, str) and part.get("type") != "string":
        try:
            return ast.literal_eval(default)
        except (ValueError, SyntaxError):
            return None
    return default


def _schema(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema of BFCL's own kind of one."""
    made: dict[str, Any] = {
        key: part[key] for key in ("description", "enum", "required") if part.get(key) is not None
    }
    made["type"] = _TYPES.get(part["type"], part["type"])
    if isinstance(part.get("items"), dict):
        made["items"] = _schema(part["items"])
    if isinstance(part.get("properties"), dict):
        made["properties"] = {key: _schema(inner) for key, inner in part["properties"].items()}
    return made


if __name__ == "__main__":
    main(*folders(sys.argv[1:], "bfcl_evals", "bfcl_eval"))
