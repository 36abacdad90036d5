"""`dbzero.find`, `dbzero.tags` and `dbzero.index` for the shim's store (observed with dbzero 0.7.0)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, Final, final

from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.stored.storable_types import (
    EnumValue,
    Kind,
    NamedAsInC,
    kind_of,
    refusal,
    stored,
    type_text,
)
from statek_sim.shim.covered_names import NotCovered
from statek_sim.shim.memo import has_class_tag, is_memo, number_of
from statek_sim.shim.store import PrefixMetaData, current_store, get_current_prefix

_UUID: Final = "STAND-IN-"
_NO_TAG: Final = "Unable to resolve foreign composite tag key\n"
"""dbzero's error for removing something that cannot be a tag."""
_NOT_STORED: Final = (int, float, bytes, tuple, list, dict, set, type, type(None))
_OF_JOBS: Final = "STATEK_JOB"
"""The tag that STATEK gives every job."""


@dataclass(frozen=True, slots=True)
class No:
    """A negated criterion."""

    criterion: Any


@dataclass(frozen=True, slots=True)
class Tag(metaclass=NamedAsInC):
    """A stored object, or a class of stored objects, used as a tag on objects."""

    number: int | type


Tag.__name__ = "dbzero.Tag"


@final
class Found:
    """A query result, which supports `len`, iteration and slices.

    `sorted_from` is the query that an index has sorted. As in dbzero, the result has that query's length,
    even if the index lacks some of the query's objects.
    """

    __slots__ = ("_items", "_sorted_from")

    def __init__(self, items: Callable[[], list[Any]], sorted_from: Found | None = None) -> None:
        self._items = items
        self._sorted_from = sorted_from

    @property
    def is_sorted(self) -> bool:
        """Whether an index has sorted the result."""
        return self._sorted_from is not None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items())

    def __len__(self) -> int:
        return len(self._items() if self._sorted_from is None else self._sorted_from)

    def __bool__(self) -> bool:
        return len(self) > 0

    def __getitem__(self, wanted: object) -> Found:
        if not isinstance(wanted, slice):
            raise RuntimeError(f"Invalid subscript type for ObjectIterable: {type_text(type(wanted))}\n")
        if (wanted.step or 1) < 0:
            raise RuntimeError("Reversed order iteration over db0 query results is not supported\n")
        return Found(lambda: self._items()[wanted])


Found.__name__ = "ObjectIterable"


def find(*criteria: Any) -> Found:
    """Return the stored objects that match every criterion: a class, a tag, an object, another query, or `no(...)`.

    A tuple matches if all of its criteria match, a list if any of them does. A class must be the first criterion.
    """
    for criterion in criteria[1:] if criteria and isinstance(criteria[0], type) else criteria:
        _check(criterion)
    wanted = tuple(_each(criteria))
    if not wanted:
        return Found(list)
    return Found(
        lambda: [item for item in _candidates(wanted) if all(_fits(item, criterion) for criterion in wanted)]
    )


def _check(criterion: Any) -> None:
    """Raise dbzero's RuntimeError if a query cannot have a criterion at this position."""
    if isinstance(criterion, No):
        _check(criterion.criterion)
    elif isinstance(criterion, list | tuple):
        for part in criterion:
            _check(part)
    elif not (isinstance(criterion, str | Tag | EnumValue | Found) or _is_stored_object(criterion)):
        _refuse_unsupported(criterion)
        raise RuntimeError(f"Unable to interpret object of type: {_type_name(criterion)} as a query\n")


def _refuse_unsupported(value: Any) -> None:
    """Raise dbzero's RuntimeError for a value that it cannot store."""
    kind: type = type(value)
    if kind_of(kind) is Kind.REFUSED:
        raise refusal(value)


def _is_stored_object(value: Any) -> bool:
    return is_memo(value) and not isinstance(value, type)


def _type_name(value: object) -> str:
    return "type" if isinstance(value, type) else type_text(type(value))


def _each(criteria: tuple[Any, ...]) -> Iterator[Any]:
    for criterion in criteria:
        if isinstance(criterion, tuple) and criterion:
            yield from _each(criterion)
        else:
            yield criterion


def _candidates(criteria: tuple[Any, ...]) -> Iterable[Any]:
    first = criteria[0]
    if isinstance(first, Found):
        return first
    if isinstance(first, type) and issubclass(first, Job):
        return reversed(current_runtime().jobs)
    if isinstance(first, type) and first.__module__.startswith("statek_sim.") and not is_memo(first):
        raise NotCovered(f"dbzero.find({first.__name__})")
    return current_store().newest_first()


