"""dbzero's collections, and the conversion of values to stored form (observed with dbzero 0.7.0).

`List`, `Tuple`, `Dict` and `Set` are not `list`, `tuple`, `dict` and `set`. They support dbzero's operations,
and raise dbzero's errors for all others. Some results are odd: two `List`s of different lengths are neither
equal nor unequal, two `List`s with strings are unequal, and a non-empty `Dict` is not equal to itself.
Operators that end the process in dbzero raise `StoreKills` here. A plain collection is copied when put into a
stored collection; a stored collection is shared.

Three operations raise `NotReproduced` here, because in dbzero they depend on memory addresses or involve very
rare keys: intersecting sets with elements other than small integers, changing a dict or set while iterating
over it, and using integers beyond 64 bits as keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time
from decimal import Decimal
from inspect import CO_VARKEYWORDS
from itertools import chain
from types import FunctionType
from typing import Any, Final, Literal, NamedTuple, NoReturn, Self

from statek_sim.runtime.stored.ordering import in_store_order, key_hash, unchanged
from statek_sim.runtime.stored.storable_types import (
    INJECTED,
    EarlyEnumValue,
    Kind,
    imported,
    kind_of,
    loaded,
    place_of,
    read,
    refusal,
    same,
    shared,
    stored_datetime,
    stored_decimal,
    stored_time,
    why_datetime_changed,
    why_decimal_changed,
)
from statek_sim.sandbox.budget import MOST_UNFOLDED, unfolded_size
from statek_sim.sandbox.llm_repr import StoredCollection
from statek_sim.sandbox.ordered_set import in_order, stable_set

# Values come from model-written code and tools.
Value = Any

_SMALLEST: Final = -(2**63)
_BEYOND: Final = 2**63
_LOST_NUMBER: Final = -1
_SMALL: Final = range(257)
"""Integers for which CPython keeps a single object each, at ascending addresses."""
_NO_HASH: Final = 2**64
"""The smallest integer that dbzero cannot hash; it cannot hash negative integers either."""
_MOST_NESTING: Final = 200
_MANY_COPIED: Final = 10_000
"""Number of copied collections after which the total number of items is checked."""


class StoreKills(BaseException):
    """Raised where dbzero ends the whole process, including all its jobs. The message is the reason."""

    change: Literal["kills", "refused"] = "kills"
    """The `change` in a remark about this effect."""


class NotReproduced(StoreKills):
    """Raised where dbzero's result is unpredictable.

    The message names the operation and often suggests an alternative.
    """

    change = "refused"


def _changed() -> NotReproduced:
    return NotReproduced("a stored dict or set was changed during iteration; iterate over list(...) instead")


class Kept(NamedTuple):
    """A value's stored form, with the error that dbzero raises if it is damaged."""

    value: Value
    error: Exception | None
    changes: str = ""
    """A description of how dbzero changes the value without raising an error; empty if it does not."""


NOTHING: Final = object()
"""Placeholder for a value that the store rejected; the old value remains."""


class Damage(list[Exception]):
    """Collects errors for damaged parts of a value while the other parts are stored."""

    changes = ""
    copied = 0
    """The number of collections copied so far."""
    whole: Value = None
    """The outermost collection being copied."""

    def come_up(self) -> None:
        """Raise the last error, if any."""
        if self:
            raise self[-1]


def kept(value: Value) -> Kept:
    """Return the stored form of `value`, with its error.

    Raises `StoreKills` for a value that ends dbzero's process.
    """
    late = Damage()
    try:
        found = _convert(value, late, 0)
    except (TypeError, RuntimeError) as refused:
        return Kept(NOTHING, refused, late.changes)
    return Kept(found, late[-1] if late else None, late.changes)


def inside(value: Value) -> Value:
    """Return the stored form of `value`; raises dbzero's error for a rejected or damaged value."""
    found = kept(value)
    if found.error is not None:
        raise found.error
    return found.value


def put(value: Value, place: Callable[[Value], object]) -> None:
    """Call `place` with the stored form of `value`, then raise dbzero's error for a rejected or damaged value.

    As in dbzero, a damaged value is stored before its error is raised, and a rejected value is not stored.
    """
    found = kept(value)
    if found.value is not NOTHING:
        place(found.value)
    if found.error is not None:
        raise found.error


