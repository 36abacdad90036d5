"""Live objects as rows of a store, and back.

Every object with an identity is a row of its own: two jobs that share a list still share it after they were stored.

A row is JSON: `{"k": kind, "v": content}`, where objects appear as `{"$": "e", "v": name of their row}`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MappingProxyType
from typing import Any, Final

from statek_sim.errors import DamagedStore
from statek_sim.metering.conversation import MessageMeter, MessageView
from statek_sim.runtime.dialogs.history import HistoryProjection, message_text
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.stored.kinds import KEEPER, STORED_MARK
from statek_sim.sandbox.ordered_set import OrderedFrozenSet, OrderedSet
from statek_sim.store.anchors import Anchors
from statek_sim.store.kinds import (
    BASES,
    ENUMS,
    ITEMS,
    KINDS,
    NAMES,
    OPEN,
    PLACE,
    RECORDS,
    attributes,
    keeper_of,
    made,
)
from statek_sim.store.values import TAG, NoValue, Unstorable, decoded_value, encoded_value, tagged
from statek_sim.values import JSON

Rows = dict[str, str]
"""Rows by name: canonical JSON texts."""

_SETS: Final[Mapping[type, str]] = {set: "set", OrderedSet: "ordered set"}
_FROZEN: Final[Mapping[type, str]] = {
    tuple: "tuple", frozenset: "frozenset", OrderedFrozenSet: "ordered frozenset",
}  # fmt: skip
_FROZEN_SETS: Final = frozenset({"frozenset", "ordered frozenset"})
_FROM_ITEMS: Final[Mapping[str, Any]] = {name: kind for kind, name in _FROZEN.items()}
_RECORDS: Final = frozenset(RECORDS.values())
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType, type)

DEEPEST: Final = 50
"""So many tuples and frozen sets may be in each other, which are written in one row."""

ROOT: Final = "root"
"""The row that everything else is reached from."""


def canonical(value: JSON) -> str:
    """Return JSON as text: ASCII, in the order that it has."""
    return _encode(value)


_encode: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


class Graph:
    """The objects of one run: which row each of them is, for as long as a process has the run open.

    `meter` measures the messages of histories that are read, until their jobs say what does.
    """

    def __init__(self, anchors: Anchors, meter: MessageMeter) -> None:
        self._anchors = anchors
        self._meter = meter
        self._rows: dict[int, str] = {}
        self._objects: dict[str, Any] = {}
        self._count = 0

    # -- what can be stored ------------------------------------------------------------------------------------

    def why_not(self, value: object) -> str | None:
        """Return why a value, or something in it, cannot be stored; None when it can."""
        open_, seen = deque([(value, 0)]), {id(value): 0}
        while open_:
            one, depth = open_.popleft()
            try:
                inner = self._inside(one)
                if depth > DEEPEST:
                    raise Unstorable(f"tuples are more than {DEEPEST} deep in each other")
            except Unstorable as reason:
                return str(reason) if one is value else f"{type(value).__name__}: {reason}"
            # What is a row of its own begins anew.
            below = depth + 1 if type(one) in _FROZEN else 0
            for part in inner:
                if seen.get(id(part), -1) < below:
                    seen[id(part)] = below
                    open_.append((part, below))
        return None

    def _inside(self, value: Any) -> Iterable[Any]:
        """Return what of an application's values is in a value; `Unstorable` for one that cannot be stored."""
        kind: Any = type(value)
        if kind in _FROZEN or kind is list or kind in _SETS:
            return value  # type: ignore[no-any-return]  # iterable
        if kind in (dict, MappingProxyType):
            return (part for pair in value.items() for part in pair)
        if self._anchors.name_of(value) is None and _is_object(kind):
            self._kind_name(kind)
            if kind in OPEN or self._anchors.original(kind) not in NAMES:
                return (part for _, part in attributes(value))
            return ()
        self._told(value)
        return ()

    # -- writing -----------------------------------------------------------------------------------------------

    def rows(self, root: Mapping[str, object]) -> Rows:
        """Return the rows of everything that `root` leads to."""
        pending: deque[Any] = deque()
        found: Rows = {ROOT: canonical({"k": "root", "v": self._fields(root, pending)})}
        while pending:
            value = pending.popleft()
            name = self._rows[id(value)]
            if name not in found:
                found[name] = canonical(self._row(value, pending))
        return found

    def _fields(self, value: Any, pending: deque[Any]) -> JSON:
        """Return mappings and lists in their place, what is in them encoded; an application's values are in tuples."""
        if isinstance(value, Mapping):
            return {str(key): self._fields(one, pending) for key, one in value.items()}
        if type(value) is list:
            return [self._fields(one, pending) for one in value]
        return self._encoded(value, pending)

    def _encoded(self, value: Any, pending: deque[Any]) -> JSON:
        try:
            kind: Any = type(value)
            if kind in _FROZEN:
                return tagged(_FROZEN[kind], self._members(value, pending))
            if kind in _RECORDS:
                return tagged("record", [NAMES[kind], *(self._encoded(one, pending) for one in value)])
            if kind is MappingProxyType:
                return tagged("view", self._encoded(dict(value), pending))
            if kind is MessageView:
                return tagged("messages", [message_text(message) for message in value])
            if self._anchors.name_of(value) is None and (
                kind in (list, dict, HistoryProjection) or kind in _SETS or _is_object(kind)
            ):
                if kind not in (list, dict, HistoryProjection) and kind not in _SETS:
                    self._kind_name(kind)
                pending.append(value)
                return tagged("e", self._name(value))
            return self._told(value)
        except Unstorable as reason:
            # Where no name could be dropped: what holds it finds nothing there.
            return tagged("lost", str(reason))

    def _told(self, value: Any) -> JSON:
        """Return a value that needs no row."""
        try:
            return encoded_value(value)
        except NoValue:
            pass
        name = self._anchors.name_of(value)
        if name is not None:
            return tagged("a", name)
        if isinstance(value, Enum):
            kind = NAMES.get(type(value)) or self._anchors.global_name(type(value))
            return tagged("enum", [kind, value.name])
        if isinstance(value, _FUNCTIONS):
            return tagged("g", self._anchors.global_name(value))
        raise Unstorable(f"{type(value).__name__} cannot be stored")

    def _kind_name(self, kind: type) -> str:
        """Return the name of a class whose objects are stored; `Unstorable` for one that has none."""
        known = NAMES.get(self._anchors.original(kind))
        if known is not None:
            return known
        anchor = self._anchors.name_of(kind)
        return f"a:{anchor}" if anchor is not None else f"g:{self._anchors.global_name(kind)}"

    def _name(self, value: Any) -> str:
        name = self._rows.get(id(value))
        if name is None:
            self._count += 1
            name = f"e{self._count}"
            self._rows[id(value)] = name
            # Kept as long as the run is open: an id belongs to one object only while it lives.
            self._objects[name] = value
        return name

    def _row(self, value: Any, pending: deque[Any]) -> JSON:
        kind: Any = type(value)
        if kind is list:
            return {"k": "list", "v": [self._encoded(one, pending) for one in value]}
        if kind is dict:
            return {"k": "dict", "v": self._pairs(value, pending)}
        if kind in _SETS:
            return {"k": _SETS[kind], "v": self._members(value, pending)}
        if kind is HistoryProjection:
            return {"k": "history", "v": self._fields(value.saved(), pending)}
        fields = {
            name: self._encoded(one, pending) for name, one in attributes(value) if name != "local_state"
        }
        if issubclass(kind, dict):
            fields[ITEMS] = self._pairs(value, pending)
        if issubclass(kind, PyEnv):
            fields["local_state"] = self._names_of(value, pending)
        return {"k": self._kind_name(kind), "v": fields}

    def _members(self, value: Iterable[Any], pending: deque[Any]) -> list[JSON]:
        members = [self._encoded(one, pending) for one in value]
        # Python's own sets have another order in each process; their rows are the same.
        return sorted(members, key=canonical) if type(value) in (set, frozenset) else members

    def _pairs(self, value: Mapping[Any, Any], pending: deque[Any]) -> JSON:
        return [[self._encoded(key, pending), self._encoded(one, pending)] for key, one in value.items()]

    def _names_of(self, env: PyEnv, pending: deque[Any]) -> JSON:
        """Return a job's variables; those that cannot be stored as the reason. In a block: as they were before it."""
        names = env.local_state if env.in_block is None else env.in_block
        variables: list[JSON] = []
        for name, value in names.items():
            reason = self.why_not(value)
            lost = None if reason is None else tagged("lost", reason)
            variables.append([name, self._encoded(value, pending) if lost is None else lost])
        return variables

    def forget(self, names: Iterable[str]) -> None:
        """Let go of objects that nothing leads to any more."""
        for name in names:
            value = self._objects.pop(name, None)
            if value is not None:
                self._rows.pop(id(value), None)

    # -- reading -----------------------------------------------------------------------------------------------

    def read(self, rows: Mapping[str, str]) -> dict[str, Any]:
        """Return what `root` was; `DamagedStore` for rows that do not say."""
        return Reading(self._anchors, self._meter, rows, self._adopt).root()

    def _adopt(self, name: str, value: Any) -> None:
        self._rows[id(value)] = name
        self._objects[name] = value
        self._count = max(self._count, int(name.removeprefix("e")))


