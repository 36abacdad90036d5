"""Evals made of the multi-turn tasks of BFCL v4, for `statek-sim evals`; nothing of them is kept in this repository.

    pip download --no-deps bfcl-eval && unzip bfcl_eval-*.whl -d BFCL
    python -m tools.bfcl_evals BFCL evals-of-bfcl && statek-sim evals check evals-of-bfcl

The tasks, their right calls, the descriptions of the tools and the programs that the calls run in are BFCL's (the
Berkeley Function Calling Leaderboard, Apache License, Version 2.0). The turns of a task are asked for at once. What its
right calls gave in those programs is the world: another call is refused, so these worlds are the same on every seed.
Tasks are left out whose calls fail, do not fit their tools, give different results for the same arguments, or show
nothing to be cited.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from statek_sim.evals.proving import proofs
from statek_sim.evals.suite import load_paths
from tools.bfcl_talks import _MODULES, _called, _program

_SOURCE: Final = "BFCL_v4_multi_turn_base.json"
_IN_A_FILE: Final = 40
"""Evals of a file: the descriptions of the tools are long, and files of more than 5 MB are refused."""
_LONG: Final = 4
"""Right calls of a task from which on it is hard."""
_TYPES: Final = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}

Call = tuple[str, dict[str, Any], Any]
"""A right call: the tool, its arguments, what it gave."""


def main(folder: Path, into: Path) -> None:
    """Write the evals as files of `into`, and print how many tasks became one."""
    sys.path.insert(0, str(folder))
    data = folder / "bfcl_eval" / "data"
    tasks = [json.loads(line) for line in (data / _SOURCE).read_text("utf-8").splitlines()]
    answers = (data / "possible_answer" / _SOURCE).read_text("utf-8").splitlines()
    right = {one["id"]: one["ground_truth"] for one in map(json.loads, answers)}
    made = [found for task in tasks if (found := _eval(data, task, right[task["id"]])) is not None]
    good = [one for one in made if _loads(one)]
    into.mkdir(parents=True, exist_ok=True)
    for at in range(0, len(good), _IN_A_FILE):
        path = into / f"bfcl-{at // _IN_A_FILE + 1}.yaml"
        path.write_text(json.dumps({"evals": good[at : at + _IN_A_FILE]}), "utf-8")
    print(f"{len(good)} evals of {len(tasks)} tasks in {into}")


def _loads(one: Mapping[str, Any]) -> bool:
    """Return whether an eval can be read and played: some right calls do not fit their tool's own schema."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "one.yaml"
        path.write_text(json.dumps({"evals": [one]}), "utf-8")
        loaded = load_paths([path])
        return not loaded.problems and all(proof.as_it_should for proof in proofs(loaded.evals[0], [0]))


def _eval(data: Path, task: dict[str, Any], turns: Sequence[Sequence[str]]) -> dict[str, Any] | None:
    if not all(name in _MODULES for name in task["involved_classes"]):
        return None  # MathAPI needs a library of its own
    calls = list(_right_calls(task, turns))
    if len(calls) < 2 or any(isinstance(gave, dict) and "error" in gave for _, _, gave in calls):
        return None
    if not _steady(calls):
        return None
    asked = " Then: ".join(one["content"] for turn in task["question"] for one in turn)
    cited = _cited(calls, asked)
    if cited is None:
        return None
    return _written(task["id"], _specs(data, task["involved_classes"]), asked, calls, *cited)


def _right_calls(task: dict[str, Any], turns: Sequence[Sequence[str]]) -> Iterator[Call]:
    programs = [_program(name, task["initial_config"].get(name)) for name in task["involved_classes"]]
    for written in [call for turn in turns for call in turn]:
        name, arguments, result = _called(programs, written)
        try:
            gave = json.loads(result)
        except ValueError:
            gave = result
        yield name, arguments, gave


def _steady(calls: Sequence[Call]) -> bool:
    seen: dict[str, Any] = {}
    return all(
        seen.setdefault(f"{name}{json.dumps(given, sort_keys=True)}", gave) == gave
        for name, given, gave in calls
    )


