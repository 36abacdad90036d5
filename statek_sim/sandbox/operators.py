"""Operators of model-written code that can be expensive: each pays first, then does what Python does.

`x * y` compiles to `_statek_mul(x, y)`. Error types and messages are Python's own, because the operation itself is.
"""

from __future__ import annotations

import operator
import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.ordered_set import stable_set, without_addresses
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

WIDE_BYTES: Final = 4
"""What a character costs in a text with others than ASCII: what the widest takes."""

INTEGER_BYTES: Final = 40
"""What an item of a range costs when it becomes an object of its own."""

_SEQUENCES: Final = (str, bytes, list, tuple, deque)
_FIELD_END: Final = re.compile(r"[-+ #0]*(\*|\d+)?(?:\.(\*|\d+))?[hlL]?(.?)", re.DOTALL)
_SHORT_TEXT: Final = 16
_ENTRIES: Final[tuple[type[Any], ...]] = (dict, set, frozenset, type({}.keys()), type({}.items()))
_VALUES: Final[type[Any]] = type({}.values())
_SMALL_BITS: Final = 2_000
_SHOWN_AS_THEY_ARE: Final = SCALARS | {str}
_LONGEST: Final = 1 << _SMALL_BITS
_SHORTEST: Final = -_LONGEST
_LONG_EXACT: Final = 250
_LINEAR_SHIFT: Final = 14
"""Dividing 2**14 bits by a short integer takes as long as one iteration."""

_FORGOTTEN_SHIFT: Final = 4
_LONG_PRODUCT: Final = 16
_DECIMAL_SHIFT: Final = 8
_DIGITS_PER_BYTE: Final = 2.375
_DECIMAL_HEAD: Final = 72
"""Digits of a decimal for a byte that it takes, beside those that every decimal takes."""

_LOGARITHM: Final = 10
_LOGARITHM_SHIFT: Final = 18


def size_in_bytes(value: Value) -> int:
    """Return what a copy of the sequence, set or dict `value` costs, or 0 for anything else."""
    if isinstance(value, str):
        return len(value) if value.isascii() else WIDE_BYTES * len(value)
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, list | tuple | deque):
        return POINTER_BYTES * len(value)
    if isinstance(value, _ENTRIES):
        return ENTRY_BYTES * len(value)
    return 0


def size_of_exact(value: Decimal | Fraction) -> int:
    """Return what a decimal or fraction of many digits costs, 0 for a short one."""
    if isinstance(value, Decimal):
        size = value.__sizeof__()
        return size if size > _LONG_EXACT else 0
    bits = value.numerator.bit_length() + value.denominator.bit_length()
    return bits >> 3 if bits > _SMALL_BITS else 0


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


def bound_range(budget: ExecutionBudget, *numbers: Value) -> None:
    """Stop the code if it makes a range of longer integers than indices have any use for.

    Every question to such a range, even for its last item, divides and multiplies them.
    """
    for number in numbers:
        if isinstance(number, int) and number.bit_length() > _SMALL_BITS:
            budget.stop(
                f"the code made a range of integers of more than {_SMALL_BITS:,} bits; the likely cause is a power or "
                "product that was taken for a number of times"
            )


