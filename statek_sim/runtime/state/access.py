"""Attributes of stored objects: which code may read which, and the stored forms of their values.

Agent code may not read some attributes that the application can read. dbzero's errors for values here differ from those
in its collections. A value that is damaged on the way is stored all the same, and its error is raised at dbzero's next
access: inside of an `__init__` this ends it with Python's own error (dbzero 0.7.0, as observed).
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
"""Access levels to stored objects: everything; what agent code may read; and what their methods may read for agent
code.
"""

set_access = _ACCESS.set
reset_access = _ACCESS.reset
current_access = _ACCESS.get


def denied(name: str) -> AttributeError:
    """Return dbzero's error for an attribute that agent code may not read, or that does not exist."""
    return AttributeError(f"Restricted memo attribute access denied: {name}")


def readable(name: str, value: T) -> T:
    """Return the value of a stored object's property; dbzero does not let agent code read a property that is None."""
    if value is None and current_access() == RESTRICTED:
        raise denied(name)
    return value


def full_name(kind: type) -> str:
    """Return the name of a stored class with its module, as in dbzero's errors; for STATEK's own, the module there."""
    if not kind.__module__.startswith("statek_sim."):
        return f"{kind.__module__}.{kind.__qualname__}"
    # Classes whose own errors contain it already have it as their name.
    home = HOMES.get(kind.__name__)
    return kind.__name__ if home is None else f"{home}.{kind.__name__}"


def member_text(value: StrEnum) -> str:
    """Return `repr` of a member of one of STATEK's enumerations, as dbzero writes it."""
    return repr(stored_member(value))


@lru_cache(maxsize=64)
def stored_member(value: StrEnum) -> EnumValue:
    """Return the store's own value for a member of one of STATEK's enumerations."""
    return EnumValue(type(value).__name__, value.name)


def member(value: E) -> E:
    """Return a member of one of STATEK's enumerations for the reader: agent code gets the store's own value.

    That value is not a str, and equal to none: `job.status == "DONE"` is never true there, `str(job.status) == "DONE"`
    is.
    """
    # Readers other than agent code get the member.
    return value if current_access() == FULL else cast("E", stored_member(value))


def missing(owner: object, name: str) -> AttributeError:
    """Return the error for a missing attribute of a stored object: for agent code dbzero's refusal."""
    if current_access() == FULL:
        return AttributeError(
            f"{full_name(type(owner))!r} object has no attribute {name!r}", name=name, obj=owner
        )
    return denied(name)


class StoredObject(metaclass=NamedAsInC):
    """An object of STATEK's own in dbzero's store: an unknown attribute raises the store's error."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Refuse an unknown attribute."""
            raise missing(self, name)


def recorded(*shown: str, **forms: Callable[[Any], object]) -> Callable[[K], K]:
    """Decorate a class whose objects STATEK stores: its texts are those of a stored dataclass with these members.

    `forms` have members that are stored in another form. Agent code is refused the `repr`, for which Python needs the
    object's class.
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
    """Refuse agent code what Python does by reading an object's class."""
    if current_access() == RESTRICTED:
        raise denied("__class__")


@contextmanager
def access(level: int) -> Iterator[None]:
    """Set the access level to stored objects inside the block."""
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
"""The place in dbzero that refuses a value, by the prefix of its error."""


def attribute(value: Any, found: Kept | None = None) -> Kept:
    """Return the stored form of an attribute's `value`, with its delayed error; refused values raise theirs.

    `found` is the stored form, if already known.
    """
    found = kept(value) if found is None else found
    if found.value is NOTHING and found.error is not None:
        raise _refused(value, found.error) from None
    return found


def is_entered(value: Any) -> bool:
    """Return whether a class gets a member although the `value` for it was refused."""
    kind: type = type(value)
    return kind_of(kind) is not Kind.REFUSED


def nothing_to_delete(name: str, *, known: bool) -> AttributeError:
    """Return dbzero's error for deleting an unknown member; `known` is one that other objects of the class have."""
    return AttributeError(_NO_MEMBER.format(269 if known else 263, name))


def ended_in(function: str) -> SystemError:
    """Return Python's error for a function that dbzero let end with an error pending."""
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
