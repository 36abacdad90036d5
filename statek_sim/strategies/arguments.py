"""Arguments of a tool, drawn by its type hints, and calls of it as a model writes them."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.errors import ResolutionFailed

from statek_sim.errors import BadInput

_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def arguments(tool: Callable[..., Any], **given: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return arguments of `tool` by name: what its hints allow, `given` instead where you say so.

    Arguments with a default are left out sometimes. Raises BadInput for a parameter that has no type hint, or one that
    Hypothesis has no strategy for, and for a `given` name that the tool does not have.
    """
    parameters, hints = _parameters(tool)
    for name in given:
        if name not in parameters:
            raise BadInput(
                f"arguments of {_name(tool)}: there is no parameter {name!r}; it has {', '.join(parameters) or 'none'}"
            )
    drawn = {name: given[name] if name in given else _of(tool, name, hints) for name in parameters}
    optional = {name for name, parameter in parameters.items() if parameter.default is not parameter.empty}
    return st.fixed_dictionaries(
        {name: strategy for name, strategy in drawn.items() if name not in optional},
        optional={name: strategy for name, strategy in drawn.items() if name in optional},
    )


def calls(
    tool: Callable[..., Any], *, name: str | None = None, **given: st.SearchStrategy[Any]
) -> st.SearchStrategy[str]:
    """Return calls of `tool` as code, `lookup(city='Oslo')`; `name` is what the model calls it, None: its own name.

    Values that have no literal, such as `nan` or an object, are not drawn. What `given` strategies draw are values,
    too: for a variable of the job's, write the code yourself.
    """
    parameters, _ = _parameters(tool)
    unnamed = {key for key, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY}
    called = name or _name(tool)

    def written(values: Mapping[str, Any]) -> str:
        texts = [repr(value) if key in unnamed else f"{key}={value!r}" for key, value in values.items()]
        return f"{called}({', '.join(texts)})"

    # Parameters without a name come first, and none of them may be left out before another.
    usable = arguments(tool, **given).filter(lambda values: all(map(_has_literal, values.values())))
    if unnamed:
        usable = usable.filter(lambda values: unnamed <= values.keys())
    return usable.map(lambda values: {key: values[key] for key in parameters if key in values}).map(written)


def _parameters(tool: Callable[..., Any]) -> tuple[dict[str, inspect.Parameter], dict[str, Any]]:
    function = inspect.unwrap(tool)
    found = inspect.signature(function).parameters
    try:
        hints = typing.get_type_hints(function)
    except Exception as error:  # hints are the user's code
        raise BadInput(f"arguments of {_name(tool)}: its type hints cannot be read: {error}") from error
    return {name: parameter for name, parameter in found.items() if parameter.kind not in _VARIADIC}, hints


def _of(tool: Callable[..., Any], name: str, hints: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if name not in hints:
        raise BadInput(
            f"arguments of {_name(tool)}: parameter {name!r} has no type hint; give it one, or a strategy: "
            f"arguments({_name(tool)}, {name}=...)"
        )
    if hints[name] is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    try:
        drawn: st.SearchStrategy[Any] = st.from_type(hints[name])
        drawn.validate()
    except (ResolutionFailed, TypeError) as error:
        raise BadInput(
            f"arguments of {_name(tool)}: Hypothesis has no strategy for {name}: {hints[name]!r}; give one: "
            f"arguments({_name(tool)}, {name}=...)"
        ) from error
    return drawn


def _has_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False


def _name(tool: Callable[..., Any]) -> str:
    return getattr(tool, "__name__", repr(tool))
