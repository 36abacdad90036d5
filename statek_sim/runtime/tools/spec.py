"""Tool specs: what a request's `tools` list says about a Python callable, and about STATEK's own system tools.

The summary and the descriptions of parameters come from the callable's docstring (behaviour 12).
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import FunctionType, NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.tools.future_calls import once_per_function
from statek_sim.values import JSON, ToolSpec

_TYPE_NAMES: Final[Mapping[object, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    tuple: "array",
    set: "array",
    frozenset: "array",
    dict: "object",
    NoneType: "null",
}

_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def tool_spec(function: Callable[..., object], *, union_hints: bool) -> ToolSpec:
    """Return the OpenAI function spec of `function`: one shared object per function, so do not change it.

    `union_hints` reads `X | None` like `Optional[X]`, as STATEK does from 1.4.0; before, it is an array.
    """
    return _with_union_hints(function) if union_hints else _without_union_hints(function)


@once_per_function
def _with_union_hints(function: Callable[..., object]) -> ToolSpec:
    return _build(function, union_hints=True)


@once_per_function
def _without_union_hints(function: Callable[..., object]) -> ToolSpec:
    return _build(function, union_hints=False)


def _build(function: Callable[..., object], *, union_hints: bool) -> ToolSpec:
    docstring = read_tool_docstring(function)
    hints = _hints(function)
    properties: dict[str, JSON] = {}
    required: list[JSON] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name.startswith("_") or parameter.kind in _VARIADIC:
            continue
        schema: dict[str, JSON] = {"type": _type_name(hints.get(name), union_hints=union_hints)}
        if name in docstring.parameters:
            schema["description"] = docstring.parameters[name]
        properties[name] = schema
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    parameters: dict[str, JSON] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    spec: dict[str, JSON] = {
        "name": function.__name__,
        "description": docstring.summary,
        "parameters": parameters,
    }
    return {"type": "function", "function": spec}


def _hints(function: Callable[..., object]) -> Mapping[str, object]:
    """Return resolved type hints, or the raw annotations of all parameters when one does not resolve."""
    try:
        return get_type_hints(function)
    except Exception:  # noqa: BLE001  # a user's annotation is foreign code
        return getattr(function, "__annotations__", {})


def _type_name(hint: object, *, union_hints: bool) -> str:
    """Return the JSON Schema type of a hint; what has no JSON type is a string.

    Of a union the first member that is not None counts.
    """
    origin = get_origin(hint)
    if origin is Union or (union_hints and origin is UnionType):
        members = [member for member in get_args(hint) if member is not NoneType]
        return _type_name(members[0], union_hints=union_hints) if members else "null"
    if origin is not None:
        return "object" if isinstance(origin, type) and issubclass(origin, dict) else "array"
    return _TYPE_NAMES.get(hint, "string")


_HEADERS: Final = frozenset(
    {
        *("Args", "Arguments", "Attributes", "Returns", "Return", "Raises", "Raise"),
        *("Example", "Examples", "Note", "Notes", "Tags", "STATEK-ACL"),
    }
)
_PARAMETER: Final = re.compile(r"\s{4,}(?P<name>\w+)\s*(?:\([^)]+\)\s*)?:\s*(?P<text>.*)")
_CONTINUATION_INDENT: Final = 8

_VARIANTS: Final = "VARIANTS/"
_VARIANT: Final = re.compile(r"/([A-Za-z0-9]{0,8}):")
_WANTED_VARIANT: Final = "tool"

_VARIADIC_DOCSTRING: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class ToolDocstring:
    """What a tool's docstring says: `summary`, and one description per documented parameter."""

    summary: str
    parameters: Mapping[str, str]


def read_tool_docstring(function: Callable[..., object]) -> ToolDocstring:
    """Return what STATEK takes from the Google-style docstring of `function`.

    The summary is the first paragraph on one line. When a parameter (even a private one) is missing under
    `Args:`, STATEK uses the first line alone and no parameter descriptions at all.
    """
    text = inspect.getdoc(function)
    if not text:
        return ToolDocstring("", {})
    lines = text.split("\n")
    described = dict(_described_parameters(_args_section(lines)))
    if not own_parameters(function) <= described.keys():
        return ToolDocstring(lines[0].strip(), {})
    return ToolDocstring(
        tool_variant(_first_paragraph(lines)),
        {name: tool_variant(description) for name, description in described.items()},
    )