@lru_cache(maxsize=1024)
def _is_object(kind: Any) -> bool:
    """Return whether objects of a class are rows."""
    return (
        kind in KINDS.values()
        or hasattr(kind, STORED_MARK)
        or hasattr(kind, KEEPER)
        or issubclass(kind, BASES)
    )


def _references(content: Any) -> Iterator[str]:
    """Yield the names of the rows that the content of a row leads to."""
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
    """Return whether a value in its place is, or has in it, a set that cannot be filled later."""
    if not isinstance(encoded, dict):
        return False
    if encoded[TAG] in _FROZEN_SETS:
        return True
    return encoded[TAG] in ("tuple", "record") and any(map(_hashes, encoded["v"]))


class Reading:
    """One reading of rows: objects are made first and filled after that, so that they may lead to each other.

    What is hashed, as a key or in a set, is filled before that, with all that it leads to.
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
        """Objects that were made and not filled: their kinds, themselves, and their contents."""
        self._whole: set[str] = set()
        """Rows from which nothing empty is reached any more."""

    def root(self) -> dict[str, Any]:
        """Return the mapping that was stored as root, with everything that it leads to."""
        try:
            root: dict[str, Any] = self._plain(self._row(ROOT)["v"])
            while self._open:
                self._fill_one(self._open.popleft())
        except DamagedStore:
            raise
        except Exception as error:  # also what the hash of an application's object raises
            raise DamagedStore(
                f"a row of the store does not say what it holds: {type(error).__name__}: {error}"
            ) from error
        return root

    def _row(self, name: str) -> Any:
        if name not in self._told:
            raise DamagedStore(f"row {name!r} is missing")
        return json.loads(self._told[name])

    def _plain(self, content: Any) -> Any:
        """Return what `Graph._fields` told."""
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
        if not isinstance(found, type) or not _is_object(found):
            raise DamagedStore(f"the store has an object of {name!r}, which is no class of stored objects")
        return made(found)

    def _key(self, encoded: Any) -> Any:
        """Return a value that can be hashed."""
        value = self._decoded(encoded)
        if isinstance(encoded, dict):
            self._fill_all([*_references([encoded])])
        return value

    def _fill_all(self, names: list[str]) -> None:
        """Fill everything that is reached from some rows, but what is in the middle of being filled."""
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
            # First of all: its hash may need it.
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
        # What is in these may need the attributes above for its hash.
        for name in late:
            object.__setattr__(value, name, self._decoded(content[name]))

    def _fill_pairs(self, value: dict[Any, Any], pairs: Any) -> None:
        value.update((self._key(key), self._decoded(one)) for key, one in pairs)

    def _variables(self, pairs: Any) -> dict[str, Any]:
        return {
            name: self._decoded(one)
            for name, one in pairs
            if not (isinstance(one, dict) and one.get(TAG) == "lost")
        }


class _View:
    """A read-only mapping of a dict that is filled later."""

    def __init__(self, shown: dict[Any, Any]) -> None:
        self.proxy = MappingProxyType(shown)


def lost_names(row: str) -> list[tuple[str, str]]:
    """Return the variables that a row of a job's workspace does not keep, with the reasons."""
    entry = json.loads(row)
    if entry["k"] != PyEnv.__qualname__:
        return []
    return [
        (name, one["v"])
        for name, one in entry["v"]["local_state"]
        if isinstance(one, dict) and one.get(TAG) == "lost"
    ]
