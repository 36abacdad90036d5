"""Writes the reference pages from the code: `python -m tools.reference`, or `make docs`.

`docs/python-api.md` comes from docstrings and type hints, `docs/scenario-format.md` from the scenario JSON Schema, and
`docs/commands.md` from the declarations of options. A test checks that they are up to date.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest_statek
from pytest_statek.options import MARKER
from statek_sim.scenario.locate import json_schema
from statek_sim.suite.listing import tool_lines
from tools.command_reference import command_sections, pytest_sections

ROOT: Final = Path(__file__).resolve().parent.parent
DOCS: Final = ROOT / "docs"
_PLUGIN: Final = Path(pytest_statek.__file__).parent
_FIXTURES: Final = ("fixtures.py",)

_HEAD: Final = "<!-- Written by `make docs` from the code. Do not edit. -->"

PUBLIC: Final = (
    "script",
    "providers",
    "server",
    "trajectory",
    "cassettes",
    "jobs",
    "agents",
    "context",
    "memory",
    "checkpoints",
    "store",
    "guards",
    "permissions",
    "containment",
    "protection",
    "rescue",
    "escalation",
    "slots",
    "mcp_client",
    "mcp",
    "metrics",
    "analysis",
    "checks",
    "guests",
    "evals",
    "explore",
    "executors",
)
"""The public modules in `statek_sim`, one per subject, in page order."""

GIVEN: Final = (
    "statek_sim.scriptable:ScriptableLLM",
    "statek_sim.app:StatekApp",
    "statek_sim.trace:JobTrace",
    "statek_sim.trace:Trace",
)
"""Types returned by fixtures and runs, which users name in type hints but never create."""

UNAVAILABLE: Final = {"ScriptedClient": "A client for Forge's harness, which needs the package `forge`."}
"""Names whose modules import a package that cannot be installed with the others."""


def python_api() -> str:
    """Return the Python API page."""
    blocks = ["# The Python API", _HEAD, _API, _SOURCES, *_fixtures(), *_marker()]
    blocks.append("## Types that fixtures return")
    for home in GIVEN:
        module, _, attribute = home.partition(":")
        blocks += _described(attribute, getattr(importlib.import_module(module), attribute))
    for name in ("", *PUBLIC):
        blocks += _subject(f"statek_sim.{name}" if name else "statek_sim")
    blocks += ["## Built-in tools", "Scenarios use these tools by name."]
    blocks.append("```text\n" + "\n".join(tool_lines()) + "\n```")
    blocks += ["## Hooks", *_functions(_PLUGIN / "hooks.py", fixtures=False)]
    return "\n\n".join(blocks) + "\n"


def _subject(name: str) -> Iterator[str]:
    """Yield a public module's purpose and its names."""
    module = importlib.import_module(name)
    yield f"## `{name}`"
    yield inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0]
    for attribute in module.__all__:
        if attribute in UNAVAILABLE:
            yield f"### `{attribute}`"
            yield UNAVAILABLE[attribute]
        else:
            yield from _described(attribute, getattr(module, attribute))


def _fixtures() -> Iterator[str]:
    yield "## Fixtures"
    for file in _FIXTURES:
        yield from _functions(_PLUGIN / file, fixtures=True)


def _functions(path: Path, *, fixtures: bool) -> Iterator[str]:
    """Yield a file's public functions from its source, because pytest replaces fixtures with other objects."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        is_fixture = any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list)
        if is_fixture is not fixtures:
            continue
        returns = "" if node.returns is None else ast.unparse(node.returns)
        given = re.sub(r"^Iterator\[(.*)\]$", r"\1", returns)
        heading = f"{node.name}: {given}" if fixtures else f"{node.name}({ast.unparse(node.args)})"
        yield f"### `{heading}`"
        yield inspect.cleandoc(ast.get_docstring(node) or "")


def _marker() -> Iterator[str]:
    signature, _, meaning = MARKER.partition("): ")
    yield "## The marker"
    yield f"`@pytest.mark.{signature})`"
    yield f"{meaning[:1].upper()}{meaning[1:]}"


def _described(name: str, value: Any) -> Iterator[str]:
    """Yield a heading, the docstring and, for a class, its public members."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        yield f"### `{name}`"
        return
    yield f"### `{_called(name, value)}`"
    yield inspect.cleandoc(value.__doc__ or "")
    members = list(_members(value)) if inspect.isclass(value) else []
    if members:
        yield "\n".join(members)