def _convert(value: Value, late: Damage, depth: int) -> Value:
    kind: type = type(value)
    match kind_of(kind):
        case Kind.AS_IT_IS:
            return value if kind is not EarlyEnumValue else value.in_the_store()
        case Kind.INT:
            if _SMALLEST <= value < _BEYOND:
                return value
            late.append(OverflowError("int too big to convert"))
            return _LOST_NUMBER
        case Kind.TEXT:
            return _text(value, late)
        case Kind.DECIMAL:
            return _decimal(value, late)
        case Kind.DATETIME:
            found = stored_datetime(value)
            late.changes = late.changes or why_datetime_changed(value, found)
            return found
        case Kind.TIME:
            return stored_time(value)
        case Kind.FUNCTION:
            return _function(value)
        case Kind.CLASS:
            return _class(value, late)
        case Kind.REFUSED:
            raise refusal(value)
    if depth > _MOST_NESTING:
        raise StoreKills("a collection that contains itself was stored")
    return _collection(value, late, depth + 1)


def _collection(value: Value, late: Damage, depth: int) -> Value:
    kind: type = type(value)
    _count_copy(value, late, depth)
    match kind_of(kind):
        case Kind.LIST:
            if set(map(type, value)) == {int} and min(value) >= _SMALLEST and max(value) < _BEYOND:
                return List._of(list(value))
            return List._of([_convert(item, late, depth) for item in value])
        case Kind.TUPLE:
            found = tuple(_convert(item, late, depth) for item in value)
            if late:
                raise StoreKills("a tuple was stored with an item that dbzero cannot store unchanged")
            return Tuple._of(found)
        case Kind.SET:
            members = Set()
            for item in in_order(value):
                members._put(item, late, depth)
            return members
        case _:
            entries = Dict._of({})
            for key, item in value.items():
                entries._put(key, item, late, depth)
            return entries


def _count_copy(value: Value, late: Damage, depth: int) -> None:
    """Count a copied collection. Raise `StoreKills` if the outermost collection has too many items in total."""
    if depth == 1:
        late.whole, late.copied = value, 0
    late.copied += 1
    if late.copied == _MANY_COPIED and unfolded_size(late.whole) > MOST_UNFOLDED:
        raise StoreKills(
            f"a collection of more than {MOST_UNFOLDED:,} items was stored, counting repeated items each time"
        )


def _text(value: str, late: Damage) -> str:
    error = unstorable(value)
    if error is not None:
        late.append(error)
        return ""
    if "\0" not in value:
        return shared(value) if len(value) == 1 else value
    late.changes = late.changes or "dbzero truncates strings at the first NUL"
    return stored_text(value)


def _decimal(value: Decimal, late: Damage) -> Decimal:
    if not value.is_finite():
        late.append(TypeError("'str' object cannot be interpreted as an integer"))
        return Decimal("0.0")
    found = stored_decimal(value)
    late.changes = late.changes or why_decimal_changed(value, found)
    return found


def _function(value: FunctionType) -> FunctionType:
    if value.__module__ is None:
        # A function from model-written code, which has no module.
        raise RuntimeError("Failed to decode function attributes as UTF-8\n")
    if "<lambda>" in value.__qualname__:
        raise RuntimeError("Lambda functions are not allowed as CALLABLE members\n")
    if "<locals>" in value.__qualname__ and value not in INJECTED:
        raise RuntimeError("Decorated or nested functions are not allowed as CALLABLE members\n")
    return imported(value)


def _class(value: type, late: Damage) -> type:
    """Return the class that dbzero finds when it imports a stored class; it may differ from `value`."""
    if value.__module__ is None:
        raise RuntimeError("Failed to decode function attributes as UTF-8\n")
    if "<locals>" in value.__qualname__:
        raise RuntimeError("Decorated or nested functions are not allowed as CALLABLE members\n")
    try:
        return loaded(value)
    except RuntimeError:
        late.changes = (
            late.changes or "when reading it, dbzero finds no class with that name, which crashes the job"
        )
        return value


