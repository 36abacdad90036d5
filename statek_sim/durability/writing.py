"""Writes live objects as rows; rows unchanged since the last commit are not rewritten.

An object is unchanged if its parts are the same objects in the same order, because an object's row contains
only immutable values and references to the rows of the parts. A commit inspects every object but encodes only
the changed ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from itertools import chain
from operator import is_
from types import BuiltinFunctionType, FunctionType, MappingProxyType
from typing import Any, Final

from statek_sim.durability.kinds import (
    BASES,
    ITEMS,
    KINDS,
    NAMES,
    OPEN,
    RECORDS,
    Anchors,
    attributes,
    slots_of,
)
from statek_sim.runtime.agents.history import HistoryProjection, message_text
from statek_sim.runtime.state.pyenv import PyEnv
from statek_sim.runtime.stored.storable_types import KEEPER, STORED_MARK
from statek_sim.sandbox.ordered_set import OrderedFrozenSet, OrderedSet
from statek_sim.store.codec import NoValue, Unstorable, canonical, encoded_value, tagged
from statek_sim.usage.conversation import MessageView
from statek_sim.values import JSON

Rows = dict[str, str]
"""Maps row names to rows; each row is canonical JSON text."""

SETS: Final[Mapping[type, str]] = {set: "set", OrderedSet: "ordered set"}
FROZEN: Final[Mapping[type, str]] = {
    tuple: "tuple", frozenset: "frozenset", OrderedFrozenSet: "ordered frozenset",
}  # fmt: skip
_RECORDS: Final = frozenset(RECORDS.values())
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType, type)

DEEPEST: Final = 50
"""Maximum nesting depth of tuples and frozen sets, which are written in one row."""

ROOT: Final = "root"
"""The row from which all others are reachable."""


@dataclass(frozen=True, slots=True)
class Lost:
    """In a resumed run, replaces a value that could not be stored, until the worker drops the variable."""

    reason: str


@dataclass(slots=True)
class _Known:
    """Records the last write of an object: its parts, the parts with their own rows (`leads`), and its row.

    `names` are the object's attribute names. `storable` are the workspace variables that could be stored.
    """

    parts: Sequence[object] = ()
    leads: list[Any] = field(default_factory=list)
    row: str = ""
    names: Sequence[str] = ()
    storable: Mapping[str, object] | None = None


def _same(parts: Sequence[object], others: Sequence[object]) -> bool:
    """Return whether two sequences contain the same objects."""
    return len(parts) == len(others) and all(map(is_, parts, others))


def _read(slots: Callable[[Any], tuple[Any, ...]], value: Any) -> tuple[Any, ...]:
    """Return an object's attributes, or none if any attribute is missing."""
    try:
        return slots(value)
    except AttributeError:
        return ()


class Storable:
    """Decides which values can be stored, and encodes values that need no row of their own."""

    def __init__(self, anchors: Anchors) -> None:
        self.anchors = anchors

    def why_not(self, value: object) -> str | None:
        """Return why a value or part of it cannot be stored, or None if it can."""
        open_, seen = deque([(value, 0)]), {id(value): 0}
        while open_:
            one, depth = open_.popleft()
            try:
                inner = self._inside(one)
                if depth > DEEPEST:
                    raise Unstorable(f"tuples are nested more than {DEEPEST} levels deep")
            except Unstorable as reason:
                return str(reason) if one is value else f"{type(value).__name__}: {reason}"
            # In a part with its own row, the depth starts at 0.
            below = depth + 1 if type(one) in FROZEN else 0
            for part in inner:
                if seen.get(id(part), -1) < below:
                    seen[id(part)] = below
                    open_.append((part, below))
        return None

    def _inside(self, value: Any) -> Iterable[Any]:
        """Return the application's values inside a value; raises `Unstorable` if the value cannot be stored."""
        kind: Any = type(value)
        if kind is Lost:
            raise Unstorable(value.reason)
        if kind in FROZEN or kind is list or kind in SETS:
            return value  # type: ignore[no-any-return]  # iterable
        if kind in (dict, MappingProxyType):
            return (part for pair in value.items() for part in pair)
        if self.anchors.name_of(value) is None and is_object(kind):
            self.kind_name(kind)
            if kind in OPEN or self.anchors.original(kind) not in NAMES:
                return (part for _, part in attributes(value))
            return ()
        self.in_place(value)
        return ()

    def in_place(self, value: Any) -> JSON:
        """Return a value without its own row as JSON; raises `Unstorable` if the value cannot be stored."""
        try:
            return encoded_value(value)
        except NoValue:
            pass
        name = self.anchors.name_of(value)
        if name is not None:
            return tagged("a", name)
        if isinstance(value, Enum):
            kind = NAMES.get(type(value)) or self.anchors.global_name(type(value))
            return tagged("enum", [kind, value.name])
        if isinstance(value, _FUNCTIONS):
            return tagged("g", self.anchors.global_name(value))
        raise Unstorable(f"{type(value).__name__} cannot be stored")

    def kind_name(self, kind: type) -> str:
        """Return a class's name in the store; raises `Unstorable` if its objects cannot be stored."""
        known = NAMES.get(self.anchors.original(kind))
        if known is not None:
            return known
        anchor = self.anchors.name_of(kind)
        return f"a:{anchor}" if anchor is not None else f"g:{self.anchors.global_name(kind)}"


