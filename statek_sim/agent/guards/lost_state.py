"""Whether a check remembers something from one subject to the next that no checkpoint would hold.

A closure can keep a list, count with `nonlocal`, or call an object that does: that cannot be told from what it was made
with, but it can be seen to change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final

_PLAIN: Final = (str, bytes, int, float, complex, bool, type(None))
_DEEPEST: Final = 5
_MOST: Final = 2_000
"""What a check has at hand is looked at so deep, and so many values of it; what lies beyond is not seen."""

_OURS: Final = "statek_sim.agent.guards."
"""Functions of these modules remember nothing; what they were given to call may."""


class Memory:
    """What the checks of these guards have at hand, as it was when this was made."""

    def __init__(self, checks: Mapping[str, object]) -> None:
        self._checks = {
            name: one for name, one in checks.items() if getattr(one, "stateless", False) is not True
        }
        self._before = {name: _at_hand(check) for name, check in self._checks.items()}

    def changed(self) -> list[str]:
        """Return the names of guards whose checks have something else at hand by now."""
        return [name for name, check in self._checks.items() if _at_hand(check) != self._before[name]]


def _at_hand(check: object) -> tuple[object, ...]:
    found: list[object] = []
    for told in _walked(check, 0, set()):
        found.append(told)
        if len(found) >= _MOST:
            break
    return tuple(found)


def _walked(value: Any, depth: int, seen: set[int]) -> Iterator[object]:
    """Yield what tells a value from what it may become."""
    if isinstance(value, _PLAIN):
        yield value
        return
    yield type(value)
    if depth > _DEEPEST or id(value) in seen:
        return
    seen.add(id(value))
    for inner in _inside(value):
        yield from _walked(inner, depth + 1, seen)


def _inside(value: Any) -> Iterator[object]:
    match value:
        case FunctionType():
            held = [_content(cell) for cell in value.__closure__ or ()]
            if value.__module__.startswith(_OURS):
                yield from filter(callable, held)
                return
            yield from held
            yield from (value.__defaults__ or ())
            yield from vars(value).values()
        case MethodType():
            yield value.__self__
        case partial():
            yield from (value.func, *value.args, *value.keywords.values())
        case Mapping():
            for key in value:
                yield from (key, value[key])
        case list() | tuple() | deque():
            yield from value
        case set() | frozenset():
            yield from sorted(map(repr, value))
        case type() | ModuleType():
            return
        case _:
            yield from vars(value).values() if hasattr(value, "__dict__") else ()
            for cls in type(value).__mro__:
                yield from _slots(cls, value)


def _slots(cls: type, value: object) -> Iterator[object]:
    slots = cls.__dict__.get("__slots__", ())
    for name in (slots,) if isinstance(slots, str) else slots:
        yield getattr(value, name, None)


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return None