def unstorable(text: str) -> UnicodeEncodeError | None:
    """Return the error for a string with a lone surrogate, which dbzero does not store, otherwise None."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return error.with_traceback(None)
    return None


def stored_text(value: str) -> str:
    """Return a string as dbzero reads it back: up to the first NUL."""
    return value.partition("\0")[0] if "\0" in value else value


def _out_of_range(function: str, line: int, index: int) -> IndexError:
    return IndexError(
        f"Exception N3db014IndexExceptionE thrown in function {function} at "
        f"/project/src/dbzero/object_model/list/List.cpp, line {line}: Index out of range: {index % 2**64}\n: \n"
    )


def _as_dbzeros(name: str) -> Callable[[type], type]:
    """Decorate a collection class: set the class's name in dbzero's errors, and make the methods look built-in."""

    def named(kind: type) -> type:
        kind.__name__ = kind.__qualname__ = name
        kind.__module__ = "builtins"
        for method, function in list(vars(kind).items()):
            if isinstance(function, FunctionType) and not method.startswith("_"):
                setattr(kind, method, _Method(function))
        return kind

    return named


class _Bound:
    """A collection's bound method; in Python's errors, its type is named `builtin_function_or_method`."""

    __slots__ = ("_function", "_owner")

    def __init__(self, function: FunctionType, owner: Value) -> None:
        self._function = function
        self._owner = owner

    def __call__(self, *args: Value, **kwargs: Value) -> Value:
        if kwargs and not self._function.__code__.co_flags & CO_VARKEYWORDS:
            owner = type(self._owner).__name__
            raise TypeError(f"{owner}.{self._function.__name__}() takes no keyword arguments")
        return self._function(self._owner, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<built-in method {self._function.__name__} of {type(self._owner).__name__} object>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bound) and self._owner is other._owner and self._function is other._function

    def __hash__(self) -> int:
        return hash(self._function)


_Bound.__name__ = _Bound.__qualname__ = "builtin_function_or_method"
_Bound.__module__ = "builtins"


class _Method:
    """Descriptor for a collection method; accessed on an instance, it returns a `_Bound`."""

    __slots__ = ("_function",)

    def __init__(self, function: FunctionType) -> None:
        self._function = function

    def __get__(self, owner: Value, kind: type) -> Value:
        return self if owner is None else _Bound(self._function, owner)


class _Collection(StoredCollection):
    """Base class of the four collections; they cannot be pickled or copied."""

    __slots__ = ("_items",)
    _items: Any  # each of the four classes has its own type

    @classmethod
    def _of(cls, items: Any) -> Self:
        made = cls.__new__(cls)
        made._items = items
        return made

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce_ex__(self, protocol: object, /) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def __len__(self) -> int:
        return len(self._items)

    def _contents(self) -> Iterable[Value]:
        items: Iterable[Value] = self._items
        return items

    def __str__(self) -> str:
        return repr(self)


def _only(arguments: tuple[Value, ...], refusal: str) -> Value:
    """Return a method's only argument; raises dbzero's TypeError for any other number of arguments."""
    if len(arguments) != 1:
        raise TypeError(refusal)
    return arguments[0]


@_as_dbzeros("Sequence")
class _Sequence(_Collection):
    """Base class of lists and tuples, whose methods compare items by identity."""

    __slots__ = ("_texts",)
    _texts: object
    """An object that a list and its copies have in common, until one of them stores another string."""

    def _equals(self, other: _Sequence) -> bool:
        """Return whether two stored sequences are equal: dbzero compares what it stores, not the values.

        Each string and each nested collection is stored anew, so only copies of a list share them.
        """
        copied = hasattr(self, "_texts") and self._texts is getattr(other, "_texts", None)
        return self is other or (
            len(self) == len(other)
            and all(
                _stored_alike(*pair, copied=copied) for pair in zip(self._items, other._items, strict=True)
            )
        )

    def count(self, item: Value) -> int:
        """Return how many items are the same object as `item`."""
        return sum(same(found, item) for found in self._items)

    def index(self, *items: Value) -> int:
        """Return the first index of an object."""
        return self._place_of(_only(items, "index() takes one argument."))

    def _place_of(self, item: Value) -> int:
        place = place_of(item, self._items)
        if place is None:
            raise RuntimeError("Item is not in a list \n")
        return place


def _stored_alike(one: Value, other: Value, *, copied: bool) -> bool:
    if isinstance(one, str | bytes):
        return copied and bool(one == other)
    if isinstance(one, int | float | date | time | Decimal):
        return type(one) is type(other) and one == other
    return one is other


@_as_dbzeros("List")
class List(_Sequence):
    """dbzero's list."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as Python's own unhashable types do it
    shown_as = list

    def __repr__(self) -> str:
        return "[" + ", ".join(map(repr, self._items)) + "]"

    def __iter__(self) -> Iterator[Value]:
        at = 0
        while at < len(self._items):
            yield read(self._items[at])
            at += 1

    def __getitem__(self, index: Value) -> Value:
        if isinstance(index, slice):
            return [read(item) for item in self._items[index]]
        if not isinstance(index, int):
            raise RuntimeError(f"Invalid index type: {type(index).__name__}\n")
        return read(self._items[self._place(index, "getItem", 75)])

    def _place(self, index: int, function: str, line: int) -> int:
        place = index + len(self._items) if index < 0 else index
        if not 0 <= place < len(self._items):
            raise _out_of_range(function, line, place)
        return place

    def __setitem__(self, index: Value, item: Value) -> None:
        place = self._place(_sequence_index(index), "setItem", 97)
        self._stores(item)
        put(item, lambda found: self._items.__setitem__(place, found))

    def __delitem__(self, index: Value) -> None:
        del self._items[self._place(_sequence_index(index), "setItem", 97)]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, List):
            return self._equals(other)
        return isinstance(other, list) and bool([*self] == other)

    def __ne__(self, other: object) -> bool:
        if isinstance(other, List) and len(self) != len(other):
            return False
        return not self == other

    def __add__(self, other: Value) -> List:
        joined = self.copy()
        joined.extend(other)
        return joined

    def __radd__(self, other: Value) -> NoReturn:
        # For a plain list, the result is sometimes a meaningless error; after that, the process is corrupted.
        raise StoreKills(f"a {type(other).__name__} was the left operand of + with a stored list")

    def __mul__(self, times: Value) -> List:
        if not isinstance(times, int):
            raise TypeError(f"{type(times).__name__!r} object cannot be interpreted as an integer")
        return List._of([*self] * max(times, 1))

    def __rmul__(self, times: Value) -> NoReturn:
        raise StoreKills("a number was the left operand of * with a stored list")

    def append(self, *items: Value) -> None:
        """Add at the end."""
        item = _only(items, "append() takes exactly one argument")
        self._stores(item)
        put(item, self._items.append)

    def extend(self, *items: Value) -> None:
        """Add several items. If one is rejected, the items before it are still added."""
        added = _only(items, "extend() takes one argument.")
        if added is self and self._items:
            raise StoreKills("a stored list was extended by itself, which never finishes")
        try:
            found = iter(added)
        except TypeError:
            raise TypeError("extend() argument must be iterable.") from None
        late = Damage()
        for item in found:
            self._stores(item)
            self._items.append(_convert(item, late, 0))
        late.come_up()

    def _stores(self, item: Value) -> None:
        if isinstance(item, str | bytes):
            self._texts = object()

    def pop(self, *places: Value) -> Value:
        """Remove and return an item; raises IndexError for an empty list or a negative index."""
        if len(places) > 1:
            raise TypeError("pop() takes zero or one argument.")
        index = places[0] if places else len(self._items) - 1
        if not isinstance(index, int):
            raise TypeError(f"{type(index).__name__!r} object cannot be interpreted as an integer")
        if not 0 <= index < len(self._items):
            raise _out_of_range("pop", 85, index)
        found = read(self._items[index])
        if index == len(self._items) - 1:
            self._items.pop()
            return found
        # The last item takes the place of the removed item.
        self._items[index] = self._items.pop()
        return found

    def clear(self) -> None:
        """Remove everything."""
        self._items.clear()

    def copy(self) -> List:
        """Return another List with the same items."""
        if not hasattr(self, "_texts"):
            self._texts = object()
        made = List._of(list(self._items))
        made._texts = self._texts
        return made

    def remove(self, *items: Value) -> None:
        """Remove the first occurrence of an object; the last item takes its place."""
        self._items[self._place_of(_only(items, "remove() takes one argument."))] = self._items[-1]
        self._items.pop()


