"""The shim's store, which replaces dbzero's during one test and tracks the objects that the test creates."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from operator import itemgetter
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from statek_sim.runtime.stored.ordering import Members
from statek_sim.shim.covered_names import NotCovered
from statek_sim.values import JSON


class Store:
    """A test's stored objects, keyed by number, and their tags.

    As in dbzero, objects without references or tags are removed.
    """

    def __init__(self) -> None:
        self._objects: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._places: dict[int, int] = {}
        self._next = 1
        self._tags: dict[int, set[Hashable]] = {}
        self._tagged: dict[int, Any] = {}
        self.singletons: dict[type, Any] = {}
        self.prefix = PrefixMetaData("statek-test", 1)
        self.is_named = False
        """Whether the application has opened a prefix."""
        self._members: dict[type, Members] = {}
        self.deleted: set[tuple[int | None, str]] = set()
        """Deleted members, as `(object number, member name)` pairs."""
        self.texts: set[str] = set()
        """The names of enums in use, and of their values."""

    def add(self, instance: Any) -> int:
        """Add a new object and return its number."""
        number, self._next = self._next, self._next + 1
        self._objects[number] = instance
        # The number is not an attribute, because agents see attributes. The key is the id, because the object may be
        # unhashable.
        self._places[id(instance)] = number
        weakref.finalize(instance, self._places.pop, id(instance), None)
        return number

    def adopt(self, instance: Any, number: int) -> None:
        """Give an object its number from another process; an object with the same number gets a new one."""
        holder, before = self._objects.get(number), self._places.get(id(instance))
        if holder is instance:
            return
        self._next = max(self._next, number + 1)
        if before is None:
            weakref.finalize(instance, self._places.pop, id(instance), None)
        else:
            del self._objects[before]
        self._objects[number], self._places[id(instance)] = instance, number
        if holder is not None:
            moved, self._next = self._next, self._next + 1
            self._objects[moved], self._places[id(holder)] = holder, moved

    @property
    def is_used(self) -> bool:
        """Whether the application has opened a prefix or stored an object."""
        return self.is_named or self._next > 1

    def number_of(self, instance: Any) -> int | None:
        """Return a stored object's number, or None for any other object."""
        return self._places.get(id(instance))

    def knows(self, text: str) -> bool:
        """Return whether the store contains a string as a tag, or as the name of a member, enum or enum value."""
        return (
            text in self.texts
            or any(text in members.names for members in self._members.values())
            or any(text in tags for tags in self._tags.values())
        )

    def members_of(self, kind: type) -> Members:
        """Return the names of all members that a class's objects have ever had."""
        return self._members.setdefault(kind, Members())

    def newest_first(self) -> list[Any]:
        """Return all objects, newest first. dbzero returns objects in this order, but does not guarantee it."""
        # The items hold the objects, which may be collected at any time.
        items = sorted(self._objects.items(), key=itemgetter(0), reverse=True)
        return [instance for _, instance in items]

    def with_number(self, number: int) -> Any:
        """Return the object with this number, or None if it no longer exists."""
        return self._objects.get(number)

    def tag(self, number: int, tags: set[Hashable]) -> None:
        """Add tags to the object with this number; a tagged object stays in the store without other references."""
        self._tags.setdefault(number, set()).update(tags)
        self._tagged[number] = self._objects[number]

    def untag(self, number: int, tags: set[Hashable]) -> None:
        """Remove tags from the object with this number."""
        left = self._tags.get(number, set())
        left.difference_update(tags)
        if not left:
            self._tagged.pop(number, None)

    def has_tag(self, number: int, tag: Hashable) -> bool:
        """Return whether the object with this number has a tag."""
        return tag in self._tags.get(number, ())

    def was_tagged(self, number: int) -> bool:
        """Return whether the object with this number has or had a tag."""
        return number in self._tags

    def saved(self) -> dict[str, object]:
        """Return the store's state for `resume` in another process, without the objects."""
        return {
            "next": self._next,
            "singletons": tuple(self.singletons.values()),
            "tags": [
                (
                    self._objects[number],
                    tuple(sorted((_serializable(tag) for tag in tags), key=repr)),
                )
                for number, tags in self._tags.items()
                if tags and number in self._objects
            ],
            "texts": sorted(self.texts),
            "deleted": sorted((number or 0, name) for number, name in self.deleted),
            "members": [(kind, *members.saved()) for kind, members in self._members.items()],
        }

    def resume(self, saved: Mapping[str, Any], tag_of: Callable[[int], Hashable]) -> None:
        """Restore the state saved by another process; `tag_of(number)` returns an object as a tag."""
        self._next = max(self._next, saved["next"])
        self.texts.update(saved["texts"])
        self.deleted.update((number, name) for number, name in saved["deleted"])
        self.singletons.update((type(singleton), singleton) for singleton in saved["singletons"])
        self._tags.clear()
        self._tagged.clear()
        for instance, tags in saved["tags"]:
            number = self.number_of(instance)
            if number is not None:
                self.tag(number, {tag_of(tag) if kind == "number" else tag for kind, tag in tags})
        for kind, *names in saved["members"]:
            self.members_of(kind).resume(*names)

    def close(self) -> None:
        """Close the store, which makes its objects inaccessible."""
        self._places.clear()
        self._tagged.clear()
        self.singletons.clear()


