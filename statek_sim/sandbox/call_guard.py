"""Charging calls into C before they are made.

Functions that model code writes pay for themselves; methods and types of Python's own pay here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.intake import Args, Value
from statek_sim.sandbox.method_payments import METHODS
from statek_sim.sandbox.type_payments import TYPES

_BUILTIN_OWNERS: Final = (set, frozenset, dict, list, str, bytes)


class CallGuard:
    """Charges a budget for calls of C functions, methods and types."""

    __slots__ = ("_budget", "_resolve")

    def __init__(self, budget: ExecutionBudget, resolve: Callable[[Value], Value] | None = None) -> None:
        self._budget = budget
        self._resolve = resolve

    def prepare(self, function: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
        """Pay for calling `function` with these arguments; return the positional arguments to call it with."""
        kind = type(function)
        if kind is FunctionType:
            return args
        if kind is BuiltinFunctionType or kind is MethodType:
            payment = METHODS.get(function.__name__)
            if payment is None or not _is_method_of_data(function, kind):
                return args
            return payment(self._budget, function.__self__, self._resolved(args), kwargs)
        if kind is MethodDescriptorType:
            payment = METHODS.get(function.__name__)
            if payment is None or not args:
                return args
            owner, *rest = self._resolved(args)
            return (owner, *payment(self._budget, owner, tuple(rest), kwargs))
        if isinstance(function, type):
            payment = TYPES.get(function)
            return args if payment is None else payment(self._budget, function, self._resolved(args), kwargs)
        return args

    def _resolved(self, args: Args) -> Args:
        """Return the arguments with futures replaced by values, which no C function wants as futures."""
        return args if self._resolve is None else tuple(map(self._resolve, args))

    def guarded(self, function: Value) -> Value:
        """Return `function`, or a stand-in that pays, for handing it to code that calls it from C."""
        kind = type(function)
        if kind is FunctionType or not callable(function):
            return function
        is_method = kind in (BuiltinFunctionType, MethodDescriptorType, MethodType)
        is_paid = (
            function.__name__ in METHODS if is_method else isinstance(function, type) and function in TYPES
        )
        if not is_paid:
            return function

        def paying(*args: Value) -> Value:
            return function(*self.prepare(function, args, {}))

        return paying


def _is_method_of_data(function: Value, kind: type) -> bool:
    owner = function.__self__
    if kind is MethodType:
        return isinstance(owner, _BUILTIN_OWNERS) or (
            isinstance(owner, type) and issubclass(owner, _BUILTIN_OWNERS)
        )
    return owner is not None and not isinstance(owner, ModuleType)