def _sequence_index(index: Value) -> int:
    if not isinstance(index, int):
        raise TypeError(f"sequence index must be integer, not {type(index).__name__!r}")
    return index


@_as_dbzeros("Tuple")
class Tuple(_Sequence):
    """dbzero's tuple."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as Python's own unhashable types do it
    shown_as = tuple

    def __repr__(self) -> str:
        return "(" + ", ".join(map(repr, self._items)) + ")"

    def __iter__(self) -> Iterator[Value]:
        return map(read, self._items)

    def __getitem__(self, index: Value) -> Value:
        return read(self._items[_sequence_index(index)])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Tuple):
            return self._equals(other)
        return isinstance(other, tuple) and bool((*self,) == other)


class _View:
    """The keys, values or entries of a Dict; supports only `len` and iteration."""

    __slots__ = ("_entries", "_pick")

    def __init__(self, entries: Dict, pick: Callable[[Value, Value], Value]) -> None:
        self._entries = entries
        self._pick = pick

    def __iter__(self) -> Iterator[Value]:
        entries = self._entries._items
        return (self._pick(*entries[plain]) for plain in unchanged(entries, _changed))

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return "<Dict object at 0x...>"

    def __llm_repr__(self) -> str:
        raise StoreKills("the keys(), values() or items() of a stored dict were printed")


_as_dbzeros("Dict")(_View)


@_as_dbzeros("Dict")
class Dict(_Collection):
    """dbzero's dict, whose entries are ordered by the hashes of their keys."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as Python's own unhashable types do it
    shown_as = dict
    __reversed__ = None

    def __init__(
        self, items: Mapping[Value, Value] | Iterable[tuple[Value, Value]] = (), **more: Value
    ) -> None:
        self._items: dict[Value, tuple[Value, Value]] = {}
        self.update(items, **more)

    def _put(self, key: Value, item: Value, late: Damage, depth: int) -> None:
        """Add an entry. An entry with an unhashable key is skipped, but later entries are still added."""
        if _is_beyond(key):
            late.append(TypeError(f"Unable to find hash function for key of type: {type(key).__name__}"))
            return
        found = _hashed(key, late, depth)
        self._items[_plain_key(found)] = (found, _convert(item, late, depth))

    def _contents(self) -> Iterable[Value]:
        return chain.from_iterable(self._items.values())

    def _ordered(self) -> Iterator[tuple[Value, Value]]:
        return (self._items[plain] for plain in unchanged(self._items, _changed))

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {item!r}" for key, item in self._ordered()) + "}"

    def __iter__(self) -> Iterator[Value]:
        return (read(key) for key, _ in self._ordered())

    def __contains__(self, key: Value) -> bool:
        return _looked_up(key) in self._items

    def __getitem__(self, key: Value) -> Value:
        unhashable = isinstance(key, list | dict | set | List | Dict | Set)
        if unhashable or _is_beyond(key):
            raise KeyError(f"Cannot get hash for key: {key}")
        try:
            return read(self._items[_looked_up_plain(key)][1])
        except KeyError:
            raise KeyError(str(key)) from None

    def __setitem__(self, key: Value, item: Value) -> None:
        late = Damage()
        self._set(key, item, late)
        late.come_up()

    def _set(self, key: Value, item: Value, late: Damage) -> None:
        if isinstance(key, list | dict | set | List | Dict | Set):
            raise TypeError(f"Unable to find hash function for key of type: {type(key).__name__}")
        self._put(key, item, late, 0)

    def __delitem__(self, key: Value) -> None:
        if isinstance(key, list | dict | set | List | Dict | Set) or _is_beyond(key):
            raise TypeError(f"Unable to find hash function for key of type: {type(key).__name__}")
        # A missing key is not an error.
        self._items.pop(self._removed_for(key), None)

    def _removed_for(self, key: Value) -> Value:
        """Return the key that dbzero removes: the first in its order with the same hash, such as 0 for ''."""
        plain = _looked_up_plain(key)
        if (plain and isinstance(plain, str)) or (isinstance(plain, int) and plain in self._items):
            return plain
        wanted = key_hash(plain)
        return next(iter(in_store_order(k for k in self._items if key_hash(k) == wanted)), plain)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dict):
            return not self._items and not other._items
        if not isinstance(other, dict) or len(other) != len(self):
            return False
        return all(key in other and _equal(item, other[key]) for key, (_, item) in self._items.items())

    def get(self, *key_and_default: Value) -> Value:
        """Return an item, or the default, or None."""
        if not key_and_default:
            raise TypeError(" get expected at least 1 argument")
        found = self._items.get(_looked_up(key_and_default[0]))
        if found is not None:
            return read(found[1])
        return key_and_default[1] if len(key_and_default) > 1 else None

    def pop(self, *key_and_default: Value) -> Value:
        """Remove and return an item. If it is missing, return the default, or raise KeyError."""
        if not key_and_default:
            raise TypeError(" get expected at least 1 argument")
        key = key_and_default[0]
        try:
            missing = _looked_up(key) not in self._items
        except (TypeError, OverflowError):
            if len(key_and_default) > 1:
                raise
            missing = True
        if missing:
            if len(key_and_default) > 1:
                return key_and_default[1]
            raise KeyError("not found")
        return read(self._items.pop(self._removed_for(key))[1])

    def setdefault(self, key: Value, default: Value = None) -> Value:
        """Return the item, which is set to `default` if it was missing."""
        if not (_is_beyond(key) or _has_hash(key)):
            # dbzero frees the item too often, which ends the process immediately or soon after.
            raise StoreKills("setdefault() of a stored dict was called with an unhashable key")
        if _has_hash(key) and key not in self:
            self[key] = default
        return self[key]

    def update(self, items: Value = (), **more: Value) -> None:
        """Add several entries."""
        if hasattr(items, "keys"):
            items = [(key, items[key]) for key in items]
        elif not hasattr(items, "__iter__"):
            raise TypeError("argument must be a sequence or dict")
        late = Damage()
        for key, item in chain(items, more.items()):
            self._set(key, item, late)
        late.come_up()

    def clear(self) -> None:
        """Remove everything."""
        self._items.clear()

    def copy(self) -> Dict:
        """Return another Dict with the same entries."""
        return Dict._of(dict(self._items))

    def fromkeys(self, keys: Iterable[Value], item: Value = None) -> Dict:
        """Return a new Dict with these keys."""
        return Dict((key, item) for key in keys)

    def keys(self) -> _View:
        """Return the keys in order."""
        return _View(self, lambda key, _: read(key))

    def values(self) -> _View:
        """Return the items, in key order."""
        return _View(self, lambda _, item: read(item))

    def items(self) -> _View:
        """Return `(key, item)` pairs."""
        return _View(self, lambda key, item: (read(key), read(item)))


