"""Attributes of stored objects: which code may read them, and how their values are stored.

Some attributes can be read by the application but not by agent code. dbzero's errors for attribute values
differ from its errors for collection items. A damaged value is stored, and its error is raised on the next
access to dbzero. Inside an `__init__`, Python raises a SystemError instead (observed with dbzero 0.7.0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from statek_sim.runtime.stored.containers import NOTHING, Kept, kept
from statek_sim.runtime.stored.storable_types import (
    HOMES,
    EnumValue,
    Kind,
    NamedAsInC,
    kind_of,
    object_text,
)

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)
K = TypeVar("K", bound=type)

_ACCESS: ContextVar[int] = ContextVar("statek_sim_access", default=0)

FULL, RESTRICTED, IN_METHOD = 0, 1, 2
"""Access levels for stored objects' attributes: all attributes; attributes that agent code may read;
attributes that the objects' methods may read when agent code calls them.
"""

set_access = _ACCESS.set
reset_access = _ACCESS.reset
current_access = _ACCESS.get


def denied(name: str) -> AttributeError:
    """Return dbzero's error for agent code that reads a forbidden or missing attribute."""
    return AttributeError(f"Restricted memo attribute access denied: {name}")


def readable(name: str, value: T) -> T:
    """Return a property's value; raises dbzero's error if agent code reads a property that is None."""
    if value is None and current_access() == RESTRICTED:
        raise denied(name)
    return value


def full_name(kind: type) -> str:
    """Return a stored class's name with its module, as in dbzero's errors. STATEK's classes have STATEK's modules."""
    if not kind.__module__.startswith("statek_sim."):
        return f"{kind.__module__}.{kind.__qualname__}"
    # Some STATEK classes already have the full name as `__name__`.
    home = HOMES.get(kind.__name__)
    return kind.__name__ if home is None else f"{home}.{kind.__name__}"


def member_text(value: StrEnum) -> str:
    """Return the `repr` of a STATEK enum member, as written by dbzero."""
    return repr(stored_member(value))


@lru_cache(maxsize=64)
def stored_member(value: StrEnum) -> EnumValue:
    """Return the store's own value for a STATEK enum member."""
    return EnumValue(type(value).__name__, value.name)


def member(value: E) -> E:
    """Return a STATEK enum member.

    For agent code, return dbzero's value for the stored member. dbzero's value is not a str and equals no
    str. In agent code, `job.status == "DONE"` is always False, but `str(job.status) == "DONE"` can be True.
    """
    # All other code gets the member.
    return value if current_access() == FULL else cast("E", stored_member(value))


def missing(owner: object, name: str) -> AttributeError:
    """Return the error for a missing attribute of a stored object: dbzero's for agent code, otherwise Python's."""
    if current_access() == FULL:
        return AttributeError(
            f"{full_name(type(owner))!r} object has no attribute {name!r}", name=name, obj=owner
        )
    return denied(name)


class StoredObject(metaclass=NamedAsInC):
    """Base class of STATEK's stored classes; reading a missing attribute raises the error from `missing`."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Raise AttributeError for a missing attribute."""
            raise missing(self, name)


def recorded(*shown: str, **forms: Callable[[Any], object]) -> Callable[[K], K]:
    """Decorate a class whose objects STATEK stores: its `str` and `repr` are those of a stored dataclass.

    `shown` are the members to display; `forms` maps other members to functions that return their stored
    forms. Agent code may not use the `repr`, because it reads the object's class.
    """
    read = {name: forms.get(name, attrgetter(name)) for name in (*shown, *forms)}

    def text(self: object) -> str:
        require_class()
        members = ", ".join(f"{name}={get(self)!r}" for name, get in read.items())
        return f"{type(self).__qualname__}({members})"

    def decorate(kind: K) -> K:
        given: Any = kind  # its methods are replaced
        given.__repr__, given.__str__ = text, object_text
        return kind

    return decorate


def require_class() -> None:
    """If agent code is running, raise dbzero's error for a Python operation that reads the object's class."""
    if current_access() == RESTRICTED:
        raise denied("__class__")


@contextmanager
def access(level: int) -> Iterator[None]:
    """Set the access level for stored objects inside the block."""
    token = _ACCESS.set(level)
    try:
        yield
    finally:
        _ACCESS.reset(token)


_THROWN: Final = (
    "Exception N3db014InputExceptionE thrown in function {} at /project/src/dbzero/bindings/python/{}: {}: \n"
)
_NO_MEMBER: Final = (
    "Exception N3db014InputExceptionE thrown in function remove at "
    "/project/src/dbzero/object_model/object/Object.cpp, line {}: Attribute not found: {}\n: \n"
)
_THROWN_IN: Final = {
    "Type unsupported": ("getTypeId", "PyTypeManager.cpp, line 203"),
    "Lambda functions": ("getFullyQualifiedName", "PyToolkit.cpp, line 372"),
    "Decorated or nested": ("getFullyQualifiedName", "PyToolkit.cpp, line 377"),
    "Decimal out of range": ("pyDecimalToUint64", "types/PyDecimal.cpp, line 107"),
}
"""The dbzero function and source location that reject a value, keyed by the prefix of the error message."""


def attribute(value: Any, found: Kept | None = None) -> Kept:
    """Return the stored form of an attribute's `value`, with the deferred error for a damaged value.

    Raises dbzero's error for a rejected value. `found` is the result of `kept(value)`, if already known.
    """
    found = kept(value) if found is None else found
    if found.value is NOTHING and found.error is not None:
        raise _refused(value, found.error) from None
    return found


def is_entered(value: Any) -> bool:
    """Return whether dbzero records a class member even though it rejected the member's `value`."""
    kind: type = type(value)
    return kind_of(kind) is not Kind.REFUSED


def nothing_to_delete(name: str, *, known: bool) -> AttributeError:
    """Return dbzero's error for deleting a missing member; `known` is whether other objects of the class have it."""
    return AttributeError(_NO_MEMBER.format(269 if known else 263, name))


def ended_in(function: str) -> SystemError:
    """Return Python's SystemError for a function that returned while a dbzero error was set."""
    return SystemError(f"<function {function} at 0x...> returned a result with an exception set")


def _refused(value: Any, error: Exception) -> Exception:
    text = str(error)
    if "function attributes" in text:
        return TypeError("bad argument type for built-in operation")
    kind: type = type(value)
    if kind_of(kind) is Kind.REFUSED:
        return AttributeError("Unsupported attribute type")
    for beginning, place in _THROWN_IN.items():
        if text.startswith(beginning):
            return AttributeError(_THROWN.format(*place, text))
    return AttributeError(text)
