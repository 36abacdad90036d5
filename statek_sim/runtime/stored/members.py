"""In which order `vars` gives the members of a stored object (dbzero 0.7.0, by running it).

dbzero collects them in a hash table of C++: None and truth values first, then the others, each in the order in which
the class first had a value of that kind under a name. The table's order is that of libstdc++'s `std::unordered_map`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from statek_sim.runtime.stored.hashing import murmur64a

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