def _equal(found: Value, item: Value) -> bool:
    """Return whether a stored item is identical or equal to `item`; a `Dict` is not even equal to itself."""
    return same(found, item) or bool(found == item)


def _looked_up_plain(key: Value) -> Value:
    """Return the key to look up; raises RuntimeError for a type that dbzero cannot store.

    A function is never found, because dbzero returns a new object for each read.
    """
    _refuse_unsupported(key)
    return object() if isinstance(key, FunctionType) else _plain_key(key)


def _refuse_unsupported(key: Value) -> None:
    kind: type = type(key)
    if kind_of(kind) is Kind.REFUSED:
        raise refusal(key)
    if isinstance(key, str) and unstorable(key) is not None:
        raise StoreKills("a string with a lone surrogate was looked up in a stored dict or set")
    if isinstance(key, tuple):
        for item in key:
            _refuse_unsupported(item)


def _plain_key(key: Value) -> Value:
    return tuple(map(_plain_key, key)) if isinstance(key, Tuple | tuple) else key


def _looked_up(key: Value) -> Value:
    if _is_beyond(key):
        raise OverflowError("can't convert negative int to unsigned" if key < 0 else "int too big to convert")
    plain = _looked_up_plain(key)
    hash(plain)
    return plain


def _is_beyond(key: Value) -> bool:
    """Return whether a key is an integer that dbzero cannot hash."""
    return isinstance(key, int) and not 0 <= key < _NO_HASH


