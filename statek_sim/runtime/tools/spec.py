"""Tool specs: what a request's `tools` list says about a Python callable (behaviour 12)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Final, Union, get_args, get_origin, get_type_hints

from statek_sim.runtime.tools.docstring import read_tool_docstring
from statek_sim.runtime.tools.per_function import once_per_function
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
