"""dbzero's key and member order: by an unsigned 64-bit hash of the key (dbzero 0.7.0, `dbzero.hash`).

- Strings and bytes are hashed with MurmurHash64A and seed 0, numbers as in Python.
- Dates and times are hashed by their packed fields, tuples by the XOR of their items' hashes.
- dbzero enum values are hashed by name.
- Stored objects are hashed by their location in the store, which increases in creation order. Objects without a
  location are sorted at the position of the first stored object.
- dbzero hashes `None` by its address, which is unpredictable. Here, `None` is sorted where its address almost
always puts it: after small integers and before strings.
- Among keys with equal hashes, numbers and dates come first, then bytes, then all others; equal keys within a group
  are in insertion order.

Neither addresses nor Python's seeded hashes are used. To display an object, dbzero collects the object's
members in a C++ hash table, so they appear in the order of libstdc++'s `std::unordered_map`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from statek_sim.sandbox.ordered_set import store_place

# Keys may be any values that model-written code uses as keys.
Key = Any

_MASK: Final = 2**64 - 1
_FACTOR: Final = 0xC6A4A7935BD1E995
_ADDRESS_OF_NONE: Final = 0x7F0_0000_0000
OBJECTS: Final = 1 << 40
"""The first stored object's location."""


def murmur64a(content: bytes, seed: int = 0) -> int:
    """Return the MurmurHash64A of `content`, an unsigned 64-bit integer."""
    found = seed ^ ((len(content) * _FACTOR) & _MASK)
    whole = len(content) & ~7
    for start in range(0, whole, 8):
        part = (int.from_bytes(content[start : start + 8], "little") * _FACTOR) & _MASK
        part ^= part >> 47
        found = ((found ^ ((part * _FACTOR) & _MASK)) * _FACTOR) & _MASK
    if whole != len(content):
        found = ((found ^ int.from_bytes(content[whole:], "little")) * _FACTOR) & _MASK
    found ^= found >> 47
    found = (found * _FACTOR) & _MASK
    return found ^ (found >> 47)


@lru_cache(maxsize=4096)
def text_hash(text: str) -> int:
    """Return dbzero's hash of a string."""
    return murmur64a(text.encode("utf-8", "surrogatepass"))


def key_hash(key: Key) -> int:
    """Return dbzero's hash of a key, an unsigned 64-bit integer that determines the key's position."""
    if isinstance(key, str):
        return text_hash(key)
    if isinstance(key, int):
        return key & _MASK
    if key is None:
        return _ADDRESS_OF_NONE
    if isinstance(key, bytes):
        return murmur64a(key)
    if isinstance(key, datetime):
        return (_of_date(key) << 37) | _of_time(key.time())
    if isinstance(key, date):
        return _of_date(key)
    if isinstance(key, time):
        return _of_time(key)
    place = store_place(key)
    if place is not None:
        return place
    if isinstance(key, tuple | frozenset):
        found = 0
        for member in key:
            found ^= key_hash(member)
        return found
    # Python's hash of a NaN is its address.
    is_number = isinstance(key, float | Decimal) and key == key  # noqa: PLR0124
    return hash(key) & _MASK if is_number else OBJECTS


def _of_date(day: date) -> int:
    return day.year << 9 | day.month << 5 | day.day


def _of_time(moment: time) -> int:
    return moment.hour << 32 | moment.minute << 26 | moment.second << 20 | moment.microsecond


def _place(key: Key) -> tuple[int, int]:
    """Return a dbzero key's sort key: its hash, then its group among keys with equal hashes."""
    return key_hash(key), 0 if isinstance(key, _IN_THE_ENTRY) else 1 if isinstance(key, bytes) else 2


_IN_THE_ENTRY: Final = (int, float, date, time)


def in_store_order(keys: Iterable[Key]) -> list[Key]:
    """Return keys in the order in which dbzero's dicts and sets yield them."""
    return sorted(keys, key=_place)


def unchanged(items: Mapping[Key, object], changed: Callable[[], BaseException]) -> Iterator[Key]:
    """Return an iterator over the keys of `items` in store order.

    If a key is added or removed during the iteration, the next step raises `changed()`.
    """
    keys, newest = in_store_order(items), next(reversed(items), None)

    def checked(key: Key) -> Key:
        if len(items) != len(keys) or key not in items or next(reversed(items)) is not newest:
            raise changed()
        return key

    return map(checked, keys)


_SEED: Final = 0xC70F6907
_SIZES: Final = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087)
"""The bucket counts of a `std::unordered_map` as it grows; a table has at most one item per bucket."""


SOMETHING: Final = object()
"""Placeholder for the value of a member that is displayed as `<Object>`."""

Shows = Callable[[str], bool]
"""A function that returns whether the member with this name is requested."""


class Members:
    """The names of all members that a class's objects have ever had, in the order of their first assignment."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._by_kind: tuple[dict[str, None], dict[str, None]] = ({}, {})
        """The names that have ever held None or a boolean, and the names that have ever held any other value."""

    def note(self, name: str, value: object) -> None:
        """Record that an object of the class was given the member `name`."""
        self.names[name] = None
        self._by_kind[not _is_packed(value)][name] = None

    def saved(self) -> tuple[tuple[str, ...], ...]:
        """Return the recorded names, as arguments for `resume` in another process."""
        return tuple(map(tuple, (self.names, *self._by_kind)))

    def resume(self, names: Iterable[str], packed: Iterable[str], others: Iterable[str]) -> None:
        """Restore the names saved by another process."""
        self.names, self._by_kind = dict.fromkeys(names), (dict.fromkeys(packed), dict.fromkeys(others))

    def in_vars_order(self, members: Mapping[str, object]) -> dict[str, object]:
        """Return an object's members in the order of dbzero's `vars`, without members that are not recorded."""
        packed, others = self._by_kind
        found = [name for name in packed if name in members and _is_packed(members[name])]
        found += [name for name in others if name in members and not _is_packed(members[name])]
        return {name: members[name] for name in _filled(tuple(found))}

    def in_shown_order(self) -> list[str]:
        """Return the names in the order in which agents see them when an object is displayed."""
        return list(_in_table(tuple(self.names)))


def shown_members(members: Mapping[str, object], shows: Shows) -> dict[str, object]:
    """Return the requested members in display order; `members` must be in the order of their first assignment."""
    return {name: members[name] for name in _in_table(tuple(members)) if shows(name)}


def _is_packed(value: object) -> bool:
    return value is None or isinstance(value, bool)


@lru_cache(maxsize=256)
def _in_table(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names in display order: dbzero fills one hash table, and a second one from the first."""
    return _filled(_filled(names))


def _filled(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names in the order in which a `std::unordered_map` iterates after inserting them in order."""
    found: list[str] = []
    sizes = iter(_SIZES)
    size = next(sizes)
    for name in names:
        if len(found) == size:
            size, before, found = next(sizes), found, []
            for one in before:
                _put(found, one, size)
        _put(found, name, size)
    return tuple(found)


def _put(table: list[str], name: str, size: int) -> None:
    bucket = murmur64a(name.encode(), _SEED) % size
    places = (i for i, other in enumerate(table) if murmur64a(other.encode(), _SEED) % size == bucket)
    table.insert(next(places, 0), name)
