"""Tasks of other people's benchmarks as evals for `statek-sim evals`: what their right calls gave is the world.

The seed has nothing to choose in them, so their worlds are the same on every seed, and a call that nobody knows the
result of is refused. What becomes an eval is played first: its right script has to pass and its wrong ones to fail.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from statek_sim.evals.proving import proofs
from statek_sim.evals.suite import load_paths

_IN_A_FILE: Final = 40
_LARGEST_FILE: Final = 4_000_000
"""Evals of a file, and its characters: files of more than 5 MB are refused."""
_LONG: Final = 4
"""Right calls of a task from which on it is hard."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call and what it gave there, as JSON."""

    tool: str
    given: dict[str, Any]
    gave: Any


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool as a benchmark describes it: JSON Schemas by argument, and what an argument is when it is left out."""

    description: str
    arguments: Mapping[str, dict[str, Any]]
    required: Sequence[str]
    defaults: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Citation:
    """A value that the answer has to say; `tool` showed it, None for one that has to be worked out."""

    value: Any
    tool: str | None


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task of a benchmark: what is asked, how it is done rightly, and what else can be looked up there."""

    name: str
    title: str
    source: str
    asked: str
    prompt: str | None
    tools: Mapping[str, Tool]
    calls: Sequence[Call]
    lookups: Sequence[Call]
    cited: Sequence[Citation]
    answer: str


def folders(arguments: Sequence[str], program: str, package: str) -> tuple[Path, Path]:
    """Return where a benchmark's `package` is and where its evals go, as the command line of `program` names them."""
    parser = argparse.ArgumentParser(prog=f"python -m tools.{program}", allow_abbrev=False)
    parser.add_argument("folder", metavar="FOLDER", type=Path, help=f"the folder that {package} was put into")
    parser.add_argument("into", metavar="INTO", type=Path, help="the folder that the files of evals go into")
    options = parser.parse_args(arguments)
    if not (options.folder / package).is_dir():
        parser.error(f"{options.folder}: no {package} in it; tools/{program}.py begins with how to get it")
    return options.folder, options.into


def write_evals(tasks: Sequence[Task], total: int, into: Path, prefix: str) -> None:
    """Write those that tell right from wrong as files of `into`, and print how many of `total` tasks became one."""
    good = [found for found in map(_written, tasks) if _proves_itself(found)]
    into.mkdir(parents=True, exist_ok=True)
    for number, lot in enumerate(_lots(good), 1):
        (into / f"{prefix}-{number}.yaml").write_text(json.dumps({"evals": lot}), "utf-8")
    print(f"{len(good)} evals of {total} tasks in {into}")


def _lots(written: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the evals of one file after another."""
    lot: list[dict[str, Any]] = []
    size = 0
    for found in written:
        more = len(json.dumps(found))
        if lot and (len(lot) == _IN_A_FILE or size + more > _LARGEST_FILE):
            yield lot
            lot, size = [], 0
        lot.append(found)
        size += more
    if lot:
        yield lot


def is_steady(calls: Sequence[Call]) -> bool:
    """Tell whether the same arguments gave the same every time: a world of tables can say no more than that."""
    seen: dict[str, Any] = {}
    return all(
        seen.setdefault(f"{call.tool}{json.dumps(call.given, sort_keys=True)}", call.gave) == call.gave
        for call in calls
    )


def newest_value(calls: Sequence[Call], question: str) -> tuple[str, str, Any] | None:
    """Return the newest tool, key and value of a result that the task does not give away."""
    earlier = question + "".join(json.dumps(call.given) for call in calls)
    for call in reversed(calls):
        for key, value in call.gave.items() if isinstance(call.gave, dict) else ():
            text = str(value)
            fits = isinstance(value, str | int | float) and not isinstance(value, bool)
            if fits and 3 <= len(text) <= 60 and text not in earlier and re.fullmatch(r"\w[^\n{}=]*\w", text):
                return call.tool, key, value
    return None


def _proves_itself(written: Mapping[str, Any]) -> bool:
    """Tell whether an eval can be read and played: some right calls do not fit their tool's own schema."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "written.yaml"
        path.write_text(json.dumps({"evals": [written]}), "utf-8")
        loaded = load_paths([path])
        return not loaded.problems and all(proof.as_it_should for proof in proofs(loaded.evals[0], [0]))


def _written(task: Task) -> dict[str, Any]:
    steps = [{"call": call.tool, "with": _literal(call.given)} for call in task.calls]
    answer = {"answer": _literal(task.answer)}
    known = [*task.calls, *task.lookups]
    return {
        "id": task.name,
        "tier": "hard" if len(task.calls) >= _LONG else "medium",
        "capability": "multi-turn",
        "title": task.title,
        "source": task.source,
        # The seed has nothing to choose here but the greeting.
        "vary": {"greeting": {"one_of": ["Please do this", "I need this done", "This is for you"]}},
        "world": {f"known_{name}": {"rows": _rows(tool, name, known)} for name, tool in task.tools.items()},
        "tools": {name: _tool(name, tool) for name, tool in task.tools.items()},
        **({} if task.prompt is None else {"prompt": _literal(task.prompt)}),
        "task": f"{{greeting}}: {_literal(task.asked)}",
        "steps": list(dict.fromkeys(call.tool for call in task.calls)),
        "max_iterations": len(task.calls) + 8,
        "plan": [*steps, answer],
        "check": {
            "calls": [{"tool": call.tool, "with": _literal(call.given)} for call in task.calls],
            "cites": [*_citations(task.cited)],
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


def _citations(cited: Sequence[Citation]) -> Iterator[dict[str, Any]]:
    for citation in cited:
        shown = {"computed": True} if citation.tool is None else {"from": citation.tool}
        yield {"value": _literal(citation.value), **shown}


def _literal(value: Any) -> Any:
    """Return a value that means itself in a file of evals."""
    if isinstance(value, str):
        text = value.replace("{", "{{").replace("}", "}}")
        return f"{{'='}}{text[1:]}" if text.startswith("=") else text
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, list | tuple) else value


def _rows(tool: Tool, name: str, known: Sequence[Call]) -> list[dict[str, Any]]:
    """Return what is known of a tool: its arguments, those that were left out by their default, and what it gave."""
    rows: list[dict[str, Any]] = []
    for call in known:
        if call.tool == name:
            given = {key: call.given.get(key, tool.defaults.get(key)) for key in tool.arguments}
            rows.append({**_literal(given), "what_it_gave": _literal(call.gave)})
    return [row for at, row in enumerate(rows) if row not in rows[:at]]


def _tool(name: str, tool: Tool) -> dict[str, Any]:
    wanted = ", ".join(
        f"{key}={key} if {key} is not None else {tool.defaults.get(key)!r}" for key in tool.arguments
    )
    table = f"known_{name}"
    return {
        "description": tool.description,
        "parameters": dict(tool.arguments),
        "optional": [key for key in tool.arguments if key not in tool.required],
        "refuses": [
            {
                "when": f"not some({table}{', ' + wanted if wanted else ''})",
                "says": f"{name}: nothing is there for these arguments",
            }
        ],
        "gives": f"=one({table}{', ' + wanted if wanted else ''}).what_it_gave",
    }
