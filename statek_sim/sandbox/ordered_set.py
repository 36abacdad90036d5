"""Sets with a fixed order, and a `hash` with the same result in every process.

Python orders a set of strings by their hashes, which change with PYTHONHASHSEED, so two runs of the same
scenario could print different output. The classes here are subclasses of `set` and `frozenset` with a fixed
order:

- A set of only numbers and tuples of numbers has Python's own order, which is the same in every process (and in
  STATEK).
- Any other set is ordered by type name, then by `repr` without memory addresses, then by location in the
store, then by attributes. Objects that are equal in all these respects keep Python's order.
"""

from __future__ import annotations

import builtins
import datetime
import re
import zlib
from collections.abc import Hashable, Iterable, Iterator
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from operator import itemgetter
from types import FunctionType
from typing import Any, Final

_NUMBERS: Final = frozenset({int, float, bool, complex, Decimal, Fraction})
_WHOLE: Final = frozenset({int, bool})
_UNSEEDED: Final = frozenset({range, datetime.timedelta})
# An address as Python writes it: before `>` or the file of a code object, or anywhere with 9 to 16 digits.
_ADDRESS: Final = re.compile(r' at 0x(?:[0-9a-fA-F]+(?=>|, file ")|[0-9a-fA-F]{9,16}\b)')

STORE_PLACE: Final = "__place_in_statek_sims_store__"
"""Name of the method that returns an object's location in a store: an unsigned 64-bit number, or None."""

# Any value in model-written code.
Item = Any


def without_addresses(text: str) -> str:
    """Return `text` with memory addresses such as ` at 0x7f12>` replaced by ` at 0x...>`.

    Similar strings, such as `at 0xylophone` and `at 0x12`, are left unchanged.
    """
    return _ADDRESS.sub(" at 0x...", text) if " at 0x" in text else text


def in_order(items: Iterable[Item]) -> list[Item]:
    """Return a plain set's items in the fixed order defined in the module docstring."""
    found = list(items)
    if all(map(_is_number, found)):
        return found
    keyed = sorted(((_sort_key(item), item) for item in found), key=itemgetter(0))
    ordered: list[Item] = []
    for _, equal in groupby(keyed, key=itemgetter(0)):
        group = [item for _, item in equal]
        ordered += sorted(group, key=_attributes) if len(group) > 1 else group
    return ordered


def _is_number(item: Item) -> bool:
    """Return whether `item` is a number or a tuple of numbers; NaN is excluded, because its hash is its address."""
    kind = type(item)
    return all(map(_is_number, item)) if kind is tuple else kind in _NUMBERS and item == item  # noqa: PLR0124


def store_place(item: Item) -> int | None:
    """Return an object's location in the store, or None if it has none."""
    place = getattr(type(item), STORE_PLACE, None)
    found: int | None = None if place is None or isinstance(item, type) else place(item)
    return found


def stable_set(value: Item) -> Item:
    """Return an ordered set for a plain `set` or `frozenset`, and any other value unchanged."""
    kind = type(value)
    if kind is builtins.set:
        return OrderedSet(value)
    if kind is builtins.frozenset:
        return OrderedFrozenSet(value)
    return value


def _listed(items: builtins.set[Item] | builtins.frozenset[Item]) -> str:
    """Return the items' `repr`s in order, joined by commas.

    Each item's `repr` is computed only once; computing it twice would double the work at every level of
    nested sets.
    """
    plain = builtins.set.__iter__ if isinstance(items, builtins.set) else builtins.frozenset.__iter__
    found: list[Item] = list(plain(items))  # type: ignore[arg-type]  # the right one of the two
    texts = [repr(item) for item in found]
    if not all(map(_is_number, found)):
        names = (type(item).__name__ for item in found)
        texts = [text for _, _, text in sorted(zip(names, map(without_addresses, texts), texts, strict=True))]
    return ", ".join(texts)


def _sort_key(item: Item) -> tuple[str, str, int]:
    shown = stable_set(item) if type(item) is builtins.frozenset else item
    return type(item).__name__, without_addresses(repr(shown)), store_place(item) or 0


def _attributes(item: Item) -> str:
    """Return an object's attributes as a string, to order objects with the same `repr`."""
    try:
        return without_addresses(repr(sorted(vars(item).items(), key=itemgetter(0))))
    except Exception:  # noqa: BLE001  # it has no attributes, or one that cannot be shown
        return ""


class _SetType(type):
    """Metaclass that makes `isinstance(x, set)` in model-written code also accept plain sets, such as tools return."""

    def __instancecheck__(cls, instance: object) -> bool:
        plain = builtins.set if issubclass(cls, builtins.set) else builtins.frozenset
        return isinstance(instance, plain)


