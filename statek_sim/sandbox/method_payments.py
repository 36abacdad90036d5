"""What methods of Python's own types cost: `'x'.ljust(n)`, `items.extend(more)`, `text.replace(a, b)`."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.formatting import pay_for_strftime, pay_for_template
from statek_sim.sandbox.intake import (
    Args,
    Value,
    in_fixed_order,
    paid_entries,
    pay_for_items,
    pay_for_sorting,
)
from statek_sim.sandbox.lazy import SORTING
from statek_sim.sandbox.operators import (
    POINTER_BYTES,
    WIDE_BYTES,
    length,
    pay_for_comparing_each,
    pay_for_decimals,
    pay_for_division,
    pay_for_exponent,
    pay_for_gcd,
    pay_for_ratio,
    pay_for_text_search,
    size_in_bytes,
)
from statek_sim.sandbox.ordered_set import stable_set
from statek_sim.sandbox.weigh import pay_for_hash

_LETTERS_OF_ONE: Final = 3
_PIECE_BYTES: Final = 16
_WIDEST: Final = {
    "unicode_escape": 10, "raw_unicode_escape": 10, "utf_7": 8, "backslashreplace": 10, "xmlcharrefreplace": 10,
    "namereplace": 90,
}  # fmt: skip
"""Encodings, and ways to go on where one has no place for a character: the most bytes that it may become."""
_PLACING: Final = 4
_COUNTING: Final = 2
_ADDING_SHIFT: Final = 14
_STRIPPING_SHIFT: Final = 17
_MUCH_TEXT: Final = 65_536
_READING_TIME: Final = 2


def copying(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """The result is as long as the value."""
    taken = _taken(owner, args)
    size = size_in_bytes(taken)
    if isinstance(taken, str | bytes):
        budget.copied(size)
    else:
        budget.allocate(size)
    budget.scan(size >> 4)
    return args


def _taken(owner: Value, args: Args) -> Value:
    """Return what a method takes: its owner, or the argument of one that a class has, such as `bytes.fromhex`."""
    return args[0] if isinstance(owner, type) and args else owner


def stripping(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """Each character at an end is looked for among those to be taken off."""
    if isinstance(owner, str | bytes) and args and isinstance(args[0], str | bytes):
        budget.work(len(owner) * len(args[0]) >> _STRIPPING_SHIFT)
    return copying(budget, owner, args, kwargs)


def changing_case(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """A letter may become three of them; Python makes room for that first."""
    if isinstance(owner, str) and not owner.isascii():
        budget.allocate(_LETTERS_OF_ONE * WIDE_BYTES * len(owner))
    return copying(budget, owner, args, kwargs)


def encoding(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """A character may become an escape, or its whole name; Punycode puts each in its place among all."""
    size = length(_taken(owner, args))
    words = [str(word).lower() for word in (*args, *kwargs.values()) if isinstance(word, str)]
    if any("punycode" in word or "idna" in word for word in words):
        budget.work(_PLACING + (size * size >> 7))
    widest = max((_WIDEST.get(word.replace("-", "_"), 1) for word in words), default=1)
    if widest > 1:
        budget.allocate(size * widest)
    return copying(budget, owner, args, kwargs)


def testing(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Each character is looked up in Unicode's tables."""
    budget.scan(length(owner) >> 2)
    return args