def _fits(item: Any, criterion: Any) -> bool:
    match criterion:
        case Found():
            return any(item is element for element in criterion)
        case type():
            # An object without a class tag gets one when it is tagged.
            has_tag = has_class_tag(item) or current_store().was_tagged(number_of(item))
            return is_memo(criterion) and isinstance(item, criterion) and has_tag
        case No():
            return not _fits(item, criterion.criterion)
        case tuple():
            return bool(criterion) and all(_fits(item, part) for part in criterion)
        case list():
            return any(_fits(item, part) for part in criterion)
    if is_memo(criterion):
        return item is criterion
    if isinstance(item, Job):
        return _is_tagged(item, criterion)
    return current_store().has_tag(number_of(item), _tag(criterion))


def _is_tagged(job: Job, criterion: Any) -> bool:
    """Return whether a job has a tag: its agent, definition or status, STATEK's tag, or one set by the application."""
    own = (as_tag(job.agent), as_tag(job.job_def), _OF_JOBS)
    is_status = isinstance(criterion, EnumValue) and job.status == criterion
    return is_status or criterion in own or current_store().has_tag(number_of(job), _tag(criterion))


def _tag(value: Any, refused: str = "Unable to interpret object of type: {} as a tag\n") -> Hashable:
    if isinstance(value, str | Tag | EnumValue):
        return value
    if _is_stored_object(value):
        return as_tag(value)
    _refuse_unsupported(value)
    raise RuntimeError(refused.format(_type_name(value)))


def no(criterion: Any) -> No:
    """Return a criterion that matches the objects not matched by `criterion`."""
    return No(criterion)


def as_tag(stored: Any) -> Tag:
    """Return a stored object, or a class, as a tag. A class as a tag is not the tag that `find(class)` looks for."""
    if not is_memo(stored):
        raise TypeError("as_tag: Expected a memo object")
    return Tag(stored if isinstance(stored, type) else number_of(stored))


class Tags(metaclass=NamedAsInC):
    """The tags on some objects."""

    __slots__ = ("_numbers", "_stored")

    def __init__(self, stored: tuple[Any, ...]) -> None:
        self._stored = stored
        self._numbers = [number_of(found) for found in _objects(stored)]

    def add(self, *tags: Any) -> None:
        """Add tags."""
        for number in self._numbers:
            for tag in _flat(tags):
                current_store().tag(number, {_tag(tag)})

    def remove(self, *tags: Any) -> None:
        """Remove tags."""
        for number in self._numbers:
            current_store().untag(number, {_tag(tag, _NO_TAG) for tag in _flat(tags)})


Tags.__name__ = "dbzero.Tags"


