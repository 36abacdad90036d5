"""Charging calls into C before they are made.

Functions that model code writes pay for themselves; methods and types of Python's own pay here, by the list of
`costs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType
from typing import Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.costs import CALLED_TYPES, METHODS, rules_of
from statek_sim.sandbox.intake import Args, CallPayment, Value, pays_for_comparing

# Methods of some types, patterns among them, are of a type that has no public name.
_BOUND: Final = frozenset({BuiltinFunctionType, MethodType, type(re.compile("").match)})
_KEYED: Final = "sort"


class CallGuard:
    """Charges a budget for calls of C functions, methods and types."""

    __slots__ = ("_budget", "_resolve")

    def __init__(self, budget: ExecutionBudget, resolve: Callable[[Value], Value] | None = None) -> None:
        self._budget = budget
        self._resolve = resolve

    def prepare(self, function: Value, args: Args, kwargs: dict[str, Value]) -> Args:
        """Pay for calling `function` with these arguments; return the positional arguments to call it with.

        A function among `kwargs` by which `list.sort` sorts is replaced by one that pays.
        """
        kind = type(function)
        if kind in _BOUND:
            owner = function.__self__
            payment = _bound_rule(function, owner)
            if payment is None:
                return args
            if function.__name__ == _KEYED and kwargs.get("key") is not None:
                kwargs["key"] = self.comparable(kwargs["key"])
            return payment(self._budget, owner, self._resolved(args), kwargs)
        if kind is MethodDescriptorType or kind is FunctionType:
            payment = _unbound(function, kind)
            if payment is None or not args:
                return args
            if function.__name__ == _KEYED and kwargs.get("key") is not None:
                kwargs["key"] = self.comparable(kwargs["key"])
            owner, *rest = self._resolved(args)
            return (owner, *payment(self._budget, owner, tuple(rest), kwargs))
        if isinstance(function, type):
            payment = CALLED_TYPES.get(function)
            return args if payment is None else payment(self._budget, function, self._resolved(args), kwargs)
        return args

    def _resolved(self, args: Args) -> Args:
        """Return the arguments with futures replaced by values, which no C function wants as futures."""
        return args if self._resolve is None else tuple(map(self._resolve, args))

    def guarded(self, function: Value) -> Value:
        """Return `function`, or a stand-in that pays, for handing it to code that calls it from C."""
        kind = type(function)
        if not callable(function):
            return function
        if kind is FunctionType or kind is MethodDescriptorType:
            is_paid = _unbound(function, kind) is not None
        elif kind in _BOUND:
            is_paid = _bound_rule(function, function.__self__) is not None
        else:
            is_paid = isinstance(function, type) and function in CALLED_TYPES
        if not is_paid:
            return function

        def paying(*args: Value) -> Value:
            return function(*self.prepare(function, args, {}))

        return paying

    def comparable(self, key: Value) -> Value:
        """Return a key function whose results pay for being compared."""
        if not callable(key):
            return key
        return pays_for_comparing(self._budget, self.guarded(key))


def _bound_rule(function: Value, owner: Value) -> CallPayment | None:
    if owner is None:
        # A static method, or a function of no module.
        return UNBOUND.get(function)
    return rules_of(owner if isinstance(owner, type) else type(owner)).get(function.__name__)


def _unbound(function: Value, kind: type) -> CallPayment | None:
    """Return the rule of a method taken from its type, such as `str.upper` or `Counter.most_common`."""
    if kind is FunctionType:
        return UNBOUND.get(function)
    owner: type = function.__objclass__
    return rules_of(owner).get(function.__name__)


UNBOUND: Final[Mapping[Value, CallPayment]] = {
    getattr(kind, name): rule
    for kind in METHODS
    for name, rule in rules_of(kind).items()
    if type(getattr(kind, name, None)) is FunctionType
    or getattr(getattr(kind, name, None), "__self__", kind) is None
}
"""Methods that are written in Python, as their types show them, and static ones -> rule."""