def _serializable(tag: Any) -> tuple[str, Any]:
    """Convert a tag to a serializable form: `("number", number)` for an object, `("value", tag)` for any other tag."""
    number = getattr(tag, "number", None)
    return ("value", tag) if number is None else ("number", number)


class _Current:
    store: Store | None = None


def open_store() -> Store | None:
    """Return the open store, or None."""
    return _Current.store


def current_store() -> Store:
    """Return the open store; raises dbzero's RuntimeError if no store is open."""
    if _Current.store is None:
        raise RuntimeError("dbzero not initialized")
    return _Current.store


@contextmanager
def opened_store() -> Iterator[Store]:
    """Open an empty store inside the `with` statement, replacing any open store."""
    before, _Current.store = _Current.store, Store()
    try:
        yield _Current.store
    finally:
        _Current.store.close()
        _Current.store = before


def nothing(*_args: Any, **_options: JSON) -> None:
    """Replaces dbzero's `init`, `commit` and `close`; the store is open during the whole test.

    Raises RuntimeError if no store is open.
    """
    current_store()


class PrefixMetaData(NamedTuple):
    """A dbzero prefix, which is an object store; a test has only one."""

    name: str
    uuid: int


def open_prefix(prefix_name: str, open_mode: str = "rw", *_args: Any, **_options: Any) -> None:
    """Name the test's store, or do nothing for its present name.

    Raises dbzero's RuntimeError for a new prefix with the mode "r", and `NotCovered` for a second prefix.
    """
    store, name = current_store(), prefix_name.strip("/")
    if name != store.prefix.name:
        if open_mode == "r":
            raise RuntimeError(f"Prefix: {name} not found\n")
        if store.is_used:
            raise NotCovered(
                f"dbzero.open({prefix_name!r}) when the prefix {store.prefix.name!r} is already in use"
            )
        store.prefix, store.is_named = PrefixMetaData(name, 1), True


def is_current(prefix: str | int) -> bool:
    """Return whether a name is the name of the test's prefix."""
    return isinstance(prefix, str) and prefix.strip("/") == current_store().prefix.name


def set_prefix(stored: Any, prefix: str | None) -> None:
    """Set an object's prefix in its `__init__`; raises `NotCovered` for prefixes other than the test's."""
    if current_store().number_of(stored) is None:
        raise TypeError("Invalid object type")
    if prefix is not None and not is_current(prefix):
        raise NotCovered(f"dbzero.set_prefix(..., {prefix!r}), a store other than the test's own")


def get_current_prefix() -> PrefixMetaData:
    """Return the test's prefix."""
    return current_store().prefix


def immutable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method that only reads, as in dbzero; the method is not changed."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call
