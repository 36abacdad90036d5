"""What an attribute of a stored object keeps of a value: dbzero refuses there in other words than in its collections.

A value that is damaged on the way is there all the same, and its error comes up at the next thing that dbzero is asked
for: inside of an `__init__` that is its end, and Python's own error says so (dbzero 0.7.0, by running it).
"""

from __future__ import annotations

from typing import Any, Final

from statek_sim.runtime.stored.containers import NOTHING, Kept, kept
from statek_sim.runtime.stored.storable_types import Kind, kind_of

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