def searching(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Everything is looked at, and compared if it is a sequence of values."""
    if isinstance(owner, list | tuple | deque):
        for value in args[:1]:
            pay_for_comparing_each(budget, len(owner), value)
    elif isinstance(owner, str | bytes):
        budget.scan(len(owner) >> 4)
    elif isinstance(owner, range) and args:
        if isinstance(args[0], int):
            pay_for_division(budget, args[0], owner.step)
        else:
            budget.scan(8 * length(owner))
    return args


def finding(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """A text is searched for what is first among the arguments; all else is `searching`."""
    if isinstance(owner, str | bytes) and args:
        pay_for_text_search(budget, owner, args[0])
        return args
    return searching(budget, owner, args, kwargs)


def hashing(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    """What is looked up is hashed, with all that is inside it."""
    for value in args[:1]:
        pay_for_hash(budget, value)
    return args


def moving(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """`insert` and `pop` move the items behind, which is quick; `pop` at the end moves none; that of a dict hashes."""
    pay_for_hash(budget, args[0] if args else None)
    if isinstance(owner, list | deque) and args and args[0] != -1:
        budget.scan(len(owner) >> 3)
    return args


def popping(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """The first item in order is remembered; that nothing else has changed is looked up."""
    queue = getattr(owner, "_to_pop", None)
    is_ordered = queue is not None and len(queue.left) == len(owner)
    budget.scan(length(owner) >> 1 if is_ordered else SORTING * length(owner))
    return args


def sorting(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """Items are compared a few times each."""
    budget.scan(4 * length(owner))
    if kwargs.get("key") is None:
        pay_for_sorting(budget, owner)
    return args


def splitting(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Pieces of a short text are not charged beyond it."""
    size = size_in_bytes(owner)
    budget.allocate(size if size < _MUCH_TEXT else _PIECE_BYTES * size)
    return args


def padding(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """The width is the length of the result."""
    if args and isinstance(args[0], int) and args[0] > length(owner):
        budget.allocate(args[0] * _widest(owner, *args[1:]))
    return args


def _widest(*texts: Value) -> int:
    """Return the bytes that a character of a text may take which is made of these."""
    return WIDE_BYTES if any(isinstance(text, str) and not text.isascii() for text in texts) else 1


def expanding_tabs(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """Each tab may become as wide as it is asked."""
    width = args[0] if args else kwargs.get("tabsize", 8)
    if isinstance(width, int):
        budget.allocate((length(owner) + _tabs(owner) * max(0, width)) * _widest(owner))
    return args


def _tabs(text: Value) -> int:
    return sum(char in ("\t", 9) for char in text)


def _occurrences(text: Value, part: Value) -> int:
    return int(text.count(part))


def replacing(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """Only what the replacements add is new."""
    if len(args) >= 2 and isinstance(owner, str | bytes) and type(args[0]) is type(args[1]) is type(owner):
        found = _occurrences(owner, args[0])
        limit = args[2] if len(args) > 2 else kwargs.get("count", -1)
        if isinstance(limit, int) and limit >= 0:
            found = min(found, limit)
        more = max(0, found * (len(args[1]) - len(args[0])))
        budget.allocate(more * _widest(owner, args[1]))
        budget.copied(size_in_bytes(owner))
    return args


def joining(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """The items and what is between them."""
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


def translating(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Each character may become the longest text of the table."""
    table = args[0] if args else None
    budget.copied(length(owner))
    budget.scan(8 * length(owner))
    if isinstance(owner, str) and hasattr(table, "__getitem__"):
        return _Translations(budget, table, _widest(owner)), *args[1:]
    return args


class _Translations:
    """A table for `str.translate` that pays for each text it gives, before that takes the place of a character."""

    __slots__ = ("_budget", "_table", "_wide")

    def __init__(self, budget: ExecutionBudget, table: Value, wide: int) -> None:
        self._budget = budget
        self._table = table
        self._wide = wide

    def __getitem__(self, character: int) -> Value:
        found = self._table[character]
        if isinstance(found, str):
            self._budget.allocate(max(self._wide, _widest(found)) * max(0, len(found) - 1))
        return found


def counting_bits(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """A long integer is walked."""
    if isinstance(owner, int):
        budget.work(owner.bit_length() >> 13)
    return args


def formatting(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """`template.format(...)`."""
    if isinstance(owner, str):
        pay_for_template(budget, owner, args, kwargs)
    return args


def formatting_by_name(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """`template.format_map(mapping)`."""
    if isinstance(owner, str) and len(args) == 1:
        pay_for_template(budget, owner, (), args[0])
    return args


def taking_in(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Everything is hashed, of sets the owner is copied, too."""
    if not isinstance(owner, type) and isinstance(owner, set | frozenset):
        budget.allocate(size_in_bytes(owner))
    return paid_entries(budget, args)


def extending(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    """A reference for every item."""
    pay_for_items(budget, args, POINTER_BYTES)
    return in_fixed_order(args)


def chaining(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    """`chain.from_iterable` on a chain of Python's own, which does not pay item by item."""
    for rows in args[:1]:
        if isinstance(rows, list | tuple | deque):
            budget.work(sum(map(length, rows)))
    return args


def to_bytes(budget: ExecutionBudget, _: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """As many bytes as are asked for."""
    size = args[0] if args else kwargs.get("length", 1)
    if isinstance(size, int) and size > 0:
        budget.allocate(size)
    return args


def repeating(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """`Counter.elements` gives each key as often as it was counted."""
    if isinstance(owner, Counter):
        counts: Iterable[Value] = owner.values()
        budget.work(sum(max(0, count) for count in counts if isinstance(count, int)))
    return args


def unpacking_decimal(budget: ExecutionBudget, owner: Value, _args: Args, _: Mapping[str, Value]) -> Args:
    """A decimal as a ratio is an integer as long as its exponent, as a tuple it is its digits one by one."""
    if isinstance(owner, Decimal):
        size = owner.__sizeof__()
        budget.allocate(POINTER_BYTES * 2 * size)
        budget.scan(2 * size)
        pay_for_ratio(budget, owner)
    return _args


def deciding(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Decimals of many digits are compared and rounded; a long integer becomes a decimal first."""
    pay_for_decimals(budget, owner, *args)
    return args


def counting(budget: ExecutionBudget, _: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """`Counter` counts in Python where it takes counts away, or adds those of another."""
    budget.work(_COUNTING)
    for value in (*args, kwargs):
        budget.work(length(value) >> 3)
        if isinstance(value, dict):
            budget.work(
                sum(count.bit_length() for count in value.values() if isinstance(count, int)) >> _ADDING_SHIFT
            )
    return paid_entries(budget, args)


def ranking(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """`Counter.most_common` sorts by counts, in Python where only some are wanted."""
    budget.allocate(size_in_bytes(owner))
    budget.work(length(owner) >> 2)
    return args


def deriving(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Logarithms and roots of a decimal look at all of its digits, of which there may be many."""
    if isinstance(owner, Decimal):
        budget.work(owner.__sizeof__() >> 6)
    return args


def approximating(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Continued fractions, as long as the denominator."""
    if isinstance(owner, Fraction):
        bits = owner.denominator.bit_length()
        pay_for_gcd(budget, bits, 16 * bits)
    return args


def converting(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    """A decimal with a huge exponent becomes an integer, an integer a decimal."""
    for value in args[:1]:
        if isinstance(value, Decimal):
            pay_for_exponent(budget, value)
        pay_for_decimals(budget, value, value, value)
    return args


def writing_time(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    """The template may ask for much text."""
    pay_for_strftime(budget, args[0] if args else kwargs.get("format"), owner)
    return args


def reading_time(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    """The format is compiled to a regular expression."""
    for text in args:
        if isinstance(text, str):
            budget.work(_READING_TIME + len(text) * (1 + (len(text) >> 8)))
    return args


def expanding(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Each reference in the template may stand for all of the text."""
    for template in args[:1]:
        if isinstance(template, str | bytes):
            budget.work(len(template) >> 2)
            references = template.count("\\") if isinstance(template, str) else template.count(b"\\")
            budget.allocate(len(template) + references * length(owner.group()))
    return args


def copying_groups(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """Each group may be all of the text."""
    if isinstance(owner, re.Match):
        budget.copied(length(owner.group()) * max(1, len(args)) * (1 if args else owner.re.groups + 1))
    return args
