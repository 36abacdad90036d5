"""Objects of the world as agent code may write to them: what it writes stays with the object, as dbzero has it.

Members that agent code sets hide properties and methods of their names, and can be deleted; the application's own
code, the queue's included, sees what the object is. Values go through the store's rules (dbzero 0.7.0, by running it).
"""

from __future__ import annotations

import sys
from types import FunctionType, MethodType
from typing import Any, ClassVar

from statek_sim.runtime.state.access import FULL, current_access, denied
from statek_sim.runtime.stored.attributes import attribute, nothing_to_delete
from statek_sim.runtime.stored.storable_types import read_by
from statek_sim.sandbox.restricted_method import RestrictedMethod


class StoredObject:
    """An object of a stored class. Attributes that there are not are refused."""

    __slots__ = ()
    """Subclasses have a slot `_written`."""
    _written: dict[str, tuple[Any, ...]]
    """By name, what agent code wrote, alone in a tuple; an empty one is a member that it deleted."""
    STORED: ClassVar[frozenset[str]] = frozenset()
    """The members that the store has on the real side: the others are properties there."""

    def __init__(self) -> None:
        object.__setattr__(self, "_written", {})

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute, for agent code what it wrote there."""
        if current_access() != FULL and not name.startswith("_"):
            written: dict[str, tuple[Any, ...]] = object.__getattribute__(self, "_written")
            if name in written:
                if not written[name]:
                    raise denied(name)
                (value,) = written[name]
                if isinstance(value, FunctionType):
                    read_by(sys._getframe(1), value)
                return value
            found = object.__getattribute__(self, name)
            return RestrictedMethod(found) if type(found) is MethodType else found
        return object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        """Refuse an attribute that there is not."""
        raise denied(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, for agent code beside what the object is."""
        if current_access() == FULL:
            object.__setattr__(self, name, value)
            return
        found = attribute(value)
        self._written[name] = (found.value,)
        if found.error is not None:
            raise found.error

    def __delattr__(self, name: str) -> None:
        """Delete what agent code wrote, or a member that the store has; anything else is dbzero's error."""
        if name in self.STORED:
            self._written[name] = ()
        elif name in self._written:
            del self._written[name]
        else:
            raise nothing_to_delete(name, known=False)