def pay_for_add(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Adding joins sequences: the shorter one is new data, the longer one is copied."""
    if type(left) in SCALARS:
        if type(right) not in SCALARS:
            pay_for_fractions(budget, left, right)
        return
    if isinstance(left, Fraction | Decimal):
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
    elif isinstance(left, str | bytes) and isinstance(right, str | bytes):
        # The old text is mostly forgotten at once: line after line is how reports are built.
        budget.allocate(len(right) + (len(left) >> _FORGOTTEN_SHIFT))
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
        _pay_for_long_product(budget, left, right)


def _pay_for_long_product(budget: ExecutionBudget, *operands: Value) -> None:
    """Decimals are multiplied in full and then rounded."""
    for operand in operands:
        if isinstance(operand, Decimal) and operand.__sizeof__() > _LONG_EXACT:
            budget.work(_LONG_PRODUCT * (operand.__sizeof__() >> _DECIMAL_SHIFT))


def pay_for_pow(budget: ExecutionBudget, base: Value, exponent: Value) -> None:
    """The bits of an integer power are those of the base times the exponent."""
    if isinstance(exponent, Fraction) and exponent.denominator == 1:
        exponent = exponent.numerator
    if isinstance(base, Decimal) or isinstance(exponent, Decimal):
        pay_for_decimals(budget, base, exponent)
        _pay_for_long_product(budget, base, base, exponent)
        _pay_for_logarithm(budget, base, exponent)
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


def _pay_for_logarithm(budget: ExecutionBudget, base: Value, exponent: Value) -> None:
    """A power that is no whole one goes through a logarithm of as many digits as the base has."""
    if isinstance(exponent, Decimal) and exponent.is_finite() and exponent != exponent.to_integral_value():
        digits = (
            int((base.__sizeof__() - _DECIMAL_HEAD) * _DIGITS_PER_BYTE)
            if isinstance(base, Decimal)
            else _bits(base) // 3
        )
        budget.work(_LOGARITHM + (digits**3 >> _LOGARITHM_SHIFT))


def pay_for_fractions(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Arithmetic with fractions looks for common factors, which takes time with the square of their length."""
    if isinstance(left, Fraction) or isinstance(right, Fraction):
        bits = _bits(left) + _bits(right)
        too_long(budget, bits)
        budget.work((bits // 30) ** 2 // 100)
    elif isinstance(left, Decimal) or isinstance(right, Decimal):
        pay_for_decimals(budget, left, right)


def pay_for_decimals(budget: ExecutionBudget, *operands: Value) -> None:
    """A result has few digits, but operands may have many."""
    for operand in operands:
        if isinstance(operand, Decimal):
            budget.work(operand.__sizeof__() >> _DECIMAL_SHIFT)
        elif isinstance(operand, int):
            # It becomes a decimal first.
            pay_for_gcd(budget, operand.bit_length(), operand.bit_length())


def pay_for_lshift(budget: ExecutionBudget, value: Value, by: Value) -> None:
    """Shifting left adds bits."""
    if isinstance(value, int) and isinstance(by, int) and value and by > 0:
        too_long(budget, value.bit_length() + by)


def pay_for_rshift(_budget: ExecutionBudget, _value: Value, _by: Value) -> None:
    """Shifting right makes integers shorter; what is made pays as every integer does."""


def pay_for_mod(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """`%` is a division for numbers and formatting for text."""
    if isinstance(left, int):
        pay_for_division(budget, left, right)
    elif isinstance(left, str | bytes):
        pay_for_percent(budget, left if isinstance(left, str) else left.decode("latin-1"), right)
    else:
        pay_for_fractions(budget, left, right)


def pay_for_division(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Dividing long integers takes time with the product of their lengths."""
    if isinstance(left, int) and isinstance(right, int):
        _pay_for_digits(budget, left.bit_length(), right.bit_length())
        budget.work(left.bit_length() >> _LINEAR_SHIFT)
    else:
        pay_for_fractions(budget, left, right)


def pay_for_percent(budget: ExecutionBudget, template: str, values: Value) -> None:
    """`template % values` makes text as wide as its widths ask and its values are long."""
    arguments = values if isinstance(values, tuple) else (values,)
    budget.copied(len(template))
    budget.scan(8 * template.count("%"))
    fields, widths, starred = _percent_fields(template)
    budget.allocate(widths)
    if starred:
        budget.allocate(sum(abs(value) for value in arguments if isinstance(value, int)))
    for value in arguments:
        if isinstance(value, Decimal):
            pay_for_exponent(budget, value)
        elif type(value) not in SCALARS:
            # Each value has a field of its own, unless fields name what they show.
            times = 1 if isinstance(values, tuple) else fields
            budget.allocate(times * pay_for_walk(budget, value, "while getting the repr of an object"))


def _percent_fields(template: str) -> tuple[int, int, bool]:
    """Return how many fields there are, how wide they are together, and whether some take their width from values."""
    fields, widths, starred, at = 0, 0, False, template.find("%")
    while at >= 0:
        at += 1
        if template[at : at + 1] == "(":
            at = _after_name(template, at)
        found = _FIELD_END.match(template, at)
        if found is None:
            break
        fields += 1
        starred = starred or "*" in found.group(1, 2)
        widths += sum(int(width[:20]) for width in found.group(1, 2) if width and width != "*")
        at = template.find("%", max(found.end(), at + 1))
    return fields, widths, starred


def _after_name(template: str, at: int) -> int:
    """Return where the name in parentheses that begins at `at` is over; parentheses inside it count."""
    depth = 0
    for place in range(at, len(template)):
        depth += {"(": 1, ")": -1}.get(template[place], 0)
        if depth == 0:
            return place + 1
    return len(template)


def pay_for_exponent(budget: ExecutionBudget, value: Decimal) -> None:
    """A decimal with a huge exponent is short until it becomes an integer or text without an exponent."""
    if value.is_finite():
        bits = abs(value.adjusted()) * 3
        too_long(budget, bits)
        _pay_for_digits(budget, bits, bits)
        budget.made_integer(bits)


def pay_for_ratio(budget: ExecutionBudget, value: Decimal) -> None:
    """A decimal as a ratio: its digits and a power of ten, from which common factors are taken."""
    pay_for_exponent(budget, value)
    if value.is_finite():
        digits = 8 * value.__sizeof__()
        pay_for_gcd(budget, digits, digits + abs(value.adjusted()) * 4)


def pay_for_merge(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """`|`, `&`, `^` and `-` of sets and dicts copy at most both sides; numbers are subtracted."""
    if isinstance(left, Fraction | Decimal) or isinstance(right, Fraction | Decimal):
        pay_for_fractions(budget, left, right)
    elif type(left) not in SCALARS:
        budget.allocate(size_in_bytes(left) + size_in_bytes(right))


def pay_for_comparison(budget: ExecutionBudget, left: Value, right: Value) -> None:
    """Comparing walks both sides while they are equal; values of different length are told apart at once."""
    left_kind, right_kind = type(left), type(right)
    if left_kind is Fraction or right_kind is Fraction:
        _pay_for_exact_comparison(budget, left, right)
    if left_kind in SCALARS or right_kind in SCALARS:
        return
    if isinstance(left, str | bytes):
        budget.scan(len(left) >> 4)
    elif isinstance(left, slice) and isinstance(right, slice):
        pay_for_walk(budget, left, "in comparison")
    elif is_container(left) and is_container(right) and length(left) and length(right):
        pay_for_walk(budget, left if len(left) <= len(right) else right, "in comparison")


def _pay_for_exact_comparison(budget: ExecutionBudget, left: Value, right: Value) -> None:
    for value in (left, right):
        if isinstance(value, Decimal):
            pay_for_exponent(budget, value)
    _pay_for_digits(budget, _bits(left), _bits(right))


def pay_for_search(budget: ExecutionBudget, container: Value, item: Value) -> None:
    """`in` walks sequences, and ranges when asked for something that is no integer."""
    if isinstance(container, str | bytes):
        pay_for_text_search(budget, container, item)
    elif type(item) is int and isinstance(container, range):
        pay_for_division(budget, item, container.step)
    elif isinstance(container, list | tuple | deque | _VALUES | range):
        pay_for_comparing_each(budget, length(container), item)
    else:
        pay_for_hash(budget, item)


def pay_for_text_search(budget: ExecutionBudget, text: str | bytes, item: Value) -> None:
    """Several characters are looked for up to eight times as long as one."""
    several = isinstance(item, str | bytes) and len(item) > 1
    budget.scan(len(text) >> (1 if several else 4))


def pay_for_comparing_each(budget: ExecutionBudget, size: int, item: Value) -> None:
    """Pay for comparing `item` with each of `size` others, as if they were all alike."""
    budget.scan(2 * size)
    if is_container(item):
        budget.scan(size * pay_for_walk(budget, item, "in comparison"))
    elif isinstance(item, str | bytes) and len(item) >= _SHORT_TEXT:
        budget.scan(size * (len(item) >> 4))


def pay_for_gcd(budget: ExecutionBudget, left_bits: int, right_bits: int) -> None:
    """Looking for common factors takes time with the product of the lengths."""
    if left_bits > _SMALL_BITS and right_bits > _SMALL_BITS:
        budget.work((left_bits // 30) * (right_bits // 30) // 2_000)


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
    made_integer = budget.made_integer

    def paid(left: Value, right: Value) -> Value:
        pay(budget, left, right)
        result = operation(left, right)
        if type(result) is int:
            made_integer(result.bit_length())
        elif type(result) is str and type(right) not in _SHOWN_AS_THEY_ARE and operation is operator.mod:
            return without_addresses(result)
        return result

    return paid


def _paying_sum(budget: ExecutionBudget, pay: Payment, operation: BinaryOperator) -> BinaryOperator:
    """As `_paying`, quicker for the short integers that most loops count with."""
    paying = _paying(budget, pay, operation)

    def paid(left: Value, right: Value) -> Value:
        if type(left) is int and type(right) is int:
            result = operation(left, right)
            if not _SHORTEST < result < _LONGEST:
                budget.made_integer(result.bit_length())
            return result
        return paying(left, right)

    return paid


def _paying_comparison(budget: ExecutionBudget, operation: BinaryOperator) -> BinaryOperator:
    def paid(left: Value, right: Value) -> Value:
        pay_for_comparison(budget, left, right)
        return operation(left, right)

    return paid


def _paying_unary(budget: ExecutionBudget, operation: Callable[[Value], Value]) -> Callable[..., Value]:
    def paid(operand: Value) -> Value:
        pay_for_decimals(budget, operand)
        if isinstance(operand, Counter):
            budget.allocate(size_in_bytes(operand))
        result = operation(operand)
        if isinstance(result, int):
            budget.made_integer(result.bit_length())
        return result

    return paid


def _paying_set_operator(budget: ExecutionBudget, operation: BinaryOperator) -> BinaryOperator:
    def paid(left: Value, right: Value) -> Value:
        if type(left) is int:
            result = operation(left, right)
            if type(result) is int and not _SHORTEST < result < _LONGEST:
                budget.made_integer(result.bit_length())
            return result
        pay_for_merge(budget, left, right)
        return stable_set(operation(left, right))

    return paid


_ARITHMETIC: Final[Mapping[str, tuple[Payment, BinaryOperator, Payment, BinaryOperator]]] = {
    "add": (pay_for_add, operator.add, pay_for_extend, operator.iadd),
    "mul": (pay_for_mul, operator.mul, pay_for_mul, operator.imul),
    "pow": (pay_for_pow, operator.pow, pay_for_pow, operator.ipow),
    "lshift": (pay_for_lshift, operator.lshift, pay_for_lshift, operator.ilshift),
    "rshift": (pay_for_rshift, operator.rshift, pay_for_rshift, operator.irshift),
    "mod": (pay_for_mod, operator.mod, pay_for_mod, operator.imod),
    "floordiv": (pay_for_division, operator.floordiv, pay_for_division, operator.ifloordiv),
    "truediv": (pay_for_fractions, operator.truediv, pay_for_fractions, operator.itruediv),
}
"""Name -> payment and operator, then those of the augmented form."""

_SHORT_FOR_INTEGERS: Final = frozenset({"add", "rshift"})

_OF_SETS: Final[Mapping[str, tuple[BinaryOperator, BinaryOperator]]] = {
    "or": (operator.or_, operator.ior),
    "and": (operator.and_, operator.iand),
    "xor": (operator.xor, operator.ixor),
    "sub": (operator.sub, operator.isub),
}
_COMPARISONS: Final[Mapping[str, BinaryOperator]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip

_UNARY: Final[Mapping[str, Callable[[Value], Value]]] = {
    "neg": operator.neg, "pos": operator.pos, "invert": operator.invert,
}  # fmt: skip


def paying_operators(budget: ExecutionBudget) -> dict[str, Callable[..., Value]]:
    """Return the operators by short name: `add`, and `iadd` for its augmented form.

    `in` and `not_in` take (item, container), in the order in which they are written.
    """
    found: dict[str, Callable[..., Value]] = {}
    for name, (pay, plain, pay_in_place, in_place) in _ARITHMETIC.items():
        paying = _paying_sum if name in _SHORT_FOR_INTEGERS else _paying
        found[name] = paying(budget, pay, plain)
        found[f"i{name}"] = paying(budget, pay_in_place, in_place)
    for name, (plain, in_place) in _OF_SETS.items():
        found[name] = _paying_set_operator(budget, plain)
        found[f"i{name}"] = _paying_set_operator(budget, in_place)
    for name, plain in _COMPARISONS.items():
        found[name] = _paying_comparison(budget, plain)
    for name, unary in _UNARY.items():
        found[name] = _paying_unary(budget, unary)

    def contained(item: Value, container: Value) -> bool:
        pay_for_search(budget, container, item)
        return item in container

    def not_contained(item: Value, container: Value) -> bool:
        pay_for_search(budget, container, item)
        return item not in container

    found["in"], found["not_in"] = contained, not_contained
    return found
