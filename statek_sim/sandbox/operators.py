"""Operators of model-written code that can be expensive: each pays first, then does what Python does.

`x * y` compiles to `_statek_mul(x, y)`. Error types and messages are Python's own, because the operation itself is.
"""

from __future__ import annotations

import operator
import re
from collections import deque
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.ordered_set import stable_set
from statek_sim.sandbox.weigh import SCALARS, is_container, pay_for_hash, pay_for_walk

# Operands are whatever model-written code holds.
Value = Any
BinaryOperator = Callable[[Value, Value], Value]
Payment = Callable[[ExecutionBudget, Value, Value], None]

MAX_INTEGER_BITS: Final = 262_144
"""Longest integer that model code may compute, about 79,000 digits."""

POINTER_BYTES: Final = 8
"""What an item of a list or tuple costs when only the reference to it is new."""

ENTRY_BYTES: Final = 64
"""What an entry of a dict or set costs."""

INTEGER_BYTES: Final = 40
"""What an item of a range costs when it becomes an object of its own."""

_SEQUENCES: Final = (str, bytes, list, tuple, deque)
_TEXT_WIDTH: Final = re.compile(r"%[-+ #0]*(\d+)?(?:\.(\d+))?")
_SMALL_BITS: Final = 2_000


def size_in_bytes(value: Value) -> int:
    """Return what a copy of the sequence, set or dict `value` costs, or 0 for anything else."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, list | tuple | deque):
        return POINTER_BYTES * len(value)
    if isinstance(value, dict | set | frozenset):
        return ENTRY_BYTES * len(value)
    return 0


def length(value: Value) -> int:
    """Return how many items a sized value has, 0 for others: lazy iterators pay item by item."""
    try:
        return len(value)
    except TypeError:
        return 0
    except OverflowError:
        # A range longer than any index.
        return 1 << 62


def too_long(budget: ExecutionBudget, bits: float) -> None:
    """Stop the code if an integer of that many bits is beyond the limit."""
    if bits > MAX_INTEGER_BITS:
        budget.stop(
            f"the code computed an integer of more than {MAX_INTEGER_BITS:,} bits; the likely cause is a power, shift "
            "or factorial of a huge number, or a product that grows in a loop"
        )


def pay_for_add(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Adding joins sequences: the shorter one is new data, the longer one is copied."""
    if type(left) in SCALARS:
        if isinstance(right, Fraction):
            pay_for_fractions(budget, left, right)
        return
    if isinstance(left, Fraction):
        pay_for_fractions(budget, left, right)
        return
    short, long = sorted((size_in_bytes(left), size_in_bytes(right)))
    budget.allocate(short)
    if isinstance(left, str | bytes):
        budget.copied(long)
    else:
        budget.allocate(long)