def _objects(given: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the objects given, including those found by queries."""
    for one in given:
        if isinstance(one, Found):
            yield from one
        elif _is_stored_object(one):
            yield one
        else:
            raise RuntimeError("All arguments must be dbzero memo objects or object queries\n")


def tags(*stored: Any) -> Tags:
    """Return the tags on the objects `stored`, for adding or removing tags."""
    return Tags(stored)


def _flat(tags: tuple[Any, ...]) -> Iterator[Any]:
    for tag in tags:
        if isinstance(tag, list | tuple | set | Found):
            yield from tag
        else:
            yield tag


def filter_(condition: Callable[[Any], bool], found: Iterable[Any]) -> Found:
    """Return the objects in `found` for which `condition` returns True."""
    return Found(lambda: [item for item in found if condition(item)])


def uuid(stored: Any) -> str:
    """Return the id of a stored object or a job; raises dbzero's RuntimeError for any other value."""
    if not _is_stored_object(stored):
        raise RuntimeError(f"Unable to generate UUID for: {_type_name(stored)} type\n")
    return stored.id if isinstance(stored, Job) else f"{_UUID}{number_of(stored)}"


def get_prefix_of(stored: Any) -> PrefixMetaData:
    """Return the prefix of a stored value, or of the object with an id, which is always the test's prefix.

    Raises dbzero's TypeError or RuntimeError for any other value.
    """
    _refuse_unsupported(stored)
    if not exists(stored) if isinstance(stored, str) else isinstance(stored, _NOT_STORED):
        raise TypeError(
            "dbzero.storage_api.PrefixMetaData() argument after * must be an iterable, not NoneType"
        )
    return get_current_prefix()


def fetch(*what: Any) -> Any:
    """Return the object with an id, or a class's singleton; raises RuntimeError if it does not exist."""
    wanted = what[-1]
    found = _fetched(wanted)
    if found is None:
        raise RuntimeError(f"Invalid UUID: {wanted}")
    return found


def exists(*what: Any) -> bool:
    """Return whether `fetch` would return an object for the same arguments."""
    return _fetched(what[-1]) is not None


def _fetched(wanted: Any) -> Any:
    if isinstance(wanted, type):
        return current_store().singletons.get(wanted)
    if isinstance(wanted, str) and wanted.startswith(_UUID):
        return current_store().with_number(int(wanted.removeprefix(_UUID)))
    return next((job for job in current_runtime().jobs if job.id == wanted), None)


Entry = tuple[Any, Any]
"""An index entry: key and object."""
_KINDS: Final = (int, date, time)
"""The key types. All keys in an index have the same type; datetimes count as dates."""
_NO_KEYS: Final = (str, float, bytes, tuple, list, dict)
_MOST: Final = 2**63


def index() -> Index:
    """Return a new, empty index."""
    return Index()


@stored
class Index:
    """Objects, keyed by an integer, a date, a datetime or a time; None is always allowed.

    All keys in an index, and the limits in queries, must have the same type. Changes become visible when the
    index is next used.
    """

    __slots__ = ("_changes", "_entries", "_kind")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._changes: list[tuple[str, Entry]] = []
        self._kind: type | None = None

    def __len__(self) -> int:
        return len(self.now())

    def add(self, key: Any, value: Any, /) -> None:
        """Add an object under a key; adding it again under the same key has no effect."""
        self._change("add", key, value)

    def remove(self, key: Any, value: Any, /) -> None:
        """Remove an object from a key, if present."""
        self._change("remove", key, value)

    def _change(self, what: str, key: Any, value: Any) -> None:
        if not is_memo(value) or isinstance(value, type):
            raise RuntimeError("Expected a memo object\n")
        number_of(value)
        self._kind = self._checked(key) or self._kind
        self._changes.append((what, (key, value)))

    def clear(self) -> None:
        """Remove everything."""
        self._entries = []
        self._changes = []

    def flush(self) -> None:
        """Make changes visible."""
        for what, (key, value) in self._changes:
            there = [entry for entry in self._entries if entry[1] is value and entry[0] == key]
            if what == "add" and not there:
                self._entries.append((key, value))
            elif what == "remove":
                self._entries = [entry for entry in self._entries if not any(entry is one for one in there)]
        self._changes = []

    def select(self, low: Any = None, high: Any = None, null_first: bool = False) -> Found:
        """Find objects with keys from `low` to `high`, inclusive, newest first; None means no limit.

        None keys come after all others or, with `null_first`, before them; a query without a limit on that
        side includes None keys.
        """
        for bound in (low, high):
            self._checked(bound)
        self.flush()
        return Found(
            lambda: _newest_first(
                e for e in self._entries if _between(e[0], low, high, null_first=null_first)
            )
        )

    def sort(self, query: Found, *, desc: bool = False, null_first: bool = False) -> Found:
        """Return the query's result sorted by this index; objects not in the index are left out."""
        if not isinstance(query, Found):
            raise TypeError("sort() takes ObjectIterable as an argument")
        self.flush()
        return Found(lambda: self._sorted(query, desc=desc, null_first=null_first), sorted_from=query)

    def now(self) -> list[Entry]:
        """Return the entries in the order in which they were added."""
        self.flush()
        return self._entries

    def _sorted(self, found: Found, *, desc: bool, null_first: bool) -> list[Any]:
        places = {id(one): place for place, one in enumerate(found)}
        entries = [entry for entry in self._entries if id(entry[1]) in places]
        entries.sort(key=lambda entry: places[id(entry[1])])
        without = [value for key, value in entries if key is None]
        # Objects with equal keys are in creation order, or reversed for `desc`; a sorted query keeps its order.
        keyed = [entry for entry in entries if entry[0] is not None]
        if not found.is_sorted and not desc:
            keyed.reverse()
        keyed.sort(key=lambda entry: _comparable(entry[0]), reverse=desc)
        values = [value for _, value in keyed]
        return without + values if null_first is not desc else values + without

    def _checked(self, key: Any) -> type | None:
        """Return a key's type; raises `NotCovered` if it differs from the type of the other keys.

        Raises dbzero's RuntimeError for an invalid key, such as a string, if the index has had a valid key
        before.
        """
        if key is None:
            return None
        if type(key) in _NO_KEYS and self._kind is not None:
            name = type(key).__name__
            if self._kind is int:
                raise RuntimeError(f"Expected an integer object, got {name}\n")
            raise RuntimeError(f"Unable to convert object of type {name} to UInt64\n")
        kind = next((kind for kind in _KINDS if isinstance(key, kind)), None)
        in_reach = kind is not int or (type(key) is int and -_MOST <= key < _MOST)
        zoned = getattr(key, "tzinfo", None) is not None
        if kind is None or zoned or not in_reach or self._kind not in (None, kind):
            raise NotCovered(f"a dbzero.index with the key {key!r}")
        return kind


def _comparable(key: Any) -> tuple[int, Any]:
    """Return an index key's sort key: all dates come before all datetimes."""
    return (int(isinstance(key, datetime)), key)


def _between(key: Any, low: Any, high: Any, *, null_first: bool) -> bool:
    if low is None and high is None:
        return True
    if key is None:
        return low is None if null_first else high is None
    at = _comparable(key)
    return (low is None or _comparable(low) <= at) and (high is None or at <= _comparable(high))


def _newest_first(entries: Iterator[Entry]) -> list[Any]:
    return sorted((value for _, value in entries), key=number_of, reverse=True)
