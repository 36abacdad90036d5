"""Calls and names that may hold futures (behaviour 7.3).

Using a future waits for it; passing one to a function waits too, unless the parameter is annotated `FutureResult`.
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
    """Return `build` with its results cached for as long as the function they belong to lives.

    A tool created in a test often closes over that test's whole world: an ordinary cache would keep the last thousand
    worlds alive. A result must not refer to its function, or both stay alive. Functions without hash or weak references
    are not cached.
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
    """Return a future's value (or raise its FutureError); anything else unchanged."""
    return value.value_for_code if isinstance(value, FutureResult) else value


def smart_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call `function`, waiting for future arguments unless it accepts them as futures.

    STATEK reads the signature, binds the arguments and calls, all of it guarded against ValueError and TypeError, and
    then calls once more: a function that raises one of them runs twice, unless its arguments did not bind or it has no
    signature that Python can read. Visible side effects depend on it, so it is reproduced.
    """
    if "id" in kwargs and _takes_id_by_position(function):
        # The guarded call passes a subtask's `id` by position, which no function accepts: only the second one runs.
        return function(*map(resolve, args), **{name: resolve(value) for name, value in kwargs.items()})
    has_future = _has_future(args, kwargs)
    try:
        if has_future:
            bound = _signature(function).bind(*args, **kwargs)
            _resolve_bound(bound)
            # As the code wrote it, for the record of the call; a tool's wrapper passes it on as STATEK does.
            values = {**bound.arguments, **bound.kwargs}
            return function(*bound.args[: len(args)], **{name: values[name] for name in kwargs})
        return function(*args, **kwargs)
    except (ValueError, TypeError):
        if not callable(function):
            # Python's message contains its representation, which dbzero may refuse.
            repr(function)
        # Bound only now, because few calls fail: arguments that do not bind were used in a single call, the last line.
        if not has_future and not _binds(function, args, kwargs):
            raise
        # The second call stays outside: inside, each level of a recursion would lengthen the chain of contexts.
    return function(*map(resolve, args), **{name: resolve(value) for name, value in kwargs.items()})


def _takes_id_by_position(function: Callable[..., Any]) -> bool:
    if not getattr(function, "__is_subtask__", False):
        return False
    parameter = _signature(function).parameters["id"]
    return parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def _binds(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the arguments fit a readable signature; some built-in functions have none."""
    try:
        if (
            type(function) is BuiltinMethodType
            and type(function.__self__).__module__ == "builtins"
            and (not isinstance(function.__self__, ModuleType | type | NoneType))
        ):
            # Each list has its own `extend`, and reading a signature takes as long as fifty calls. Other classes may
            # have another method of that name.
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
    """Replace futures by values, except if the parameter's annotation is FutureResult."""
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