def _members(owner: type) -> Iterator[str]:
    """Yield a line per public attribute, property and method, with its docstring's first paragraph."""
    if issubclass(owner, enum.Enum):
        yield from (f"- `{member.name}`" for member in owner)
        return
    for name, member in vars(owner).items():
        if name.startswith("_"):
            continue
        found = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(found, property):
            yield _line(name + _returned(found.fget), found.__doc__)
        elif inspect.isfunction(found):
            yield _line(_called(name, found) + _returned(found), found.__doc__)


def _line(shown: str, doc: str | None) -> str:
    first = " ".join(inspect.cleandoc(doc or "").partition("\n\n")[0].split())
    return f"- `{shown}`: {first}" if first else f"- `{shown}`"


def _returned(function: Any) -> str:
    returns = inspect.signature(function).return_annotation
    return "" if returns is inspect.Signature.empty else f" -> {_hint(returns)}"


def _called(name: str, function: Any) -> str:
    """Return a callable's signature with hints and defaults."""
    if inspect.isclass(function) and issubclass(function, enum.Enum | BaseException):
        return name
    if getattr(function, "_is_protocol", False):
        return name
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return name
    parts: list[str] = []
    for at, parameter in enumerate(parameters):
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(
            before.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL) for before in parameters[:at]
        ):
            parts.append("*")
        if parameter.kind is parameter.VAR_KEYWORD and inspect.isclass(function):
            # Attributes of the class that are given by name.
            parts.append("*")
            parts += (
                f"{attribute}: {_hint(hint)} = {_default(getattr(function, attribute))}"
                for attribute, hint in inspect.get_annotations(function).items()
            )
            continue
        stars = (
            "*"
            if parameter.kind is parameter.VAR_POSITIONAL
            else "**"
            if parameter.kind is parameter.VAR_KEYWORD
            else ""
        )
        hint = "" if parameter.annotation is parameter.empty else f": {_hint(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        parts.append(f"{stars}{parameter.name}{hint}{default}")
    return f"{name}({', '.join(parts)})"


