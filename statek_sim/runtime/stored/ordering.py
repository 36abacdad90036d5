"""In which order dbzero gives keys and members: by an unsigned 64-bit hash of the key (dbzero 0.7.0, `dbzero.hash`).

Text and bytes hash by MurmurHash64A with seed 0, numbers as in Python, dates and times by their packed fields, tuples
by the exclusive or of their members, values of its enumerations by their name's text, its objects by their place in
the store, which grows as they are made. `None` hashes by its address, which no program can know: it is put where an
address nearly always falls, after small integers and before text. What has no place is put where objects are. Of
equal hashes those of numbers and dates come first, then those of bytes, then the others; where that is equal, too,
they come in the order of insertion. No address and no seeded hash of Python's is ever asked.

`vars` of a stored object: dbzero collects members in a hash table of C++: None and truth values first, then the others,
each in the order in which the class first had a value of that kind under a name. The table's order is that of
libstdc++'s `std::unordered_map`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final

from statek_sim.sandbox.ordered_set import store_place

# Keys are whatever model-written code uses as keys.
Key = Any

_MASK: Final = 2**64 - 1
_FACTOR: Final = 0xC6A4A7935BD1E995
_ADDRESS_OF_NONE: Final = 0x7F0_0000_0000
OBJECTS: Final = 1 << 40
"""Where the places of dbzero's objects begin."""


def murmur64a(content: bytes, seed: int = 0) -> int:
    """Return MurmurHash64A of `content`."""
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
    """Return dbzero's hash of a text."""
    return murmur64a(text.encode("utf-8", "surrogatepass"))


def key_hash(key: Key) -> int:
    """Return dbzero's hash of a key as the unsigned number that orders it."""
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
    """Return what orders a key: its hash, then whether the store has it in its entry or somewhere else."""
    return key_hash(key), 0 if isinstance(key, _IN_THE_ENTRY) else 1 if isinstance(key, bytes) else 2


_IN_THE_ENTRY: Final = (int, float, date, time)


def in_store_order(keys: Iterable[Key]) -> list[Key]:
    """Return keys in the order in which dbzero's mappings and sets yield them."""
    return sorted(keys, key=_place)


def while_it_changes(items: Mapping[Key, object], *, as_view: bool = False) -> Iterator[Key]:
    """Return keys in the store's order while whoever reads them puts more in and takes some out.

    The key that comes next is known when one is yielded, the first one at once. So nothing is met that was put in
    behind the last one, and there is an end when that next one was taken out. A view (`keys()`, `values()`, `items()`)
    loses its place when anything is: dbzero then raises, ends, leaves entries out or yields one twice, as the memory
    lies. It always raises here: RuntimeError.
    """
    keys = _Keys(items)
    return _yielded(items, keys, keys.following(), as_view=as_view)


def _yielded(items: Mapping[Key, object], keys: _Keys, upcoming: Key, *, as_view: bool) -> Iterator[Key]:
    while upcoming is not _NO_MORE and upcoming in items:
        current, upcoming = upcoming, keys.following()
        yield current
        if as_view and upcoming is not _NO_MORE and not (current in items and upcoming in items):
            raise RuntimeError("attempt to dereference end iterator")


_NO_MORE: Final = object()


class _Keys:
    """The keys of a mapping in the store's order, one after the other, those among them that come while it is read."""

    def __init__(self, items: Mapping[Key, object]) -> None:
        self._items = items
        self._keys = in_store_order(items)
        self._places: list[tuple[int, int]] = []
        self._at = 0
        self._met = self._newest()

    def _newest(self) -> tuple[int, Key]:
        """Return what differs when a key has come."""
        return len(self._items), next(reversed(self._items), None)

    def following(self) -> Key:
        """Return the next key, `_NO_MORE` after the last."""
        (met, newest), (now, new) = self._met, self._newest()
        if met != now or newest is not new:
            self._take_in()
        while self._at < len(self._keys):
            self._at += 1
            if self._keys[self._at - 1] in self._items:
                return self._keys[self._at - 1]
        return _NO_MORE

    def _take_in(self) -> None:
        self._places = self._places or [_place(key) for key in self._keys]
        known = set(self._keys)
        new = takewhile(lambda key: key not in known, reversed(self._items))
        for key in reversed(list(new)):
            place = bisect_right(self._places, _place(key))
            self._places.insert(place, _place(key))
            self._keys.insert(place, key)
            self._at += place < self._at
        self._met = self._newest()


_SEED: Final = 0xC70F6907
_SIZES: Final = (13, 29, 59, 127, 257, 541, 1109, 2357, 5087)
"""How many buckets such a table has, one size after the other: each is used up to as many members."""


SOMETHING: Final = object()
"""Stands for a member that is an object, of which nothing is shown."""

Shows = Callable[[str], bool]
"""Whether a member of that name is wanted."""


class Members:
    """The names that objects of one class have had, in the order in which the first of them came."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self._packed: dict[str, None] = {}
        self._whole: dict[str, None] = {}

    def note(self, name: str, value: object) -> None:
        """Note that an object was given a member: the class has it from now on."""
        self.names[name] = None
        (self._packed if _is_packed(value) else self._whole)[name] = None

    def saved(self) -> tuple[tuple[str, ...], ...]:
        """Return the names for another process."""
        return tuple(self.names), tuple(self._packed), tuple(self._whole)

    def resume(self, names: Iterable[str], packed: Iterable[str], whole: Iterable[str]) -> None:
        """Be what another process `saved`."""
        self.names, self._packed, self._whole = map(dict.fromkeys, (names, packed, whole))

    def in_shown_order(self) -> list[str]:
        """Return the names as agents see them where an object is shown: dbzero fills one table from another."""
        return list(_through(_through(tuple(self.names))))

    def in_vars_order(self, members: Mapping[str, object]) -> dict[str, object]:
        """Return the members of an object as `vars` gives them; what is not stored is left out."""
        table = _Table()
        for names, packed in ((self._packed, True), (self._whole, False)):
            for name in names:
                if name in members and _is_packed(members[name]) is packed:
                    table.add(name)
        return {name: members[name] for name in table.names}


def shown_members(members: Mapping[str, object], shows: Shows) -> dict[str, object]:
    """Return the members that are wanted as agents are shown them; `members` are in the order of their class."""
    return {name: members[name] for name in _through(_through(tuple(members))) if shows(name)}


@lru_cache(maxsize=256)
def _through(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names in the order in which a table gives them that was filled with them."""
    table = _Table()
    for name in names:
        table.add(name)
    return tuple(table.names)


def _is_packed(value: object) -> bool:
    return value is None or isinstance(value, bool)


class _Table:
    """Names as a table without order has them: a new one is first, or first of its bucket."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._sizes = iter(_SIZES)
        self._size = next(self._sizes)

    def add(self, name: str) -> None:
        if len(self.names) == self._size:
            self._size = next(self._sizes)
            before, self.names = self.names, []
            for one in before:
                self._put(one)
        self._put(name)

    def _put(self, name: str) -> None:
        bucket = self._bucket(name)
        places = (place for place, other in enumerate(self.names) if self._bucket(other) == bucket)
        self.names.insert(next(places, 0), name)

    def _bucket(self, name: str) -> int:
        return murmur64a(name.encode(), _SEED) % self._size
