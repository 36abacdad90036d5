"""What calls into C cost: `'x'.ljust(n)`, `list(range(n))`, `text.replace(a, b)` and their kind.

Each payment is called before the call it pays for and returns the arguments to use, which differ from those given
only where order or memory addresses would otherwise leak into the result.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from statistics import StatisticsError
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.formatting import pay_for_template, pay_for_text
from statek_sim.sandbox.lazy import GuardedGenerator, LazyIterator, iterated
from statek_sim.sandbox.operators import (
    ENTRY_BYTES,
    INTEGER_BYTES,
    POINTER_BYTES,
    length,
    size_in_bytes,
    too_long,
)
from statek_sim.sandbox.ordered_set import OrderedFrozenSet, OrderedSet, stable_set, without_addresses
from statek_sim.sandbox.weigh import is_container, pay_for_hash, pay_for_walk

# Receivers and arguments are whatever model-written code holds.
Value = Any
Args = tuple[Value, ...]
CallPayment = Callable[[ExecutionBudget, Value, Args, Mapping[str, Value]], Args]

_PIECE_BYTES: Final = 16
_MUCH_TEXT: Final = 65_536
_MAX_EXPONENT: Final = 1_000_000
_EXPONENT: Final = re.compile(r"[eE][-+]?(\d+)")
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


def pay_for_items(budget: ExecutionBudget, values: Iterable[Value], bytes_each: int) -> None:
    """Charge taking in every item of the sized ones among `values`."""
    for value in values:
        size = length(value)
        budget.scan(size)
        budget.allocate(size * (INTEGER_BYTES if isinstance(value, range) else bytes_each))
        iterated(budget, value)


def _ordered(args: Args) -> Args:
    return tuple(map(stable_set, args))


def _copying(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    size = size_in_bytes(owner)
    if isinstance(owner, str | bytes):
        budget.copied(size)
    else:
        budget.allocate(size)
    budget.scan(size >> 4)
    return args


def _searching(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    _comparing(budget, args)
    if isinstance(owner, list | tuple | deque):
        budget.scan(2 * len(owner))
    elif isinstance(owner, str | bytes):
        budget.scan(len(owner) >> 4)
    elif isinstance(owner, range) and args and not isinstance(args[0], int):
        budget.scan(length(owner))
    return args


def _comparing(budget: ExecutionBudget, args: Args) -> None:
    for value in args:
        if is_container(value):
            pay_for_walk(budget, value, "in comparison")


def _hashing(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    for value in args[:1]:
        pay_for_hash(budget, value)
    return args


def _moving(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """`insert` and `pop` move the items behind, which is quick; `pop` of a dict hashes."""
    pay_for_hash(budget, args[0] if args else None)
    if isinstance(owner, list | deque):
        budget.scan(len(owner) >> 3)
    return args


def _sorting(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    if kwargs.get("key") is None:
        _comparing(budget, (owner,))
    budget.scan(4 * length(owner))
    return args


def _splitting(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    size = size_in_bytes(owner)
    budget.allocate(size if size < _MUCH_TEXT else _PIECE_BYTES * size)
    return args


def _padding(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    if args and isinstance(args[0], int) and args[0] > length(owner):
        budget.allocate(args[0])
    return args


def _expanding_tabs(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    width = args[0] if args else kwargs.get("tabsize", 8)
    if isinstance(width, int):
        budget.allocate(length(owner) + _tabs(owner) * max(0, width))
    return args


def _tabs(text: Value) -> int:
    return sum(char in ("\t", 9) for char in text)


def _occurrences(text: Value, part: Value) -> int:
    return int(text.count(part))


def _replacing(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    if len(args) >= 2 and isinstance(owner, str | bytes) and type(args[0]) is type(args[1]) is type(owner):
        found = _occurrences(owner, args[0])
        limit = args[2] if len(args) > 2 else kwargs.get("count", -1)
        if isinstance(limit, int) and limit >= 0:
            found = min(found, limit)
        budget.allocate(max(0, found * (len(args[1]) - len(args[0]))))
        budget.copied(len(owner))
    return args


def _joining(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    if len(args) != 1 or not isinstance(args[0], Iterable):
        return args
    pay_for_items(budget, args, 0)
    items = args[0] if isinstance(args[0], list | tuple) else list(stable_set(args[0]))
    try:
        budget.allocate(sum(map(len, items)) + length(owner) * len(items))
    except TypeError:
        # An item that is no text: join says so better.
        pass
    return (items,)


def _translating(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    table = args[0] if args else None
    if isinstance(owner, str) and isinstance(table, dict):
        longest = max((len(value) for value in table.values() if isinstance(value, str)), default=1)
        budget.allocate(len(owner) * longest)
    return args


def _formatting(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    if isinstance(owner, str):
        pay_for_template(budget, owner, (*args, *kwargs.values()))
    return args


def _taking_in(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    if not isinstance(owner, type) and isinstance(owner, set | frozenset):
        budget.allocate(size_in_bytes(owner))
    return _hashed(budget, args)


def _hashed(budget: ExecutionBudget, args: Args) -> Args:
    """Pay for making entries of everything in `args`."""
    pay_for_items(budget, args, ENTRY_BYTES)
    _comparing(budget, args)
    return tuple(
        _hashed_one_by_one(budget, value)
        if isinstance(value, LazyIterator | GuardedGenerator)
        else stable_set(value)
        for value in args
    )


def _hashed_one_by_one(budget: ExecutionBudget, items: Iterable[Value]) -> Iterator[Value]:
    for item in items:
        if is_container(item):
            pay_for_walk(budget, item, "while hashing a value")
        yield item


def _extending(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    pay_for_items(budget, args, POINTER_BYTES)
    return _ordered(args)


def _to_bytes(budget: ExecutionBudget, _: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    size = args[0] if args else kwargs.get("length", 1)
    if isinstance(size, int) and size > 0:
        budget.allocate(size)
    return args


def _repeating(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """`Counter.elements` gives each key as often as it was counted."""
    if isinstance(owner, Counter):
        counts: Iterable[Value] = owner.values()
        budget.work(sum(max(0, count) for count in counts if isinstance(count, int)))
    return args


def _named(payment: CallPayment, names: str) -> dict[str, CallPayment]:
    return dict.fromkeys(names.split(), payment)


METHODS: Final[Mapping[str, CallPayment]] = {
    **_named(
        _copying,
        "upper lower title swapcase capitalize casefold strip lstrip rstrip encode decode hex copy removeprefix"
        " removesuffix fromhex from_bytes rotate partition rpartition",
    ),
    **_named(
        _searching, "count index rindex find rfind remove isdigit isalpha isalnum isspace isupper islower"
    ),
    **_named(_hashing, "add get setdefault discard"),
    **_named(_moving, "insert pop"),
    **_named(_sorting, "sort"),
    **_named(_splitting, "split rsplit splitlines"),
    **_named(_padding, "ljust rjust center zfill"),
    **_named(_expanding_tabs, "expandtabs"),
    **_named(_replacing, "replace"),
    **_named(_joining, "join"),
    **_named(_translating, "translate"),
    **_named(_formatting, "format format_map"),
    **_named(
        _taking_in,
        "update union intersection difference symmetric_difference intersection_update difference_update"
        " symmetric_difference_update issubset issuperset isdisjoint fromkeys subtract most_common",
    ),
    **_named(_extending, "extend extendleft"),
    **_named(_to_bytes, "to_bytes"),
    **_named(_repeating, "elements"),
}
"""Method name -> payment, for methods of Python's own types."""