def _hint(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    shown = repr(value)
    # An address or a long value says nothing.
    return "..." if " at 0x" in shown or len(shown) > 40 else shown


# -- the scenario format -----------------------------------------------------------------------------------------------

FIRST: Final = (
    "ScenarioText",
    "AgentText",
    "JobText",
    "World",
    "Queue",
    "QueueItem",
    "Reply",
    "When",
    "TextMatch",
)
"""The parts described first, after the file; the rest follows in alphabetical order."""

TITLES: Final = {
    "ScenarioText": "Scenario",
    "AgentText": "Agent",
    "JobText": "Job",
    "ReminderText": "Reminder",
}

_INTRODUCTION: Final = """\
A scenario file is a YAML file with the following fields. `statek-sim list schema` prints the JSON Schema for your
editor, and `statek-sim validate PATH` checks files. Times are in virtual seconds, given as numbers or as durations such
as `90s` and `2h30m`. A run starts on 2026-01-01 at 09:00 UTC; `at` also accepts times such as `tomorrow 09:00` and
`2026-01-05 14:30`."""

_API: Final = """\
Fixtures come first, then the types that they return, then each public module. Import a name from the module in its
heading."""

_COMMANDS: Final = """\
`statek-sim help COMMAND`, `pytest --help` and `pytest --markers` print the same texts. Exit codes are 0 for success, 1
if a check failed, and 2 for invalid input."""

_SOURCES: Final = """\
"Behaviour 8" refers to section 8 of [What STATEK does](statek-behaviour.md). For the agent document and the harness
document, see the [glossary](glossary.md)."""


def scenario_format() -> str:
    """Return the page on scenario file fields."""
    schema: Any = json_schema()
    parts: dict[str, Any] = schema["$defs"]
    order = [*FIRST, *sorted(set(parts) - {*FIRST, "JsonValue"})]
    blocks = [
        "# Scenario format",
        _HEAD,
        _INTRODUCTION,
        _SOURCES,
        "## File",
        _fields(schema),
    ]
    for name in order:
        described = parts[name]
        blocks += [f"## {TITLES.get(name, name)}", described.get("description", "")]
        table = _fields(described)
        blocks.append(table or f"Type: {_type(described)}.")
    return "\n\n".join(block for block in blocks if block) + "\n"


def _fields(part: dict[str, Any]) -> str:
    properties = part.get("properties") or next(
        (option["properties"] for option in part.get("anyOf", ()) if "properties" in option), None
    )
    if not properties:
        return ""
    required = part.get("required", ())
    rows = ["| field | type | default | description |", "|---|---|---|---|"]
    for name, field in sorted(properties.items(), key=lambda item: item[0] not in required):
        default = "required" if name in required else _shown_default(field)
        rows.append(f"| `{name}` | {_type(field)} | {default} | {_cell(field.get('description', ''))} |")
    return "\n".join(rows)


def _shown_default(field: dict[str, Any]) -> str:
    value = field.get("default")
    if value in (None, "", [], {}) and not isinstance(value, bool | int | float):
        return ""
    if isinstance(value, list):
        return _cell(", ".join(map(str, value)))
    return f"`{str(value).lower() if isinstance(value, bool) else _number(value)}`"


def _number(value: Any) -> str:
    return f"{value:,.0f}" if isinstance(value, float | int) and value >= 10_000 else f"{value}"


def _type(field: dict[str, Any]) -> str:
    """Describe a value's type, with links to the parts."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        if name == "JsonValue":
            return "any value"
        title = TITLES.get(name, name)
        return f"[{title}](#{title.lower()})"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in field and "type" not in field:
            return " or ".join(dict.fromkeys(_type(option) for option in field[key]))
    if "const" in field:
        return f"`{str(field['const']).lower() if isinstance(field['const'], bool) else field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{option}`" for option in field["enum"])
    match field.get("type"):
        case "array":
            inner = _type(field.get("items", {}))
            return "list of strings" if inner == "string" else f"list of {inner}"
        case "object":
            value = field.get("additionalProperties") or next(
                iter(field.get("patternProperties", {}).values()), None
            )
            return f"mapping of string to {_type(value)}" if isinstance(value, dict) and value else "mapping"
        case "string":
            return "string"
        case "integer":
            return "integer" + _bounds(field)
        case "number":
            return "number" + _bounds(field)
        case "boolean":
            return "boolean"
        case "null":
            return "null"
        case list(kinds):
            return " or ".join(_type({"type": kind}) for kind in kinds)
    return "any value"


def _bounds(field: dict[str, Any]) -> str:
    if field.get("exclusiveMinimum") == 0 or field.get("minimum") == 1:
        return " > 0"
    return " >= 0" if field.get("minimum") == 0 else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def commands() -> str:
    """Return the page on commands, pytest options and settings."""
    blocks = ["# Commands and settings", _HEAD, _COMMANDS, *command_sections(), *pytest_sections()]
    return "\n\n".join(blocks) + "\n"


PAGES: Final = {
    "python-api.md": python_api,
    "scenario-format.md": scenario_format,
    "commands.md": commands,
}


def main(arguments: Sequence[str]) -> int:
    """Write the pages; return 0, or 2 if there are arguments."""
    if arguments:
        print(textwrap.dedent(__doc__ or ""), file=sys.stderr)
        return 2
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
        print(f"wrote {(DOCS / name).relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