def _has_hash(key: Value) -> bool:
    """Return whether dbzero can hash a key; a tuple needs every item to be hashable."""
    if isinstance(key, Tuple | tuple):
        return all(map(_has_hash, key))
    return not (_is_beyond(key) or isinstance(key, list | dict | set | List | Dict | Set))


def _hashed(key: Value, late: Damage, depth: int) -> Value:
    if isinstance(key, int) and not _SMALLEST <= key < _BEYOND:
        raise NotReproduced(f"the integer {key} was stored as a dict key or set member")
    found = _convert(key, late, depth)
    if isinstance(key, str) and late and isinstance(late[-1], UnicodeEncodeError):
        raise StoreKills("a string with a lone surrogate was stored as a key")
    return found


_TUPLE_WITHOUT_HASH: Final = "unhashable type: 'Tuple'"


@_as_dbzeros("Set")
class _Members(_Collection):
    """Base class of `Set`: membership tests, and comparisons with other sets."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # as Python's own unhashable types do it
    _items: dict[Value, Value]

    def _contents(self) -> Iterable[Value]:
        return self._items.values()

    def __contains__(self, item: Value) -> bool:
        return _looked_up(item) in self._items

    def _lookup_members(self, *others: Value) -> Iterable[Value]:
        """Return the members, to be looked up in the other collections.

        Raises TypeError if a member is a tuple and one of the collections is a plain set, because dbzero's
        `Tuple` is unhashable in Python.
        """
        return (
            self._hashed_by_python()
            if any(isinstance(other, set | frozenset) for other in others)
            else self._items
        )

    def _hashed_by_python(self) -> dict[Value, Value]:
        """Return the members, for an operator with a plain set; raises TypeError for a tuple, which is unhashable."""
        if any(isinstance(item, Tuple) for item in self._items.values()):
            raise TypeError(_TUPLE_WITHOUT_HASH)
        return self._items

    def _is_within(self, other: Value) -> bool:
        return _members(self._lookup_members(other)).keys() <= _members(other).keys()

    def _found(self, other: Value) -> Iterator[bool]:
        """Yield whether each item of a collection is a member; raises dbzero's error for an item it cannot look up."""
        for item in other._items if isinstance(other, Set) else _members(other):
            known = isinstance(other, Set) or isinstance(item, FunctionType)
            yield item in self._items if known else item in self

    def __eq__(self, other: object) -> bool:
        return _is_set(other) and len(self) == len(_members(other)) and all(self._found(other))

    def __lt__(self, other: Value) -> bool:
        if not _is_set(other):
            return NotImplemented
        return len(self) != len(other) and self._is_within(other)

    def __le__(self, other: Value) -> bool:
        return self._is_within(other) if _is_set(other) else NotImplemented

    def __gt__(self, other: Value) -> bool:
        if not _is_set(other):
            return NotImplemented
        return len(self) != len(other) and all(self._found(other))

    def __ge__(self, other: Value) -> bool:
        return all(self._found(other)) if _is_set(other) else NotImplemented

    def issubset(self, other: Value) -> bool:
        """Return whether the other set contains every member of this one."""
        return self._is_within(other)

    def issuperset(self, other: Value) -> bool:
        """Return whether every member of the other set is also a member of this one."""
        return all(self._found(other))

    def isdisjoint(self, other: Value) -> bool:
        """Return whether the two sets have no common member."""
        return not (self._items and any(self._found(other)))


