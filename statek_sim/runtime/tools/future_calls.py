"""Calls with futures as arguments (behaviour 7.3).

A call waits for the values of futures among its arguments, unless the parameter is annotated with
`FutureResult`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from types import BuiltinMethodType, ModuleType, NoneType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from statek_sim.runtime.state.futures import FutureResult
from statek_sim.sandbox.policy import RestrictedMethod

V = TypeVar("V")


def once_per_function(build: Callable[[Callable[..., Any]], V]) -> Callable[[Callable[..., Any]], V]:
    """Cache the results of `build` by function, without keeping the functions alive.

    A tool created by a test often refers to the test's large objects, which an ordinary cache would keep
    alive. A result must not refer to its function; otherwise neither would ever be freed. Results for
    functions that cannot be hashed or weakly referenced are not cached.
    """
    known: WeakKeyDictionary[Callable[..., Any], V] = WeakKeyDictionary()

    @wraps(build)
    def remembered(function: Callable[..., Any]) -> V:
        try:
            return known[function]
        except KeyError:
            known[function] = result = build(function)
            return result
        except TypeError:
            return build(function)

    return remembered


def resolve(value: object) -> object:
    """Return the value of a future, or raise its FutureError; any other value is returned unchanged."""
    return value.value_for_code if isinstance(value, FutureResult) else value


def smart_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `function` as STATEK does, replacing futures among the arguments with their values.

    STATEK binds the arguments to the signature and calls the function inside a `try`. After a ValueError or
    TypeError, STATEK calls the function again. Therefore, a function that raises one of these errors runs
    twice, unless its arguments do not bind or Python cannot read its signature. This is reproduced because
    side effects depend on it.
    """
    if "id" in kwargs and _takes_id_by_position(function):
        # STATEK's first call passes a subtask's `id` by position, which fails, so only the second call runs.
        return function(*map(resolve, args), **{name: resolve(value) for name, value in kwargs.items()})
    has_future = _has_future(args, kwargs)
    try:
        if has_future:
            bound = _signature(function).bind(*args, **kwargs)
            _resolve_bound(bound)
            # Keep positional and keyword arguments as the code wrote them, for the trace.
            values = {**bound.arguments, **bound.kwargs}
            return function(*bound.args[: len(args)], **{name: values[name] for name in kwargs})
        return function(*args, **kwargs)
    except (ValueError, TypeError):
        if not callable(function):
            # Python's message contains the object's `repr`, which dbzero may deny.
            repr(function)
        # If the arguments do not bind, STATEK makes only the second call. Binding them here is faster: few calls fail.
        if not has_future and not _binds(function, args, kwargs):
            raise
        # The second call is outside the `except` block, because recursion inside it would lengthen the
        # exception chain.
    return function(*map(resolve, args), **{name: resolve(value) for name, value in kwargs.items()})


def _takes_id_by_position(function: Callable[..., Any]) -> bool:
    if not getattr(function, "__is_subtask__", False):
        return False
    parameter = _signature(function).parameters["id"]
    return parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def _binds(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the arguments bind to `function`'s signature; False if Python cannot read the signature."""
    try:
        if (
            type(function) is BuiltinMethodType
            and type(function.__self__).__module__ == "builtins"
            and (not isinstance(function.__self__, ModuleType | type | NoneType))
        ):
            # Each bound method is a new object, so cache by class and name, because reading a signature takes as long
            # as fifty calls. Objects of other classes may have their own attribute with this name.
            owner = function.__self__
            _signature_of_method(type(owner), function.__name__).bind(owner, *args, **kwargs)
        else:
            _signature(function).bind(*args, **kwargs)
    except (ValueError, TypeError):
        return False
    return True


def _signature_of_method(kind: type, name: str) -> inspect.Signature:
    found = _known_signature(kind, name)
    if found is None:
        raise ValueError(f"no signature found for {kind.__name__}.{name}")
    return found


@lru_cache(maxsize=512)
def _known_signature(kind: type, name: str) -> inspect.Signature | None:
    try:
        return inspect.signature(getattr(kind, name))
    except (ValueError, TypeError, AttributeError):
        return None


def _has_future(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    for value in args:
        if isinstance(value, FutureResult):
            return True
    return any(isinstance(value, FutureResult) for value in kwargs.values()) if kwargs else False


@once_per_function
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if type(function) is RestrictedMethod:
        raise ValueError("no signature found")
    return inspect.signature(function)


def _resolve_bound(bound: inspect.BoundArguments) -> None:
    """Replace futures among bound arguments with their values, unless the parameter is annotated with FutureResult."""
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if _wants_future(parameter.annotation):
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            bound.arguments[name] = tuple(map(resolve, value))
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[name] = {key: resolve(item) for key, item in value.items()}
        else:
            bound.arguments[name] = resolve(value)


def _wants_future(annotation: object) -> bool:
    return getattr(annotation, "__name__", None) == "FutureResult" or str(annotation) == "FutureResult"
