"""Attributes of stored objects: who may read which, and what they keep of a value.

Agent code is refused what the application reads. dbzero refuses values here in other words than in its collections. A
value that is damaged on the way is there all the same, and its error comes up at the next thing that dbzero is asked
for: inside of an `__init__` that is its end, and Python's own error says so (dbzero 0.7.0, by running it).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from statek_sim.runtime.stored.containers import NOTHING, Kept, kept
from statek_sim.runtime.stored.storable_types import HOMES, EnumValue, Kind, NamedAsInC, kind_of

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

_ACCESS: ContextVar[int] = ContextVar("statek_sim_access", default=0)

FULL, RESTRICTED, IN_METHOD = 0, 1, 2
"""What may be read of stored objects: everything; what agent code may; and what their methods may for agent code."""

set_access = _ACCESS.set
reset_access = _ACCESS.reset
current_access = _ACCESS.get


def denied(name: str) -> AttributeError:
    """Return what agent code gets for an attribute that it may not read, or that there is not: dbzero's own words."""
    return AttributeError(f"Restricted memo attribute access denied: {name}")


def readable(name: str, value: T) -> T:
    """Return what a property of a stored object gives; dbzero refuses agent code a property that is None."""
    if value is None and current_access() == RESTRICTED:
        raise denied(name)
    return value


def full_name(kind: type) -> str:
    """Return the name of a stored class with its module, as errors of dbzero's say it; of STATEK's own, its there."""
    if not kind.__module__.startswith("statek_sim."):
        return f"{kind.__module__}.{kind.__qualname__}"
    # Classes whose own errors say it carry it as their name already.
    home = HOMES.get(kind.__name__)
    return kind.__name__ if home is None else f"{home}.{kind.__name__}"


@lru_cache(maxsize=64)
def _member(owner: str, name: str) -> EnumValue:
    return EnumValue(owner, name)


def member(value: E) -> E:
    """Return a member of one of STATEK's enumerations as whoever asks has it: for agent code the store's own value.

    That one is no text, and equal to none: `job.status == "DONE"` is never true there, `str(job.status) == "DONE"` is.
    """
    if current_access() == FULL:
        return value
    return cast("E", _member(type(value).__name__, value.name))  # A member for everybody but agent code.


def missing(owner: object, name: str) -> AttributeError:
    """Return the error for an attribute that a stored object lacks: dbzero tells agent code that it is denied."""
    if current_access() == FULL:
        return AttributeError(
            f"{full_name(type(owner))!r} object has no attribute {name!r}", name=name, obj=owner
        )
    return denied(name)


class StoredObject(metaclass=NamedAsInC):
    """An object of STATEK's own that dbzero keeps: an attribute that there is not is refused in the store's words."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            """Refuse an attribute that there is not."""
            raise missing(self, name)


@contextmanager
def access(level: int) -> Iterator[None]:
    """Let stored objects be read as `level` says inside the block."""
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
"""Where in dbzero a value is refused, by how its error begins."""


def attribute(value: Any, found: Kept | None = None) -> Kept:
    """Return what an attribute keeps of `value`, with the error that comes up later; refused values raise theirs.

    `found` is what the store makes of it, where that is known.
    """
    found = kept(value) if found is None else found
    if found.value is NOTHING and found.error is not None:
        raise _refused(value, found.error) from None
    return found


def is_entered(value: Any) -> bool:
    """Return whether a class has a member's name from now on although the `value` for it was refused."""
    kind: type = type(value)
    return kind_of(kind) is not Kind.REFUSED


def nothing_to_delete(name: str, *, known: bool) -> AttributeError:
    """Return dbzero's error for the deletion of a member that is none; `known` is one that others of the class have."""
    return AttributeError(_NO_MEMBER.format(269 if known else 263, name))


def ended_in(function: str) -> SystemError:
    """Return Python's error of a function that dbzero let end although an error was up."""
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