@_as_dbzeros("Set")
class Set(_Members):
    """dbzero's set, whose members are ordered by their hashes."""

    __slots__ = ()
    shown_as = set
    __reversed__ = None

    def __init__(self, items: Iterable[Value] = ()) -> None:
        self._items = {}
        self._add_all(items)

    def _put(self, item: Value, late: Damage, depth: int) -> None:
        if isinstance(item, int) and item < 0:
            late.append(OverflowError("can't convert negative int to unsigned"))
        found = _hashed(item, late, depth)
        self._items.setdefault(_plain_key(found), found)

    def _add(self, item: Value, late: Damage) -> None:
        if isinstance(item, list | dict | set):
            raise TypeError(f"unhashable type: {type(item).__name__!r}")
        self._put(item, late, 0)

    def _add_all(self, items: Value) -> None:
        if not hasattr(items, "__iter__"):
            raise TypeError("argument must be a sequence or set")
        late = Damage()
        for item in in_order(items) if isinstance(items, set | frozenset) else items:
            self._add(item, late)
        late.come_up()

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self)) + "}"

    def __iter__(self) -> Iterator[Value]:
        return (read(self._items[plain]) for plain in unchanged(self._items, _changed))

    def _either(self, other: Value, mine: Iterable[Value]) -> list[Value]:
        """Return the elements in exactly one of the two sets, in an order that does not depend on hash seeds."""
        theirs = _members(other)
        return [item for item in mine if item not in theirs] + [
            item for item in theirs if item not in self._items
        ]

    def _made(self, items: Iterable[Value]) -> Set:
        made = Set()
        for item in items:
            known = item in self._items or not isinstance(item, tuple)
            made._items[item] = self._items.get(item, item) if known else inside(item)
        return made

    def _become(self, items: Iterable[Value]) -> Set:
        self._items = self._made(items)._items
        return self

    def __ior__(self, other: Value) -> Set:
        return self._become([*self._items, *_members(other)])

    def __iand__(self, other: Value) -> Set:
        theirs = _members(other)
        if isinstance(other, set | frozenset):
            self._hashed_by_python()
        return self._become([item for item in self._items if item in theirs])

    def __isub__(self, other: Value) -> Set:
        theirs = _members(other)
        return self._become([item for item in self._items if item not in theirs])

    def __ixor__(self, other: Value) -> Set:
        return self._become(self._either(other, self._items))

    def add(self, *items: Value) -> None:
        """Add a member."""
        late = Damage()
        self._add(_only(items, "add() takes exactly one argument"), late)
        late.come_up()

    def update(self, *others: Value) -> Set:
        """Add the members of another collection, and return this set."""
        self._add_all(_only(others, f"Set.update() takes exactly one argument ({len(others)} given)"))
        return self

    def remove(self, item: Value) -> None:
        """Remove a member; raises KeyError if it is missing.

        A negative integer is removed, but then raises OverflowError.
        """
        _refuse_unsupported(item)
        if self._items.pop(_plain_key(item), self) is self:
            raise KeyError("Element not found")
        _looked_up(item)

    def discard(self, item: Value) -> None:
        """Remove a member if present. A negative integer is removed, but then raises OverflowError."""
        self._items.pop(_looked_up_plain(item), None)
        _looked_up(item)

    def pop(self) -> Value:
        """Remove and return the first member."""
        for item in self:
            del self._items[_plain_key(item)]
            return item
        raise KeyError("Cannot pop from empty set")

    def clear(self) -> None:
        """Remove everything."""
        self._items.clear()

    def copy(self) -> Set:
        """Return another Set with the same members."""
        return self._made(self._items)

    def union(self, *others: Value) -> Set:
        """Return a Set of the members of all sets."""
        made = self.copy()
        for other in others:
            made._add_all(other)
        return made

    def intersection(self, *others: Value) -> Set:
        """Return a Set of the common members, in ascending order.

        Raises `NotReproduced` unless all members are small integers.
        """
        common = [self._items[plain] for plain in in_store_order(self._items)]
        for other in others:
            if not hasattr(other, "__iter__"):
                raise TypeError("argument must be a sequence or set")
            theirs = in_order(other) if isinstance(other, set | frozenset) else list(other)
            known = all(type(item) is int and item in _SMALL for item in (*common, *theirs))
            if not (known and theirs == sorted(theirs)):
                raise NotReproduced("the intersection of stored sets; use a comprehension with `in` instead")
            common = [item for item in common if item in theirs]
        return self._made(common)

    def difference(self, *others: Value) -> Set:
        """Return a Set of the members that no other set contains."""
        theirs = [_members(other) for other in others]
        return self._made(
            item for item in self._lookup_members(*others) if not any(item in other for other in theirs)
        )

    def symmetric_difference(self, other: Value) -> Set:
        """Return a Set of the elements in exactly one of the two sets."""
        try:
            mine = self._lookup_members(other)
        except TypeError:
            if any(isinstance(item, tuple) for item in other):
                raise RuntimeError("Comparison failed\n") from None
            raise
        return self._made(self._either(other, mine))


