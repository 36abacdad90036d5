"""Converts live objects to rows in a store, and rows to live objects.

Every object with an identity has its own row, so two jobs that share a list still share it after resuming.

A row is JSON: `{"k": kind, "v": content}`, where objects appear as `{"$": "e", "v": row name}`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from statek_sim.durability.kinds import ENUMS, ITEMS, KINDS, PLACE, RECORDS, Anchors, keeper_of, made
from statek_sim.durability.writing import FROZEN, ROOT, Lost, Rows, Storable, Writing, is_object
from statek_sim.errors import Damaged
from statek_sim.runtime.agents.history import HistoryProjection
from statek_sim.sandbox.ordered_set import OrderedSet
from statek_sim.store.codec import TAG, decoded_value
from statek_sim.usage.conversation import MessageMeter, MessageView

_FROZEN_SETS: Final = frozenset({"frozenset", "ordered frozenset"})
_FROM_ITEMS: Final[Mapping[str, Any]] = {name: kind for kind, name in FROZEN.items()}


class Graph:
    """A run's objects and the names of their rows, kept while a process has the run open.

    `meter` measures the messages in restored histories until each job sets its own meter.
    """

    def __init__(self, anchors: Anchors, meter: MessageMeter) -> None:
        self._anchors = anchors
        self._meter = meter
        self._rows: dict[int, str] = {}
        self._objects: dict[str, Any] = {}
        self._count = 0
        self._storable = Storable(anchors)
        self._writing = Writing(self._storable, self._name)

    # -- writing -----------------------------------------------------------------------------------------------

    def why_not(self, value: object) -> str | None:
        """Return why a value or part of it cannot be stored, or None if it can."""
        return self._storable.why_not(value)

    def rows(self, root: Mapping[str, object]) -> Rows:
        """Return the rows of all objects reachable from `root`."""
        return self._writing.rows(root)

    def _name(self, value: Any) -> str:
        name = self._rows.get(id(value))
        if name is None:
            self._count += 1
            name = f"e{self._count}"
            self._rows[id(value)] = name
            # The object is kept alive while the run is open, because ids are unique only among live objects.
            self._objects[name] = value
        return name

    def forget(self, names: Iterable[str]) -> None:
        """Release the objects for these rows, which are no longer reachable."""
        for name in names:
            value = self._objects.pop(name, None)
            if value is not None:
                self._rows.pop(id(value), None)
            self._writing.forget(name)

    # -- reading -----------------------------------------------------------------------------------------------

    def read(self, rows: Mapping[str, str]) -> dict[str, Any]:
        """Return the mapping passed to `rows`; raises `Damaged` for invalid rows."""
        return Reading(self._anchors, self._meter, rows, self._adopt).root()

    def _adopt(self, name: str, value: Any) -> None:
        self._rows[id(value)] = name
        self._objects[name] = value
        self._count = max(self._count, int(name.removeprefix("e")))


def _references(content: Any) -> Iterator[str]:
    """Yield the names of the rows referenced in a row's content."""
    open_ = [*content.values()] if isinstance(content, dict) else [content]
    while open_:
        one = open_.pop()
        if isinstance(one, dict) and one.get(TAG) == "e":
            yield one["v"]
        elif isinstance(one, dict):
            open_ += one.values()
        elif isinstance(one, list):
            open_ += one


def _hashes(encoded: Any) -> bool:
    """Return whether a value stored inline contains a frozen set, whose elements must exist when it is created."""
    if not isinstance(encoded, dict):
        return False
    if encoded[TAG] in _FROZEN_SETS:
        return True
    return encoded[TAG] in ("tuple", "record") and any(map(_hashes, encoded["v"]))


