"""What making a value of one of Python's own types costs: `list(range(n))`, `bytes(n)`, `str(value)` and their kind."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from statistics import StatisticsError
from typing import Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.formatting import pay_for_text
from statek_sim.sandbox.intake import Args, CallPayment, Value, in_fixed_order, paid_entries, pay_for_items
from statek_sim.sandbox.operators import (
    POINTER_BYTES,
    bound_range,
    pay_for_exponent,
    pay_for_gcd,
    pay_for_ratio,
    too_long,
)
from statek_sim.sandbox.ordered_set import OrderedFrozenSet, OrderedSet, without_addresses

_LONG_NUMERAL: Final = 1_000
_LONGEST_NUMERAL: Final = 4_400
_READING_SHIFT: Final = 19
_RATIO: Final = 2
_EXPONENT: Final = re.compile(r"[eE][-+]?([\d_]{1,4300})")
"""An exponent with its leading zeros; Python reads no number of more digits."""


def _making_sequence(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    pay_for_items(budget, args, POINTER_BYTES)
    return in_fixed_order(args)


def _making_table(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    return paid_entries(budget, args)


def _making_error(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    """Consoles show errors, so an error pays for its text when it is made."""
    for value in args:
        pay_for_text(budget, value)
    budget.say(sum(len(value) for value in args if isinstance(value, str | bytes)))
    return args


def _making_bytes(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    if args and isinstance(args[0], int):
        budget.allocate(max(0, args[0]))
    else:
        pay_for_items(budget, args[:1], 1)
    return args


def _making_text(budget: ExecutionBudget, _: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    if len(args) != 1 or kwargs or isinstance(args[0], str | float):
        return args
    pay_for_text(budget, args[0])
    if isinstance(args[0], int):
        return args
    return (without_addresses(str(args[0])),)


def _making_integer(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    if args and isinstance(args[0], Decimal):
        pay_for_exponent(budget, args[0])
    elif args and isinstance(args[0], str | bytes) and len(args[0]) > _LONG_NUMERAL:
        # Python refuses long decimal numerals itself, but not those of bases that are powers of two.
        too_long(budget, len(args[0]))
        budget.work(min(len(args[0]), _LONGEST_NUMERAL) ** 2 >> _READING_SHIFT)
    return args


def _making_float(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    """A float reads as much text as there is, of which a decimal is made first."""
    for value in args:
        if isinstance(value, str | bytes):
            budget.scan(len(value))
            # What is no number is quoted in the error.
            budget.say(len(value))
        elif isinstance(value, Decimal):
            budget.work(value.__sizeof__() >> 5)
    return args


def _making_range(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    bound_range(budget, *args)
    return args


def _making_decimal(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    for value in args[:1]:
        if isinstance(value, str):
            _pay_for_exponent_text(budget, value)
            budget.copied(len(value))
        elif isinstance(value, int):
            pay_for_gcd(budget, value.bit_length(), value.bit_length())
            budget.made_integer(value.bit_length())
        elif isinstance(value, list | tuple):
            pay_for_items(budget, value, 1)
    return args


def _making_fraction(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    for value in args:
        if isinstance(value, str):
            _pay_for_exponent_text(budget, value)
        elif isinstance(value, Decimal):
            pay_for_ratio(budget, value)
            budget.work(value.__sizeof__() >> 6)
    bits = [value.bit_length() for value in args if isinstance(value, int)]
    if len(bits) == _RATIO:
        pay_for_gcd(budget, *bits)
    budget.made_integer(sum(bits))
    return args


def _pay_for_exponent_text(budget: ExecutionBudget, text: str) -> None:
    for match in _EXPONENT.finditer(text):
        too_long(budget, int(match[1].replace("_", "") or 0) * 3)


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
    **dict.fromkeys((float, complex), _making_float),
    range: _making_range,
    Decimal: _making_decimal,
    Fraction: _making_fraction,
}
"""Type -> payment for calling it."""