def _for_sets(operation: Callable[[Set, Value], Value]) -> Callable[[Set, Value], Value]:
    """Return a binary operator that returns NotImplemented unless the other operand is a set."""
    return lambda mine, other: operation(mine, other) if _is_set(other) else NotImplemented


_OPERATORS: Final[Mapping[str, Callable[[Set, Value], Value]]] = {
    "__or__": lambda mine, other: mine.union(other),
    "__and__": lambda mine, other: mine.intersection(other),
    "__sub__": lambda mine, other: mine.difference(other),
    "__xor__": lambda mine, other: mine.symmetric_difference(other),
    "__ror__": lambda mine, other: stable_set(_members(other).keys() | mine._hashed_by_python().keys()),
    "__rand__": lambda mine, other: stable_set(_members(other).keys() & mine._items.keys()),
    "__rsub__": lambda mine, other: stable_set(_members(other).keys() - mine._hashed_by_python().keys()),
    "__rxor__": lambda mine, other: stable_set(_members(other).keys() ^ mine._hashed_by_python().keys()),
}
for _name, _operation in _OPERATORS.items():
    setattr(Set, _name, _for_sets(_operation))


def _is_set(value: object) -> bool:
    return isinstance(value, Set | set | frozenset)


def _members(value: Value) -> dict[Value, None]:
    """Return a collection's items as dict keys, in an order that does not depend on hash seeds."""
    found = dict.fromkeys(map(_plain_key, value))
    return dict.fromkeys(in_order(found)) if isinstance(value, set | frozenset) else found


# dbzero's own docstrings, which `docstr` shows.
List.__doc__ = "dbzero indexed collection object"
Tuple.__doc__ = "dbzero tuple"
Dict.__doc__ = "dbzero dict collection object"
Set.__doc__ = "dbzero set collection object"