class Reading:
    """Reads rows once. Objects are created first and filled afterwards, because they may refer to each other.

    Dict keys and set elements, and everything reachable from them, are filled before they are hashed.
    """

    def __init__(
        self,
        anchors: Anchors,
        meter: MessageMeter,
        rows: Mapping[str, str],
        adopt: Callable[[str, Any], None],
    ) -> None:
        self._anchors = anchors
        self._meter = meter
        self._told = rows
        self._adopt = adopt
        self._made: dict[str, Any] = {}
        self._open: deque[str] = deque()
        self._empty: dict[str, tuple[str, Any, Any]] = {}
        """Objects not yet filled, keyed by row: kind, object and stored contents."""
        self._whole: set[str] = set()
        """Rows from which no unfilled object is reachable."""

    def root(self) -> dict[str, Any]:
        """Return the root mapping, including everything reachable from it."""
        try:
            root: dict[str, Any] = self._plain(self._row(ROOT)["v"])
            while self._open:
                self._fill_one(self._open.popleft())
        except Damaged:
            raise
        except Exception as error:  # including errors from the hash of an application's object
            raise Damaged(f"a row in the store cannot be read: {type(error).__name__}: {error}") from error
        return root

    def _row(self, name: str) -> Any:
        if name not in self._told:
            raise Damaged(f"row {name!r} is missing")
        return json.loads(self._told[name])

    def _plain(self, content: Any) -> Any:
        """Return a value that `Writing._fields` wrote inline."""
        if isinstance(content, list):
            return [self._plain(one) for one in content]
        if isinstance(content, dict) and TAG not in content:
            return {key: self._plain(one) for key, one in content.items()}
        return self._decoded(content)

    def _decoded(self, encoded: Any) -> Any:
        if not isinstance(encoded, dict):
            return encoded
        kind, content = encoded[TAG], encoded["v"]
        match kind:
            case "e":
                return self._object(content)
            case "a":
                return self._anchors.named(content)
            case "g":
                return self._anchors.global_of(content)
            case "lost":
                return None
            case "enum":
                return (ENUMS.get(content[0]) or self._anchors.global_of(content[0]))[content[1]]
            case "record":
                return RECORDS[content[0]](*map(self._decoded, content[1:]))
            case "view":
                return _View(self._decoded(content)).proxy
            case "messages":
                messages = [json.loads(message) for message in content]
                return MessageView(messages, len(messages))
            case "tuple":
                return tuple(map(self._decoded, content))
            case "frozenset" | "ordered frozenset":
                return _FROM_ITEMS[kind](map(self._key, content))
            case _:
                return decoded_value(kind, content)

    def _object(self, name: str) -> Any:
        value = self._made.get(name)
        if value is None:
            row = self._row(name)
            value = self._made[name] = self._shell(row["k"])
            self._adopt(name, value)
            self._empty[name] = row["k"], value, row["v"]
            self._open.append(name)
        return value

    def _shell(self, kind: str) -> Any:
        match kind:
            case "list":
                return []
            case "dict":
                return {}
            case "set":
                return set()
            case "ordered set":
                return OrderedSet()
            case "history":
                return object.__new__(HistoryProjection)
            case _ if kind in KINDS:
                return made(self._anchors.in_place_of(KINDS[kind]))
        how, _, name = kind.partition(":")
        found = self._anchors.named(name) if how == "a" else self._anchors.global_of(name)
        if not isinstance(found, type) or not is_object(found):
            raise Damaged(f"the store contains an object of class {name!r}, whose objects cannot be stored")
        return made(found)

    def _key(self, encoded: Any) -> Any:
        """Decode a hashable value."""
        value = self._decoded(encoded)
        if isinstance(encoded, dict):
            self._fill_all([*_references([encoded])])
        return value

    def _fill_all(self, names: list[str]) -> None:
        """Fill all objects reachable from these rows, except those already being filled."""
        seen: set[str] = set()
        while names:
            name = names.pop()
            if name in seen or name in self._whole:
                continue
            seen.add(name)
            self._object(name)
            self._fill_one(name)
            names += _references(self._row(name)["v"])
        self._whole |= seen

    def _fill_one(self, name: str) -> None:
        empty = self._empty.pop(name, None)
        if empty is not None:
            self._fill(*empty)

    def _fill(self, kind: str, value: Any, content: Any) -> None:
        match kind:
            case "list":
                value.extend(map(self._decoded, content))
            case "dict":
                self._fill_pairs(value, content)
            case "set" | "ordered set":
                value.update(map(self._key, content))
            case "history":
                value.resume(self._plain(content), self._meter)
            case _:
                self._fill_attributes(value, content)

    def _fill_attributes(self, value: Any, content: Mapping[str, Any]) -> None:
        keeper, place = keeper_of(type(value)), content.get(PLACE)
        if keeper is not None and place is not None:
            # Before the attributes, because the object's hash may depend on its location.
            keeper.adopt(value, place)
        if ITEMS in content:
            self._fill_pairs(value, content[ITEMS])
        content = {name: one for name, one in content.items() if name not in (PLACE, ITEMS)}
        late = [name for name, one in content.items() if name != "local_state" and _hashes(one)]
        for name, one in content.items():
            if name == "local_state":
                object.__setattr__(value, name, self._variables(one))
            else:
                object.__setattr__(value, name, None if name in late else self._decoded(one))
        # The hashes of the elements may depend on the attributes above.
        for name in late:
            object.__setattr__(value, name, self._decoded(content[name]))

    def _fill_pairs(self, value: dict[Any, Any], pairs: Any) -> None:
        value.update((self._key(key), self._decoded(one)) for key, one in pairs)

    def _variables(self, pairs: Any) -> dict[str, Any]:
        return {
            name: Lost(one["v"]) if isinstance(one, dict) and one.get(TAG) == "lost" else self._decoded(one)
            for name, one in pairs
        }


class _View:
    """A read-only view of a dict that is filled later."""

    def __init__(self, shown: dict[Any, Any]) -> None:
        self.proxy = MappingProxyType(shown)
