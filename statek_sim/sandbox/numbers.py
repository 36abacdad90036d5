"""Functions on numbers whose results or run time can explode: `factorial`, `comb`, `pow`, `round` and their kind."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

from statek_sim.sandbox.budget import LONG_INTEGER, ExecutionBudget
from statek_sim.sandbox.lazy import GuardedGenerator, LazyIterator
from statek_sim.sandbox.operators import (
    INTEGER_BYTES,
    length,
    pay_for_division,
    pay_for_exponent,
    pay_for_gcd,
    pay_for_pow,
    pay_for_ratio,
    paying_operators,
    too_long,
)
from statek_sim.sandbox.ordered_set import stable_set

# Arguments are whatever model-written code passes.
Value = Any

_PLAIN_NUMBERS: Final = frozenset({int, float, bool})
_PRODUCTS_PER_ITERATION: Final = 20_000
_LONGEST_PRODUCT: Final = 1 << 20
_SUMMING_SHIFT: Final = 16


def paid_math(budget: ExecutionBudget) -> dict[str, Callable[..., Value]]:
    """Return the functions of `math` that need watching."""

    def factorial(*args: Value) -> int:
        if args and isinstance(args[0], int) and args[0] > 1:
            too_long(budget, args[0] * max(1.0, args[0].bit_length() - 1.44))
            budget.work(args[0] >> 3)
        return math.factorial(*args)

    def comb(*args: Value) -> int:
        if len(args) == 2 and all(isinstance(value, int) and value > 0 for value in args):
            _pay_for_choice(budget, args[0], min(args[1], max(args[0] - args[1], 0)))
        return math.comb(*args)

    def perm(*args: Value) -> int:
        if args and all(isinstance(value, int) and value > 0 for value in args):
            chosen = min(args[-1], args[0])
            too_long(budget, chosen * args[0].bit_length())
            budget.work(chosen >> 4)
            _pay_for_product(budget, min(chosen * args[0].bit_length() // 30, _LONGEST_PRODUCT))
        return math.perm(*args)

    def prod(iterable: Value, /, **start: Value) -> Value:
        items = _taken_in(budget, iterable)
        kinds = {type(item) for item in (*items, *start.values())}
        if not kinds <= _PLAIN_NUMBERS:
            return _multiplied(budget, items, **start)
        bits = sum(item.bit_length() for item in items if isinstance(item, int))
        too_long(budget, bits)
        _pay_for_product(budget, bits // 30)
        return math.prod(items, **start)

    def fsum(iterable: Value, /) -> float:
        budget.scan(length(iterable))
        return math.fsum(stable_set(iterable))

    def dist(*args: Value) -> float:
        budget.scan(sum(map(length, args)))
        return math.dist(*args)

    return {
        "factorial": factorial, "comb": comb, "perm": perm, "prod": prod, "fsum": fsum, "dist": dist,
        **_paid_division(budget),
    }  # fmt: skip


def _paid_division(budget: ExecutionBudget) -> dict[str, Callable[..., Value]]:
    """Return the functions that look for factors, or divide to round."""

    def lcm(*args: Value) -> int:
        too_long(budget, sum(value.bit_length() for value in args if isinstance(value, int)))
        _pay_for_factors(budget, args)
        return math.lcm(*args)

    def gcd(*args: Value) -> int:
        _pay_for_factors(budget, args)
        return math.gcd(*args)

    def isqrt(*args: Value) -> int:
        bits = args[0].bit_length() if args and isinstance(args[0], int) else 0
        pay_for_gcd(budget, bits, bits)
        return math.isqrt(*args)

    def to_integer(convert: Callable[..., Value]) -> Callable[..., Value]:
        def converted(*args: Value) -> Value:
            if args and isinstance(args[0], Decimal):
                pay_for_exponent(budget, args[0])
            elif args and isinstance(args[0], Fraction):
                pay_for_division(budget, args[0].numerator, args[0].denominator)
            return convert(*args)

        return converted

    rounding = {name: to_integer(getattr(math, name)) for name in ("floor", "ceil", "trunc")}
    return {"lcm": lcm, "gcd": gcd, "isqrt": isqrt, **rounding}


def pay_for_exact(budget: ExecutionBudget, items: Value) -> None:
    """Pay for adding up what floats do not hold: fractions, decimals and long integers, with a common denominator."""
    if not isinstance(items, list | tuple | deque | set | frozenset | dict):
        return
    kinds = set(map(type, items))
    if Decimal in kinds:
        for item in items:
            if isinstance(item, Decimal):
                pay_for_ratio(budget, item)
    if Fraction in kinds or any(isinstance(item, int) and item.bit_length() > LONG_INTEGER for item in items):
        bits = sum(_exact_bits(item) for item in items)
        too_long(budget, bits)
        budget.work(len(items) * (bits // 30) ** 2 // 6_000)


def _exact_bits(item: Value) -> int:
    if isinstance(item, Fraction):
        return item.numerator.bit_length() + item.denominator.bit_length()
    return item.bit_length() if isinstance(item, int) else 0


def paid_sum(budget: ExecutionBudget) -> Callable[..., Value]:
    """Return `sum`. Sequences are added one by one, as operators would, because that is quadratic."""
    add = paying_operators(budget)["add"]

    def total(*args: Value, **start: Value) -> Value:
        first = start.get("start", args[1] if len(args) > 1 else 0)
        if not args or len(args) + len(start) > 2 or isinstance(first, int | float | complex | str | bytes):
            items = list(stable_set(args[0])) if args and length(args[0]) == 0 and _is_lazy(args[0]) else None
            given = args if items is None else (items, *args[1:])
            budget.scan(sum(map(length, given[:1])))
            if not given or not _has_exact(given[0]):
                result = sum(*map(stable_set, given), **start)
                if isinstance(result, int):
                    budget.work(length(given[0]) * result.bit_length() >> _SUMMING_SHIFT)
                return result
            args = given
        for item in stable_set(args[0]):
            budget.tick()
            first = add(first, item)
        return first

    return total


def _is_lazy(value: Value) -> bool:
    return isinstance(value, LazyIterator | GuardedGenerator)


def _has_exact(items: Value) -> bool:
    """Return whether there is something among `items` of which sums may take long: fractions and decimals."""
    if not isinstance(items, list | tuple | set | frozenset | deque | dict):
        return False
    return not {Fraction, Decimal}.isdisjoint(map(type, items))


def paid_pow(budget: ExecutionBudget) -> Callable[..., Value]:
    """Return `pow`."""

    def power(*args: Value, **named: Value) -> Value:
        given = (*args, *named.values())
        if len(given) == 2:
            pay_for_pow(budget, given[0], given[1])
        elif len(given) == 3 and all(isinstance(value, int) for value in given):
            digits = given[2].bit_length() // 30 + 1
            budget.work(given[1].bit_length() * digits * digits // 1000)
        return pow(*args, **named)

    return power


def paid_abs(budget: ExecutionBudget) -> Callable[..., Value]:
    """Return `abs`. The absolute value of a long integer is another one."""

    def absolute(*args: Value) -> Value:
        result = abs(*args)
        if isinstance(result, int):
            budget.made_integer(result.bit_length())
        return result

    return absolute


def paid_divmod(budget: ExecutionBudget) -> Callable[..., Value]:
    """Return `divmod`."""
    real: Callable[..., Value] = divmod

    def quotient_and_rest(*args: Value) -> Value:
        if len(args) == 2:
            pay_for_division(budget, args[0], args[1])
        return real(*args)

    return quotient_and_rest


def paid_round(budget: ExecutionBudget) -> Callable[..., Value]:
    """Return `round`. Rounding exact numbers computes a power of ten."""

    def rounded(*args: Value, **named: Value) -> Value:
        digits = named.get("ndigits", args[1] if len(args) > 1 else None)
        if args and isinstance(args[0], int | Fraction | Decimal) and isinstance(digits, int):
            too_long(budget, abs(digits) * 3.33)
            pay_for_division(budget, *_long_division(args[0], digits))
        elif args and isinstance(args[0], Decimal):
            pay_for_exponent(budget, args[0])
        return round(*args, **named)

    return rounded


def _long_division(value: Value, digits: int) -> tuple[int, int]:
    """Return what rounding divides by what, about: only its length matters."""
    if isinstance(value, int):
        return value, 1 << int(min(0, digits) * -3.33)
    return (value.numerator, value.denominator) if isinstance(value, Fraction) else (0, 1)


def _pay_for_choice(budget: ExecutionBudget, size: int, chosen: int) -> None:
    """An estimate from above: chosen * log2(e * size / chosen) bits."""
    if chosen > 0:
        too_long(budget, chosen * ((size // chosen).bit_length() + 1.45))
        budget.work(chosen >> 4)
        _pay_for_product(budget, min(chosen * size.bit_length() // 30, _LONGEST_PRODUCT))


def _pay_for_product(budget: ExecutionBudget, digits: int) -> None:
    """Pay for multiplying integers that have so many digits of 30 bits together, one after the other."""
    budget.work(digits * digits // _PRODUCTS_PER_ITERATION)


def _pay_for_factors(budget: ExecutionBudget, args: Value) -> None:
    bits = [value.bit_length() for value in args if isinstance(value, int)]
    budget.scan(16 * len(bits))
    for left, right in pairwise(bits):
        pay_for_gcd(budget, left, right)


def _multiplied(budget: ExecutionBudget, items: list[Value], *, start: Value = 1) -> Value:
    """One by one, as operators would: a product of fractions or sequences can be anything."""
    multiply = paying_operators(budget)["mul"]
    for item in items:
        budget.tick()
        start = multiply(start, item)
    return start


def _taken_in(budget: ExecutionBudget, iterable: Value) -> list[Value]:
    size = length(iterable)
    budget.scan(size)
    budget.allocate(INTEGER_BYTES * size)
    return list(stable_set(iterable))
