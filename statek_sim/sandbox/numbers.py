"""Functions on numbers whose results or run time can explode: `factorial`, `comb`, `pow`, `round` and their kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.operators import (
    INTEGER_BYTES,
    length,
    pay_for_division,
    pay_for_pow,
    paying_operators,
    too_long,
)
from statek_sim.sandbox.ordered_set import stable_set

# Arguments are whatever model-written code passes.
Value = Any


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
        return math.perm(*args)

    def prod(iterable: Value, /, **start: Value) -> Value:
        items = _taken_in(budget, iterable)
        too_long(budget, sum(item.bit_length() for item in items if isinstance(item, int)))
        return math.prod(items, **start)

    def lcm(*args: Value) -> int:
        too_long(budget, sum(value.bit_length() for value in args if isinstance(value, int)))
        return math.lcm(*args)

    def fsum(iterable: Value, /) -> float:
        budget.scan(length(iterable))
        return math.fsum(stable_set(iterable))

    def dist(*args: Value) -> float:
        budget.scan(sum(map(length, args)))
        return math.dist(*args)

    return {
        "factorial": factorial, "comb": comb, "perm": perm, "prod": prod, "lcm": lcm, "fsum": fsum, "dist": dist,
    }  # fmt: skip


def paid_sum(budget: ExecutionBudget) -> Callable[..., Value]:
    """Return `sum`. Sequences are added one by one, as operators would, because that is quadratic."""
    add = paying_operators(budget)["add"]

    def total(*args: Value, **start: Value) -> Value:
        first = start.get("start", args[1] if len(args) > 1 else 0)
        if not args or len(args) + len(start) > 2 or isinstance(first, int | float | complex | str | bytes):
            budget.scan(sum(map(length, args[:1])))
            return sum(*map(stable_set, args), **start)
        for item in stable_set(args[0]):
            budget.tick()
            first = add(first, item)
        return first

    return total


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
        return round(*args, **named)

    return rounded


def _pay_for_choice(budget: ExecutionBudget, size: int, chosen: int) -> None:
    """An estimate from above: chosen * log2(e * size / chosen) bits."""
    if chosen > 0:
        too_long(budget, chosen * ((size // chosen).bit_length() + 1.45))
        budget.work(chosen >> 4)


def _taken_in(budget: ExecutionBudget, iterable: Value) -> list[Value]:
    size = length(iterable)
    budget.scan(size)
    budget.allocate(INTEGER_BYTES * size)
    return list(stable_set(iterable))