def _cited(calls: Sequence[Call], asked: str) -> tuple[str, str, Any] | None:
    """Return the newest tool, key and value of a result that the task does not give away."""
    earlier = asked + "".join(json.dumps(given) for _, given, _ in calls)
    for name, _, gave in reversed(calls):
        for key, value in gave.items() if isinstance(gave, dict) else ():
            text = str(value)
            fits = isinstance(value, str | int | float) and not isinstance(value, bool)
            if fits and 3 <= len(text) <= 60 and text not in earlier and re.fullmatch(r"\w[^\n{}=]*\w", text):
                return name, key, value
    return None


def _specs(data: Path, classes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return BFCL's descriptions of the tools of these programs."""
    found = {}
    for name in classes:
        text = (data / "multi_turn_func_doc" / f"{_MODULES[name]}.json").read_text("utf-8")
        found.update({spec["name"]: spec for spec in map(json.loads, text.splitlines())})
    return found


def _written(
    id_: str,
    specs: Mapping[str, dict[str, Any]],
    asked: str,
    calls: Sequence[Call],
    last: str,
    key: str,
    value: Any,
) -> dict[str, Any]:
    steps = [{"call": name, "with": _literal(given)} for name, given, _ in calls]
    answer = {"answer": _literal(f"Done. The {key} is {value}.")}
    return {
        "id": id_.replace("_", "-"),
        "tier": "hard" if len(calls) >= _LONG else "medium",
        "capability": "multi-turn",
        "title": f"BFCL's task {id_}, its turns asked for at once",
        "source": f"BFCL v4, {id_} (Apache-2.0)",
        # The seed has nothing to choose here but the greeting.
        "vary": {"greeting": {"one_of": ["Please do this", "I need this done", "This is for you"]}},
        "world": {f"known_{name}": {"rows": _rows(spec, name, calls)} for name, spec in specs.items()},
        "tools": {name: _tool(name, spec) for name, spec in specs.items()},
        "task": "{greeting}: "
        + str(_literal(asked))
        + f" At the end tell me the {key} that {last} gave last.",
        "steps": list(dict.fromkeys(name for name, _, _ in calls)),
        "max_iterations": len(calls) + 8,
        "plan": [*steps, answer],
        "check": {
            "calls": [{"tool": name, "with": _literal(given)} for name, given, _ in calls],
            "cites": [{"value": _literal(value), "from": last}],
        },
        "wrong": [
            {"id": "guessed", "why": "Nothing is called.", "plan": [answer]},
            {"id": "a-step-short", "why": "The first call is left out.", "plan": [*steps[1:], answer]},
            {
                "id": "says-done",
                "why": "Everything is done and nothing told.",
                "plan": [*steps, {"answer": "Done."}],
            },
        ],
    }


def _literal(value: Any) -> Any:
    """Return a value that means itself in a file of evals."""
    if isinstance(value, str):
        text = value.replace("{", "{{").replace("}", "}}")
        return f"{{'='}}{text[1:]}" if text.startswith("=") else text
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, list | tuple) else value


def _rows(spec: Mapping[str, Any], name: str, calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Return what is known of a tool: its arguments, those that were left out by their default, and what it gave."""
    rows: list[dict[str, Any]] = []
    for called, given, gave in calls:
        if called == name:
            row = {key: given.get(key, _default(part)) for key, part in _properties(spec).items()}
            rows.append({**_literal(row), "what_it_gave": _literal(gave)})
    return [row for at, row in enumerate(rows) if row not in rows[:at]]


def _default(part: Mapping[str, Any]) -> Any:
    default = part.get("default")
    if isinstance(default, str) and part.get("type") != "string":
        try:
            return ast.literal_eval(default)
        except (ValueError, SyntaxError):
            return None
    return default


def _properties(spec: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = spec["parameters"].get("properties", {})
    return found


def _tool(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    parts = _properties(spec)
    wanted = ", ".join(
        f"{key}={key} if {key} is not None else {_default(part)!r}" for key, part in parts.items()
    )
    table = f"known_{name}"
    required = spec["parameters"].get("required", [])
    return {
        "description": _literal(spec["description"].rpartition("Tool description: ")[2]),
        "parameters": {key: _literal(_schema(part)) for key, part in parts.items()},
        "optional": [key for key in parts if key not in required],
        "refuses": [
            {
                "when": f"not some({table}{', ' + wanted if wanted else ''})",
                "says": f"{name}: nothing is there for these arguments",
            }
        ],
        "gives": f"=one({table}{', ' + wanted if wanted else ''}).what_it_gave",
    }


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
    main(Path(sys.argv[1]), Path(sys.argv[2]))
