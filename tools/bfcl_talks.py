"""Conversations for `statek-sim context audit`, played from the multi-turn tasks of BFCL v4.

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d BFCL
    python -m tools.bfcl_talks BFCL > statek_sim/agent/context/talks.jsonl

The tasks, their right calls and the programs that the calls run in are BFCL's (the Berkeley Function Calling
Leaderboard, Apache License, Version 2.0); the model's own words between calls are not part of it, so there are none.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

_MODULES: Final = {
    "GorillaFileSystem": "gorilla_file_system",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
_PACKAGE: Final = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
_SOURCE: Final = "BFCL_v4_multi_turn_long_context.json"
_WANTED: Final = 12
_LEAST, _LARGEST = 6_000, 24_000
"""Characters of a conversation; those that read whole directories of filling are left out."""


def main(folder: Path) -> None:
    """Print the first conversations of each program, as JSON Lines."""
    sys.path.insert(0, str(folder))
    tasks = [json.loads(line) for line in (folder / "bfcl_eval/data" / _SOURCE).read_text().splitlines()]
    answers = folder / "bfcl_eval/data/possible_answer" / _SOURCE
    right = {
        answer["id"]: answer["ground_truth"] for answer in map(json.loads, answers.read_text().splitlines())
    }
    print("\n".join(_lines(tasks, right)))


def _lines(tasks: list[dict[str, Any]], right: dict[str, list[list[str]]]) -> Iterator[str]:
    made = 0
    for task in tasks:
        if not all(name in _MODULES for name in task["involved_classes"]):
            continue  # MathAPI needs a library of its own
        messages = list(_played(task, right[task["id"]]))
        line = json.dumps({"id": task["id"], "messages": messages}, ensure_ascii=False, separators=(",", ":"))
        # A short one never needs compaction at all.
        calls = sum("tool_calls" in message for message in messages)
        if calls >= 7 and _LEAST <= len(line) <= _LARGEST and made < _WANTED:
            made += 1
            yield line


def _played(task: dict[str, Any], turns: list[list[str]]) -> Iterator[dict[str, Any]]:
    programs = [_program(name, task["initial_config"].get(name)) for name in task["involved_classes"]]
    number = 0
    for messages, calls in zip(task["question"], turns, strict=True):
        yield from ({"role": message["role"], "content": message["content"]} for message in messages)
        for call in calls:
            number += 1
            name, arguments, result = _called(programs, call)
            function = {"name": name, "arguments": json.dumps(arguments)}
            calling = [{"id": f"call_{number}", "type": "function", "function": function}]
            yield {"role": "assistant", "content": None, "tool_calls": calling}
            yield {"role": "tool", "content": result, "tool_call_id": f"call_{number}"}


def _program(name: str, config: dict[str, Any] | None) -> Any:
    made = getattr(importlib.import_module(f"{_PACKAGE}.{_MODULES[name]}"), name)()
    if config is not None:
        parameters = inspect.signature(made._load_scenario).parameters
        given = {"long_context": True} if "long_context" in parameters else {}
        made._load_scenario(deepcopy(config), **given)
    return made


def _called(programs: list[Any], written: str) -> tuple[str, dict[str, Any], str]:
    """Run one right answer, Python's call of a function of one of the programs."""
    call = ast.parse(written, mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    name = call.func.id
    run = next(getattr(program, name) for program in programs if hasattr(program, name))
    positional = [ast.literal_eval(argument) for argument in call.args]
    named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    arguments = inspect.signature(run).bind(*positional, **named).arguments
    try:
        result = run(**arguments)
    except Exception as error:  # noqa: BLE001  # what the program raises is what the model reads
        result = {"error": str(error)}
    return name, dict(arguments), result if isinstance(result, str) else json.dumps(result, default=str)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