def tool_variant(text: str) -> str:
    """Return the `tool` part of `VARIANTS/:default text/tool:tool text`, else its default part.

    A text that does not start with `VARIANTS/` is returned as it is.
    """
    body = text.lstrip()
    if not body.startswith(_VARIANTS):
        return text
    _, *pieces = _VARIANT.split(body.removeprefix(_VARIANTS[:-1]))
    if not pieces:
        return text
    variants = {name.lower(): variant for name, variant in zip(pieces[::2], pieces[1::2], strict=True)}
    return variants.get(_WANTED_VARIANT, variants.get("", ""))


def _first_paragraph(lines: Sequence[str]) -> str:
    """Return the lines up to the first blank line or section header, as one line."""
    paragraph: list[str] = []
    for line in lines:
        content = line.strip()
        if not content or header_of(content) is not None:
            break
        paragraph.append(content)
    return " ".join(paragraph)


def header_of(content: str) -> str | None:
    """Return the section that a stripped line opens, or None."""
    name = content.rstrip(":")
    return name if name != content and name in _HEADERS else None


def _args_section(lines: Sequence[str]) -> list[str]:
    """Return the lines of the last `Args:` section. `Arguments:` is a section, but not this one."""
    section: list[str] = []
    inside = False
    for line in lines:
        header = header_of(line.strip())
        if header is None:
            if inside:
                section.append(line)
            continue
        inside = header == "Args"
        if inside:
            section = []
    return section


def _described_parameters(section: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield `(name, description)`: entries are indented by 4 or more, continuation lines by 8 or more."""
    name: str | None = None
    texts: list[str] = []
    for line in section:
        content = line.strip()
        if not content:
            continue
        if entry := _PARAMETER.fullmatch(line):
            if name is not None:
                yield name, " ".join(texts)
            name, texts = entry["name"], [entry["text"].strip()] if entry["text"].strip() else []
        elif name is not None and len(line) - len(line.lstrip()) >= _CONTINUATION_INDENT:
            texts.append(content)
    if name is not None:
        yield name, " ".join(texts)


def own_parameters(function: Callable[..., object]) -> set[str]:
    """Return the parameters that a complete `Args:` section must describe."""
    ignored = {"self", "cls"}
    if getattr(function, "__is_subtask__", False):
        ignored.add("id")
    parameters = inspect.signature(function).parameters
    return {
        name for name, it in parameters.items() if name not in ignored and it.kind not in _VARIADIC_DOCSTRING
    }


@dataclass(frozen=True, slots=True)
class SystemToolSpec:
    """One registered system tool: its wire spec, the styles it is meant for (None for all), and its documentation.

    `docstr` and `brief` are what the tools of these names print about it.
    """

    name: str
    spec: ToolSpec
    target: frozenset[ChatStyle] | None
    docstr: str
    brief: str


_CALLABLES: Final[dict[Callable[..., Any], SystemToolSpec]] = {}


def stands_for(function: Callable[..., Any], tool: SystemToolSpec) -> None:
    """Note the callable of a system tool. It has no attribute for this: agents see those of a function."""
    _CALLABLES[function] = tool


def system_tool(function: object) -> SystemToolSpec | None:
    """Return the system tool that a callable stands for, None for anything else."""
    return _CALLABLES.get(function) if isinstance(function, FunctionType) else None


@cache
def system_tool_specs(version: str) -> tuple[SystemToolSpec, ...]:
    """Return the system tools of a profile's `system_tools`, in the order they are registered.

    The data is what the release sends, captured by `tools/capture_system_tools.py`. Do not change it.
    """
    name = f"system_tools_{version.replace('.', '_')}.json"
    text = files("statek_sim.runtime.tools").joinpath(name).read_text(encoding="utf-8")
    return tuple(
        SystemToolSpec(
            name=entry["spec"]["function"]["name"],
            spec=entry["spec"],
            target=None if entry["target"] is None else frozenset(map(ChatStyle, entry["target"])),
            docstr=entry["docstr"],
            brief=entry["brief"],
        )
        for entry in json.loads(text)["tools"]
    )