class Writing:
    """Writes everything reachable from a root, once per commit.

    `name_of` returns the name of an object's row; a new object is given a name.
    """

    def __init__(self, storable: Storable, name_of: Callable[[Any], str]) -> None:
        self._storable = storable
        self._name_of = name_of
        self._known: dict[str, _Known] = {}
        self._leads: list[Any] = []
        self._depth, self._thorough = 0, False
        self._fluid = False
        """Whether the current row must be written on every commit because it contains a value that may change
        unnoticed.
        """
        self._doubtful = False
        """Whether an unstorable value was found inside an object; no variable may refer to such an object."""

    def rows(self, root: Mapping[str, object]) -> Rows:
        """Return the rows of all objects reachable from `root`."""
        self._doubtful = self._thorough = False
        found = self._walked(root)
        if self._doubtful:
            self._thorough = True  # a variable that could be stored before may now refer to the object
            found = self._walked(root)
            self._known = {name: known for name, known in self._known.items() if name in found}
        return found

    def forget(self, name: str) -> None:
        """Discard the record of what was written for an object."""
        self._known.pop(name, None)

    def _walked(self, root: Mapping[str, object]) -> Rows:
        self._leads = []
        found: Rows = {ROOT: canonical({"k": "root", "v": self._fields(root)})}
        pending = deque(self._leads)
        while pending:
            value = pending.popleft()
            name = self._name_of(value)
            if name not in found:
                known = self._written(name, value)
                found[name] = known.row
                pending.extend(known.leads)
        return found

    def _written(self, name: str, value: Any) -> _Known:
        before = self._known.pop(name, None) or _Known()
        self._fluid = False
        kind: Any = type(value)
        if kind is list or kind is OrderedSet:
            known = self._collection(SETS.get(kind, "list"), [*value], before, 1)
        elif kind is dict:
            known = self._collection("dict", [*chain.from_iterable(value.items())], before, 2)
        elif kind is HistoryProjection:
            known = self._history(value, before)
        elif kind is not set and issubclass(kind, PyEnv):
            known = self._workspace(value, before)
        else:
            known = self._object(value, before)
        if not self._fluid:
            self._known[name] = known
        return known

    # -- rows --------------------------------------------------------------------------------------------------

    def _collection(self, kind: str, parts: list[Any], before: _Known, width: int) -> _Known:
        """Write a list, an ordered set (`width` 1) or a dict (`width` 2: `parts` alternates keys and values)."""
        if before.row and _same(parts, before.parts):
            return before
        self._leads = []
        texts = [*map(self.encoded, parts)]
        members: list[JSON] = (
            texts if width == 1 else [[*pair] for pair in zip(texts[::2], texts[1::2], strict=True)]
        )
        return _Known(parts, self._leads, canonical({"k": kind, "v": members}))

    def _history(self, value: HistoryProjection, before: _Known) -> _Known:
        """Write a history. Messages never change, but those at the end may be removed and replaced."""
        messages, rest = value.in_pieces()
        self._leads = []
        fields = {key: self._fields(one) for key, one in rest.items()}
        known = _Known([*messages], self._leads, names=(canonical(fields),))
        if before.names == known.names and _same(known.parts, before.parts):
            return before
        known.row = canonical({"k": "history", "v": {"messages": [*map(message_text, messages)], **fields}})
        return known

    def _object(self, value: Any, before: _Known) -> _Known:
        """Write a set, or an object with its attributes."""
        kind: Any = type(value)
        slots = slots_of(kind)
        if slots is not None and before.names is slots[0] and _same(_read(slots[1], value), before.parts):
            return before
        if kind is set:
            names, parts = tuple[str, ...](), [*value]
        else:
            fields = [*attributes(value)]
            names, parts = tuple(name for name, _ in fields), [part for _, part in fields]
            if issubclass(kind, dict):
                parts += chain.from_iterable(value.items())
        if before.row and names == before.names and _same(parts, before.parts):
            return before
        self._leads = []
        if kind is set:
            row: dict[str, JSON] = {"k": SETS[kind], "v": self._members(value)}
        else:
            content: dict[str, JSON] = {name: self.encoded(one) for name, one in fields}
            if issubclass(kind, dict):
                content[ITEMS] = [[self.encoded(key), self.encoded(one)] for key, one in value.items()]
            row = {"k": self._storable.kind_name(kind), "v": content}
        # With the identical tuple, the next comparison is fast.
        names = slots[0] if slots is not None and names == slots[0] else names
        return _Known(parts, self._leads, canonical(row), names)

    def _workspace(self, env: PyEnv, before: _Known) -> _Known:
        """Write a job's workspace, with the reason for each variable that cannot be stored.

        While a block runs, the variables have the values from before the block. A variable with the same
        value as in the previous commit is not checked again, except in a thorough pass.
        """
        fields = [(name, part) for name, part in attributes(env) if name != "local_state"]
        variables = env.local_state
        names = tuple(name for name, _ in fields)
        parts = [*(part for _, part in fields), *chain.from_iterable(variables.items())]
        storable = {} if before.storable is None or self._thorough else before.storable
        whole = len(storable) == len(variables) and not self._thorough
        if before.row and whole and names == before.names and _same(parts, before.parts):
            return before
        self._leads = []
        content: dict[str, JSON] = {name: self.encoded(one) for name, one in fields}
        written: list[JSON] = []
        found: dict[str, object] = {}
        for name, value in variables.items():
            known = name in storable and storable[name] is value
            reason = None if known else self._storable.why_not(value)
            if reason is None:
                found[name] = value
            written.append([name, self.encoded(value) if reason is None else tagged("lost", reason)])
        content["local_state"] = written
        row = canonical({"k": self._storable.kind_name(type(env)), "v": content})
        # Dropped values are not kept alive here.
        return _Known(parts if len(found) == len(variables) else [], self._leads, row, names, found)

    # -- values ------------------------------------------------------------------------------------------------

    def _fields(self, value: Any) -> JSON:
        """Return the runtime's own mappings and lists as inline JSON; an application's lists are inside tuples."""
        if isinstance(value, Mapping):
            return {str(key): self._fields(one) for key, one in value.items()}
        if type(value) is list:
            return [self._fields(one) for one in value]
        return self.encoded(value)

    def encoded(self, value: Any) -> JSON:
        """Return a value as JSON, or a reference to the row for an object with its own row."""
        storable = self._storable
        try:
            kind: Any = type(value)
            if kind in FROZEN:
                return tagged(FROZEN[kind], self._members(value))
            if kind in _RECORDS:
                return tagged("record", [NAMES[kind], *map(self.encoded, value)])
            if kind is MappingProxyType:
                self._fluid = True
                return tagged("view", self.encoded(dict(value)))
            if kind is MessageView:
                return tagged("messages", [message_text(message) for message in value])
            if storable.anchors.name_of(value) is None and (
                kind in (list, dict, HistoryProjection) or kind in SETS or is_object(kind)
            ):
                if kind not in (list, dict, HistoryProjection) and kind not in SETS:
                    storable.kind_name(kind)
                self._leads.append(value)
                return tagged("e", self._name_of(value))
            return storable.in_place(value)
        except Unstorable as reason:
            # There is no variable to drop here, so the part is dropped from its container.
            self._doubtful = self._fluid = True
            return tagged("lost", str(reason))

    def _members(self, value: Iterable[Any]) -> list[JSON]:
        self._depth += 1
        self._doubtful |= self._depth > DEEPEST
        members = [*map(self.encoded, value)]
        self._depth -= 1
        # Sorted, because the order of Python's sets differs between processes.
        return sorted(members, key=canonical) if type(value) in (set, frozenset) else members


@lru_cache(maxsize=1024)
def is_object(kind: Any) -> bool:
    """Return whether each instance of a class has its own row."""
    return (
        kind in KINDS.values()
        or hasattr(kind, STORED_MARK)
        or hasattr(kind, KEEPER)
        or issubclass(kind, BASES)
    )
