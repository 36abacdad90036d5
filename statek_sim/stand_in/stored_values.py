"""What a stored object can hold, and the collections that dbzero makes of Python's (dbzero 0.7, by running it).

A list, tuple, dict or set that is assigned is copied; later changes of the original do not reach the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from types import FunctionType
from typing import Any, Final

from statek_sim.runtime.agents import Agent
from statek_sim.runtime.chat_style import ChatStyle
from statek_sim.runtime.error_handlers import ErrorHandler
from statek_sim.runtime.futures import FutureResult
from statek_sim.runtime.job import Job
from statek_sim.runtime.job_def import JobDef
from statek_sim.runtime.status import JobStatus
from statek_sim.runtime.subtasks import SubTaskHandler, SubTaskState, TaskError

_PLAIN: Final = (bool, float, str, bytes, Decimal, datetime, date, time)
_STATEKS_OWN: Final = (
    Agent,
    ChatStyle,
    ErrorHandler,
    FutureResult,
    Job,
    JobDef,
    JobStatus,
    SubTaskHandler,
    SubTaskState,
    TaskError,
)
"""Objects of STATEK, which are stored there."""
STORED_MARK: Final = "__stored_by_statek_sim__"
"""The attribute of classes whose objects are stored."""


class List(list[Any]):
    """A stored list: what is put in must be storable. It lacks what dbzero's lacks."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(inside(item) for item in items)

    def append(self, item: Any, /) -> None:
        """Add at the end."""
        super().append(inside(item))

    def extend(self, items: Iterable[Any], /) -> None:
        """Add several."""
        super().extend(inside(item) for item in items)

    def __setitem__(self, key: Any, item: Any) -> None:
        super().__setitem__(key, List(item) if isinstance(key, slice) else inside(item))

    def __getattribute__(self, name: str) -> Any:
        if name in ("insert", "sort", "reverse"):
            raise AttributeError(f"'List' object has no attribute {name!r}: dbzero's lists lack it")
        return super().__getattribute__(name)


class Tuple(tuple[Any, ...]):
    """A stored tuple."""

    __slots__ = ()

    def __new__(cls, items: Iterable[Any] = ()) -> Tuple:
        """Return a copy whose members are stored."""
        return super().__new__(cls, (inside(item) for item in items))

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'Tuple'")


class Dict(dict[Any, Any]):
    """A stored mapping."""

    def __init__(self, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (), /, **more: Any) -> None:
        super().__init__()
        self.update(items, **more)

    def __setitem__(self, key: Any, item: Any) -> None:
        super().__setitem__(key, inside(item))

    def update(self, items: Any = (), /, **more: Any) -> None:
        """Take over several items."""
        for key, item in dict(items, **more).items():
            self[key] = item

    def setdefault(self, key: Any, default: Any = None, /) -> Any:
        """Return the item, which is `default` when there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def __getattribute__(self, name: str) -> Any:
        if name == "popitem":
            raise AttributeError("'Dict' object has no attribute 'popitem': dbzero's mappings lack it")
        return super().__getattribute__(name)


class Set(set[Any]):
    """A stored set."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        super().__init__(inside(item) for item in items)

    def add(self, item: Any, /) -> None:
        """Add a member."""
        super().add(inside(item))

    def update(self, *others: Iterable[Any]) -> None:
        """Add several members."""
        super().update(*([inside(item) for item in other] for other in others))


_COLLECTIONS: Final[Mapping[type, Callable[[Any], Any]]] = {list: List, tuple: Tuple, dict: Dict, set: Set}


def kept(value: Any, owner: str, name: str) -> Any:
    """Return `value` as attribute `name` of a stored `owner` keeps it; what it cannot keep is an AttributeError."""
    found = _kept(value)
    if found is _REFUSED:
        raise AttributeError(
            f"Unsupported attribute type: {owner}.{name} cannot be {type(value).__name__} {value!r}; dbzero stores "
            "numbers, texts, bytes, dates, times, functions of modules, its own enums, @memo objects, and collections "
            "of these"
        )
    return found


def inside(value: Any) -> Any:
    """Return `value` as a stored collection keeps it; what dbzero cannot store is a RuntimeError."""
    found = _kept(value)
    if found is _REFUSED:
        raise RuntimeError(f"Type unsupported by dbzero: {type(value).__name__}")
    return found


_REFUSED: Final = object()


def _kept(value: Any) -> Any:
    kind = type(value)
    if kind in (List, Tuple, Dict, Set):
        return value
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](value)
    if kind is int:
        if not -(2**63) <= value < 2**63:
            raise OverflowError("int too big to convert")
        return value
    if value is None or hasattr(kind, STORED_MARK) or isinstance(value, (*_STATEKS_OWN, type)):
        return value
    if isinstance(value, _PLAIN) and not isinstance(value, Enum):
        return value
    if isinstance(value, FunctionType) and "<" not in value.__qualname__:
        return value
    return _REFUSED
