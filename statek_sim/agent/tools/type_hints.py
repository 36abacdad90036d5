"""Reads the type hints and docstring of a tool's function, and converts arguments accordingly.

For example, a string is converted to a date, and an object to a model.
"""

from __future__ import annotations

import functools
import inspect
import json
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from statek_sim.agent.effects import ToolContext
from statek_sim.errors import StatekSimError
from statek_sim.providers.mismatch import shorten
from statek_sim.sandbox.ordered_set import stable_set
from statek_sim.values import JSON

Conversions = Mapping[str, TypeAdapter[Any]]
"""Converters for a call's JSON values, keyed by parameter name."""

_JSON_TYPES: Final = (str, int, float, bool, type(None), None, Any, object, dict, list)
_HELD_BY: Final = (list, dict, Union, types.UnionType, Sequence, MutableSequence, Mapping, MutableMapping)
_MOST: Final = 5
_SHOWN: Final = 60


def conversion_of(hint: Any) -> TypeAdapter[Any] | None:
    """Return a converter to a hint's type, or None if JSON values need no conversion."""
    hint = _listed(hint)
    return None if _is_json(hint) else TypeAdapter(hint)


def _listed(hint: Any) -> Any:
    """Return a hint with `Iterable` replaced by a list, because pydantic would return a one-time iterator."""
    if hint is Iterable:
        return list
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Iterable:
        return list[inner[0]]  # type: ignore[valid-type]  # the type is known only at run time
    if origin in (Union, types.UnionType):
        return Union[tuple(map(_listed, inner))]  # noqa: UP007  # its members are known only at run time
    return hint


def thawed(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return hints with real date classes in place of freezegun's fake ones."""
    return {name: _thawed(hint) for name, hint in hints.items()}


def _thawed(hint: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and hint.__module__ == "freezegun.api":
        return hint.__mro__[1]
    if origin is None or origin is Literal or all(_thawed(part) is part for part in inner):
        return hint
    if origin is Annotated:
        return Annotated[_thawed(inner[0]), *hint.__metadata__]
    parts = tuple(map(_thawed, inner))
    return Union[parts] if origin is types.UnionType else origin[parts]  # noqa: UP007  # known only at run time


def _is_json(hint: Any) -> bool:
    if hint in _JSON_TYPES:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        described = all(isinstance(about, str) or _only_describes(about) for about in inner[1:])
        return described and _is_json(inner[0])
    if origin is Literal:
        return all(type(option) in (str, int, bool, type(None)) for option in inner)
    if origin in _HELD_BY:
        return all(map(_is_json, inner))
    return False


def _only_describes(about: object) -> bool:
    """Return whether an annotation only describes a parameter, and does not convert or restrict its value."""
    return isinstance(about, FieldInfo) and not about.metadata


def converted_arguments(arguments: Mapping[str, JSON], conversions: Conversions) -> dict[str, Any]:
    """Return the arguments for the tool's code; raises pydantic's `ValidationError`, or a validator's error."""
    return {
        name: with_ordered_sets(_made(value, conversions[name])) if name in conversions else value
        for name, value in arguments.items()
    }


def problems_of(arguments: Mapping[str, JSON], conversions: Conversions) -> tuple[str, ...]:
    """Return why arguments do not match the hints, such as `arguments.tags: expected a valid set, got 5`."""
    problems: list[str] = []
    for name, value in arguments.items():
        if name in conversions:
            problems += _problems(f"arguments.{name}", value, conversions[name])
    return tuple(problems[:_MOST])


def _made(value: Any, conversion: TypeAdapter[Any]) -> Any:
    """Return a value converted from JSON, or from Python if it is not a JSON value, as tests may pass.

    A strict model accepts a string as a date only when it reads JSON, not for Python values.
    """
    try:
        # A lone surrogate is valid in a Python string, but not in UTF-8.
        written = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return conversion.validate_python(value)
    return conversion.validate_json(written)


def _problems(path: str, value: JSON, conversion: TypeAdapter[Any]) -> list[str]:
    try:
        _made(value, conversion)
    except ValidationError as error:
        return [
            f"{path}{_steps(each['loc'], value)}: {_expectation(each['msg'])}, got {_shown(each['input'])}"
            for each in error.errors(include_url=False, include_context=False)
        ]
    except StatekSimError:
        raise
    except Exception as error:  # noqa: BLE001  # a validator of the user's
        return [f"{path}: {type(error).__name__}: {error}, got {_shown(value)}"]
    return []


def _expectation(message: str) -> str:
    """Rephrase a pydantic message as `expected ...`."""
    for begins in ("Input should be ", "Value should be "):
        if message.startswith(begins):
            return f"expected {message.removeprefix(begins)}"
    return message[:1].lower() + message[1:]


def _steps(loc: tuple[int | str, ...], value: Any) -> str:
    """Return the path to an error in `value`, without the names of union members that pydantic adds."""
    way = ""
    for step in loc:
        if isinstance(step, int):
            way += f"[{step}]"
            value = value[step] if isinstance(value, list) and step < len(value) else None
        elif isinstance(value, dict) and step in value:
            way += f".{step}"
            value = value[step]
    return way


def _shown(value: object) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=str), _SHOWN)