class _Ordered(metaclass=_SetType):
    """Methods shared by `OrderedSet` and `OrderedFrozenSet`: ordered iteration and copies."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Item]:
        return iter(in_order(super().__iter__()))  # type: ignore[misc]  # the set is the next base

    def __deepcopy__(self, memo: dict[int, Item]) -> Item:
        return type(self)(deepcopy(item, memo) for item in self)  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[type, tuple[list[Item]]]:
        # Pickle looks up a type by name, which here is the plain type's name.
        plain = builtins.set if isinstance(self, builtins.set) else builtins.frozenset
        return plain, (list(self),)


class OrderedSet(_Ordered, builtins.set[Item]):
    """A `set` with a fixed order. Its type is displayed as `set`."""

    __slots__ = ("_to_pop",)

    def __repr__(self) -> str:
        return "{" + _listed(self) + "}" if self else "set()"

    def pop(self) -> Item:
        """Remove and return the first item in the fixed order."""
        if not self:
            raise KeyError("pop from an empty set")
        first = self._first()
        self.discard(first)
        return first

    def _first(self) -> Item:
        plain = builtins.set.__iter__
        if set(map(type, plain(self))) <= _WHOLE:
            return next(plain(self))
        # Sorting for every popped item would take quadratic time.
        queue: _ToPop | None = getattr(self, "_to_pop", None)
        if queue is None or queue.left != self:
            queue = self._to_pop = _ToPop(in_order(plain(self)))
        return queue.take()


class _ToPop:
    """The items that `pop` will return, in order; `left` is the set of the remaining items."""

    __slots__ = ("_items", "left")

    def __init__(self, items: list[Item]) -> None:
        self._items = items[::-1]
        self.left = builtins.set(items)

    def take(self) -> Item:
        """Remove and return the next item."""
        item = self._items.pop()
        self.left.discard(item)
        return item


class OrderedFrozenSet(_Ordered, builtins.frozenset[Item]):
    """A `frozenset` with a fixed order. Its type is displayed as `frozenset`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "frozenset({" + _listed(self) + "})" if self else "frozenset()"


_RETURNING: Final = (
    "__and__", "__or__", "__sub__", "__xor__", "__rand__", "__ror__", "__rsub__", "__rxor__",
    "copy", "difference", "intersection", "symmetric_difference", "union",
)  # fmt: skip


def _keep_kind(kind: type, base: type) -> None:
    """Replace the methods of `kind` that return a plain `base` with methods that return a `kind`."""
    for name in _RETURNING:
        setattr(kind, name, _returning_kind(kind, getattr(base, name), name))


def _returning_kind(kind: type, method: Any, name: str) -> Any:
    def same_kind(self: Item, *args: Item) -> Item:
        result = method(self, *args)
        return result if result is NotImplemented else kind(result)

    same_kind.__name__ = name
    same_kind.__doc__ = method.__doc__
    return same_kind


for _kind, _base in ((OrderedSet, builtins.set), (OrderedFrozenSet, builtins.frozenset)):
    _keep_kind(_kind, _base)
    # Agents see type names in messages and reprs.
    _kind.__name__ = _kind.__qualname__ = _base.__name__
    _kind.__module__ = "builtins"


def stable_hash(value: Hashable) -> int:
    """Return a hash that is the same in every process; model-written code gets this function as `hash`.

    Numbers, ranges, durations and objects whose class defines `__hash__` in Python keep Python's own hash.
    Strings, bytes, None, dates and times are hashed by content, tuples and frozen sets by their items, and
    all other values by their type's name. Raises `TypeError` for unhashable values.
    """
    kind = type(value)
    own: Any = kind.__hash__
    if kind in _NUMBERS or kind in _UNSEEDED or own is None or isinstance(own, FunctionType):
        return hash(value)
    if isinstance(value, str):
        return _digest(b"s" + value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return _digest(b"b" + value)
    if isinstance(value, tuple):
        return hash((len(value), *map(stable_hash, value)))
    if isinstance(value, frozenset):
        return hash(tuple(sorted(map(stable_hash, value))))
    if value is None or isinstance(value, datetime.date | datetime.time):
        return _digest(b"r" + repr(value).encode())
    return _digest(b"t" + kind.__qualname__.encode())


def _digest(content: bytes) -> int:
    """Return a signed 64-bit integer computed from two CRC-32 checksums of `content`."""
    low = zlib.crc32(content)
    return ((zlib.crc32(content, low) << 32) | low) - (1 << 63)