def pay_for_extend(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """`+=` on a list copies only the right side; on anything else it is an addition."""
    if isinstance(left, list):
        budget.allocate(POINTER_BYTES * length(right))
    else:
        pay_for_add(budget, left, right)


def pay_for_mul(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Repeating a sequence makes new data; multiplying integers adds up their bits."""
    if isinstance(left, int) and isinstance(right, int):
        left_bits, right_bits = left.bit_length(), right.bit_length()
        if left_bits + right_bits > _SMALL_BITS:
            _pay_for_digits(budget, left_bits, right_bits)
            too_long(budget, left_bits + right_bits)
    elif isinstance(right, int) and isinstance(left, _SEQUENCES):
        budget.allocate(max(0, right) * size_in_bytes(left))
    elif isinstance(left, int) and isinstance(right, _SEQUENCES):
        budget.allocate(max(0, left) * size_in_bytes(right))
    else:
        pay_for_fractions(budget, left, right)


def pay_for_pow(budget: ExecutionBudget, base: Value, exponent: Value) -> None:
    """The bits of an integer power are those of the base times the exponent."""
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        exponent = exponent.numerator
    if not isinstance(base, int | Fraction) or not isinstance(exponent, int):
        return
    if isinstance(base, int) and exponent < 0:
        # A float, however small.
        return
    bits = 1 if base in (0, 1, -1) else _bits(base)
    size = bits * abs(exponent)
    if bits > 1 and size > _SMALL_BITS:
        too_long(budget, size)
        _pay_for_digits(budget, size, size)


def pay_for_fractions(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Arithmetic with fractions looks for common factors, which takes time with the square of their length."""
    if isinstance(left, Fraction) or isinstance(right, Fraction):
        bits = _bits(left) + _bits(right)
        too_long(budget, bits)
        budget.work((bits // 30) ** 2 // 100)


def pay_for_lshift(budget: ExecutionBudget, value: Value, by: Value) -> None:
    """Shifting left adds bits."""
    if isinstance(value, int) and isinstance(by, int) and value and by > 0:
        too_long(budget, value.bit_length() + by)


def pay_for_mod(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """`%` is a division for numbers and formatting for text."""
    if isinstance(left, int):
        pay_for_division(budget, left, right)
    elif isinstance(left, str | bytes):
        pay_for_percent(budget, left if isinstance(left, str) else left.decode("latin-1"), right)


def pay_for_division(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Dividing long integers takes time with the product of their lengths."""
    if isinstance(left, int) and isinstance(right, int):
        _pay_for_digits(budget, left.bit_length(), right.bit_length())
    else:
        pay_for_fractions(budget, left, right)


def pay_for_percent(budget: ExecutionBudget, template: str, values: Value) -> None:
    """`template % values` makes text as wide as its widths ask and its values are long."""
    arguments = values if isinstance(values, tuple) else (values,)
    fields = template.count("%")
    longest = sum(int(width) for match in _TEXT_WIDTH.finditer(template) for width in match.groups("0"))
    if "*" in template:
        longest += sum(abs(value) for value in arguments if isinstance(value, int))
    budget.allocate(longest)
    for value in arguments:
        if type(value) not in SCALARS:
            budget.allocate(fields * pay_for_walk(budget, value, "while getting the repr of an object"))


def pay_for_merge(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """`|`, `&`, `^` and `-` of sets and dicts copy at most both sides; numbers are subtracted."""
    if isinstance(left, Fraction) or isinstance(right, Fraction):
        pay_for_fractions(budget, left, right)
    elif type(left) not in SCALARS:
        budget.allocate(size_in_bytes(left) + size_in_bytes(right))


def pay_for_comparison(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Comparing walks both sides while they are equal; values of different length are told apart at once."""
    if type(left) in SCALARS or type(right) in SCALARS:
        return
    if isinstance(left, str | bytes):
        budget.scan(len(left) >> 4)
    elif is_container(left) and is_container(right) and len(left) and len(right):
        pay_for_walk(budget, left if len(left) <= len(right) else right, "in comparison")


def pay_for_search(budget: ExecutionBudget, container: Value, item: Value) -> None:
    """`in` walks sequences, and ranges when asked for something that is no integer."""
    if isinstance(container, str | bytes):
        budget.scan(len(container) >> 4)
    elif isinstance(container, list | tuple | deque) or (
        isinstance(container, range) and type(item) is not int
    ):
        budget.scan(2 * len(container))
        if is_container(item):
            pay_for_walk(budget, item, "in comparison")
    else:
        pay_for_hash(budget, item)


def _pay_for_digits(budget: ExecutionBudget, left_bits: int, right_bits: int) -> None:
    if left_bits > _SMALL_BITS and right_bits > _SMALL_BITS:
        digits = (left_bits // 30) * (right_bits // 30)
        budget.work(int(digits**0.8) // 100)


def _bits(value: Value) -> int:
    if isinstance(value, int):
        return value.bit_length()
    if isinstance(value, Fraction):
        return max(value.numerator.bit_length(), value.denominator.bit_length())
    return 0


def _paying(budget: ExecutionBudget, pay: Payment, operation: BinaryOperator) -> BinaryOperator:
    def paid(left: Value, right: Value) -> Value:
        pay(budget, left, right)
        return operation(left, right)

    return paid


def _paying_set_operator(budget: ExecutionBudget, operation: BinaryOperator) -> BinaryOperator:
    def paid(left: Value, right: Value) -> Value:
        if type(left) is int:
            return operation(left, right)
        pay_for_merge(budget, left, right)
        return stable_set(operation(left, right))

    return paid


_ARITHMETIC: Final[Mapping[str, tuple[Payment, BinaryOperator, Payment, BinaryOperator]]] = {
    "add": (pay_for_add, operator.add, pay_for_extend, operator.iadd),
    "mul": (pay_for_mul, operator.mul, pay_for_mul, operator.imul),
    "pow": (pay_for_pow, operator.pow, pay_for_pow, operator.ipow),
    "lshift": (pay_for_lshift, operator.lshift, pay_for_lshift, operator.ilshift),
    "mod": (pay_for_mod, operator.mod, pay_for_mod, operator.imod),
    "floordiv": (pay_for_division, operator.floordiv, pay_for_division, operator.ifloordiv),
    "truediv": (pay_for_fractions, operator.truediv, pay_for_fractions, operator.itruediv),
}
"""Name -> payment and operator, then those of the augmented form."""

_OF_SETS: Final[Mapping[str, tuple[BinaryOperator, BinaryOperator]]] = {
    "or": (operator.or_, operator.ior),
    "and": (operator.and_, operator.iand),
    "xor": (operator.xor, operator.ixor),
    "sub": (operator.sub, operator.isub),
}
_COMPARISONS: Final[Mapping[str, BinaryOperator]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def paying_operators(budget: ExecutionBudget) -> dict[str, BinaryOperator]:
    """Return the operators by short name: `add`, and `iadd` for its augmented form.

    `in` and `not_in` take (item, container), in the order in which they are written.
    """
    found: dict[str, BinaryOperator] = {}
    for name, (pay, plain, pay_in_place, in_place) in _ARITHMETIC.items():
        found[name] = _paying(budget, pay, plain)
        found[f"i{name}"] = _paying(budget, pay_in_place, in_place)
    for name, (plain, in_place) in _OF_SETS.items():
        found[name] = _paying_set_operator(budget, plain)
        found[f"i{name}"] = _paying_set_operator(budget, in_place)
    for name, plain in _COMPARISONS.items():
        found[name] = _paying(budget, pay_for_comparison, plain)

    def contained(item: Value, container: Value) -> bool:
        pay_for_search(budget, container, item)
        return item in container

    def not_contained(item: Value, container: Value) -> bool:
        pay_for_search(budget, container, item)
        return item not in container

    found["in"], found["not_in"] = contained, not_contained
    return found