def with_ordered_sets(value: Any) -> Any:
    """Return a converted value with all of its sets in a fixed order; models and dataclasses are changed in place.

    A tool that joins a set's items must not differ between runs, even if the set is nested deep in an argument.
    """
    kind = type(value)
    if kind in (set, frozenset):
        return stable_set(kind(map(with_ordered_sets, value)))
    if kind in (list, tuple):
        return kind(map(with_ordered_sets, value))
    if kind is deque:
        return deque(map(with_ordered_sets, value), value.maxlen)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(with_ordered_sets, value))
    if isinstance(value, dict):
        for key, item in value.items():
            value[key] = with_ordered_sets(item)
    elif isinstance(value, BaseModel):
        for held in (value.__dict__, value.__pydantic_extra__ or {}):
            for name, item in held.items():
                held[name] = with_ordered_sets(item)
    elif is_dataclass(value):
        for each in fields(value):
            if hasattr(value, each.name):
                # Only we have a reference to a new frozen instance.
                object.__setattr__(value, each.name, with_ordered_sets(getattr(value, each.name)))
    return value


CONTEXT: Final = "context"
"""The name of the parameter that receives the `ToolContext` if no parameter has that type hint."""


def written(function: Callable[..., Any]) -> Any:
    """Return the function with the hints and the docstring: inside a `partial`, or an object's `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type) or hasattr(function, "__wrapped__"):
        return function
    return getattr(function, "__call__", function)  # noqa: B004  # the method itself, not whether there is one


def docstring_of(function: Callable[..., Any]) -> str:
    """Return a function's docstring; for an object, that of its `__call__` or else of its class."""
    code = written(function)
    if inspect.ismethod(code) and code.__name__ == "__call__" and not code.__doc__:
        # The inherited docstring is a builtin's and not useful.
        return inspect.getdoc(type(code.__self__)) or ""
    return inspect.getdoc(code) or ""


def context_parameter(function: Callable[..., Any], names: Iterable[str]) -> str | None:
    """Return the name of the `ToolContext` parameter, found by its hint or by the name `context`, or None."""
    code = written(function)
    hints = _annotations(code)
    names = tuple(names)
    hinted = next((name for name in names if name in hints and _is_context(hints[name], code)), None)
    return hinted or (CONTEXT if CONTEXT in names else None)


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return dict(getattr(function, "__annotations__", {}))
    except NameError:  # evaluated lazily from Python 3.14 on
        return {}


def _is_context(hint: Any, function: Callable[..., Any]) -> bool:
    if not isinstance(hint, str):
        arms = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
        return ToolContext in arms
    known = getattr(inspect.unwrap(function), "__globals__", {})
    return any(_names_context(arm.strip(" '\""), known) for arm in hint.split("|"))


def _names_context(word: str, known: dict[str, Any]) -> bool:
    """Return whether a hint written as a string names `ToolContext`, which may be imported only for type checkers."""
    own = ToolContext.__name__
    module, _, last = word.rpartition(".")
    if module:
        return last == own and getattr(known.get(module), own, ToolContext) is ToolContext
    return known.get(word, ToolContext if word == own else None) is ToolContext