def _making_sequence(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    pay_for_items(budget, args, POINTER_BYTES)
    return _ordered(args)


def _making_table(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    return _hashed(budget, args)


def _making_error(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    """Consoles show errors, so an error pays for its text when it is made."""
    for value in args:
        pay_for_text(budget, value)
    return args


def _making_bytes(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    if args and isinstance(args[0], int):
        budget.allocate(max(0, args[0]))
    else:
        pay_for_items(budget, args[:1], 1)
    return args


def _making_text(budget: ExecutionBudget, _: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    if len(args) != 1 or kwargs or isinstance(args[0], str | int | float):
        return args
    pay_for_text(budget, args[0])
    return (without_addresses(str(args[0])),)


def _making_integer(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    if args and isinstance(args[0], Decimal):
        _pay_for_exponent(budget, args[0])
    return args


def _making_decimal(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    if args and isinstance(args[0], str):
        _pay_for_exponent_text(budget, args[0])
    return args


def _making_fraction(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    for value in args:
        if isinstance(value, str):
            _pay_for_exponent_text(budget, value)
        elif isinstance(value, Decimal):
            _pay_for_exponent(budget, value)
    return args


def _pay_for_exponent_text(budget: ExecutionBudget, text: str) -> None:
    for match in _EXPONENT.finditer(text):
        too_long(budget, int(match[1][:20]) * 3)


def _pay_for_exponent(budget: ExecutionBudget, value: Decimal) -> None:
    """A decimal with a huge exponent is short until it becomes an integer."""
    if value.is_finite():
        too_long(budget, abs(value.adjusted()) * 3)


TYPES: Final[Mapping[Value, CallPayment]] = {
    **dict.fromkeys((list, tuple, deque), _making_sequence),
    **dict.fromkeys(
        (dict, set, frozenset, OrderedSet, OrderedFrozenSet, Counter, OrderedDict, defaultdict), _making_table
    ),
    **dict.fromkeys(
        (
            BaseException,
            Exception,
            RuntimeError,
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            LookupError,
            NameError,
            StopIteration,
            StatisticsError,
        ),
        _making_error,
    ),
    bytes: _making_bytes,
    str: _making_text,
    int: _making_integer,
    Decimal: _making_decimal,
    Fraction: _making_fraction,
}
"""Type -> payment for calling it."""
