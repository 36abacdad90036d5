"""The modules that restricted code can import (behaviour 3).

Modules have the same exports and restrictions as in STATEK 1.4.2. Iterators count their items. Functions that
use the current time, such as `datetime.now()`, `date.today()` and `strftime` without a time, read the
runtime's clock, which is always in UTC. Their dates and times are plain `datetime` or `date` objects.
"""

from __future__ import annotations

import calendar
import collections
import datetime as datetime_module
import decimal
import fractions
import functools
import itertools
import json
import math
import operator
import re
import statistics
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, tzinfo
from types import FunctionType, ModuleType
from typing import Any, Final, Never, final
from weakref import WeakSet

from statek_sim.clock import Clock
from statek_sim.errors import SandboxViolation
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.llm_repr import STORE_MEMBERS
from statek_sim.sandbox.operators import counted, counting_operators, lazy_itertools
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.sandbox.policy import EXPORTED_NAMES, check_template

# Exports are functions, types and constants.
Export = Any

_REAL: Final[Mapping[str, ModuleType]] = {
    "datetime": datetime_module, "calendar": calendar, "time": time, "re": re, "math": math, "decimal": decimal,
    "fractions": fractions, "statistics": statistics, "collections": collections, "itertools": itertools,
    "functools": functools, "operator": operator, "json": json,
}  # fmt: skip


@final
class SandboxModule:
    """A read-only module for restricted code, with only the exported names."""

    __slots__ = ("_exports", "_name")

    def __init__(self, name: str, exports: Mapping[str, Export]) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_exports", dict(exports))

    def __getattribute__(self, name: str) -> Export:
        if name == "__class__":
            return SandboxModule
        exports = object.__getattribute__(self, "_exports")
        if name in exports and not name.startswith("_"):
            return exports[name]
        own_name = object.__getattribute__(self, "_name")
        raise SandboxViolation(f"attribute '{own_name}.{name}' is not allowed")

    def __setattr__(self, name: str, value: Export) -> Never:
        raise SandboxViolation("sandbox module attributes are read-only")

    def __delattr__(self, name: str) -> Never:
        raise SandboxViolation("sandbox module attributes are read-only")

    def __repr__(self) -> str:
        return f"<sandbox module {object.__getattribute__(self, '_name')}>"


@final
class Names:
    """English names for days or months; the names in `calendar` depend on the machine's locale.

    An index returns a name, and a slice returns a list of names.
    """

    __slots__ = ("__weakref__", "_names")

    def __init__(self, *names: str) -> None:
        self._names = list(names)

    def __getitem__(self, place: Any) -> Any:
        """Return the name at an index, or the list of names in a slice."""
        return self._names[place]

    def __len__(self) -> int:
        """Return the number of names: 7 days, or 13 months with an empty name before January."""
        return len(self._names)


_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_NAMES: Final[Mapping[str, Export]] = {
    "day_name": Names(*_DAYS),
    "day_abbr": Names(*(name[:3] for name in _DAYS)),
    "month_name": Names(*_MONTHS),
    "month_abbr": Names(*(name[:3] for name in _MONTHS)),
}


def sandbox_modules(clock: Clock, budget: ExecutionBudget) -> Mapping[str, SandboxModule]:
    """Return all importable modules, keyed by name.

    The modules' functions read `clock` and count their cost against `budget`.
    """
    replaced = _replacements(clock, budget)
    modules = {}
    for module, names in EXPORTED_NAMES.items():
        exports = {name: getattr(_REAL[module], name) for name in names}
        exports.update(replaced.get(module, {}))
        modules[module] = SandboxModule(module, exports)
    return modules


def is_transient(value: object) -> bool:
    """Return whether `value` is a sandbox module or one of its exports; these are not stored after a block."""
    if id(value) in _CONSTANT_IDS:
        return True
    kind = type(value)
    if kind is SandboxModule or kind is Names:
        return True
    return (kind is FunctionType or kind is BuiltinShim or isinstance(value, type)) and value in _MADE


_CONSTANT_IDS: Final = frozenset(
    id(getattr(_REAL[module], name)) for module, names in EXPORTED_NAMES.items() for name in names
)
"""The ids of the real modules' exports, which live as long as the process."""

_MADE: Final[WeakSet[Export]] = WeakSet()
"""Replacements for exports; each is bound to a clock and a budget."""


def _replacements(clock: Clock, budget: ExecutionBudget) -> dict[str, dict[str, Export]]:
    replaced: dict[str, dict[str, Export]] = {
        "datetime": {
            "datetime": virtual_datetime(clock),
            "date": virtual_date(clock),
        },
        "calendar": dict(_NAMES),
        "time": _as_builtin("time", {"strftime": virtual_strftime(clock)}),
        "itertools": lazy_itertools(budget),
        "functools": _as_builtin("functools", {"reduce": _reduce(budget)}),
        "operator": _as_builtin("operator", _operators(budget)),
        "json": {"dumps": dumps},
    }
    for exports in replaced.values():
        _MADE.update(exports.values())
    return replaced


def _as_builtin(module: str, functions: Mapping[str, Callable[..., Any]]) -> dict[str, Export]:
    real = _REAL[module]
    return {name: BuiltinShim(function, getattr(real, name)) for name, function in functions.items()}


def _reduce(budget: ExecutionBudget) -> Callable[..., Any]:
    def reduce(*args: Any) -> Any:
        if len(args) < 2:
            return functools.reduce(*args)
        function, iterable, *initial = args
        return functools.reduce(function, counted(budget, iterable), *initial)

    return reduce


def dumps(obj: Any, *, default: Callable[[Any], Any] | None = None, **options: Any) -> str:
    """Serialize a value to JSON.

    For a stored object, raise dbzero's error, because Python's own error would read the object's class.
    """
    return json.dumps(obj, default=default or _not_json, **options)


dumps.__module__ = "json"


def _not_json(value: Any) -> Never:
    if hasattr(type(value), STORE_MEMBERS):
        raise AttributeError("Restricted memo attribute access denied: __class__")
    raise TypeError(f"Object of type {value.__class__.__name__} is not JSON serializable")


def _operators(budget: ExecutionBudget) -> dict[str, Callable[..., Any]]:
    named = {"and": "and_", "or": "or_"}
    counting = {named.get(name, name): function for name, function in counting_operators(budget).items()}
    counting["concat"] = lambda left, right: (
        counting["add"](left, right) if hasattr(left, "__len__") else operator.concat(left, right)
    )
    return {
        name: _for_two(function, getattr(operator, name))
        for name, function in counting.items()
        if name in EXPORTED_NAMES["operator"]
    }


def _for_two(counting: Callable[[Any, Any], Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return `counting` for two positional arguments; other calls go to `real`, which raises the error."""
    return lambda *args, **kwargs: real(*args, **kwargs) if kwargs or len(args) != 2 else counting(*args)


class _StandsFor(type):
    """Metaclass for a replacement class: `isinstance` and `issubclass` also accept the replaced class `_plain`."""

    _plain: type

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._plain)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls._plain)


def virtual_datetime(clock: Clock) -> Any:
    """Return a replacement for the class `datetime` that takes the current time from `clock.wall()`."""

    def now(tz: tzinfo | None = None) -> datetime:
        wall = clock.wall()
        return wall if tz is None else wall.replace(tzinfo=UTC).astimezone(tz)

    def fromtimestamp(timestamp: float, tz: tzinfo | None = None) -> datetime:
        found = datetime.fromtimestamp(timestamp, UTC)
        return found.replace(tzinfo=None) if tz is None else found.astimezone(tz)

    return _standing_for(datetime, now=now, utcnow=clock.wall, today=clock.wall, fromtimestamp=fromtimestamp)


def virtual_date(clock: Clock) -> Any:
    """Return a replacement for the class `date` that takes the current date from `clock.wall()`."""

    def today() -> date:
        return clock.wall().date()

    def fromtimestamp(timestamp: float) -> date:
        return datetime.fromtimestamp(timestamp, UTC).date()

    return _standing_for(date, today=today, fromtimestamp=fromtimestamp)


def virtual_strftime(clock: Clock) -> Callable[..., str]:
    """Return a replacement for `time.strftime` that uses `clock.wall()` if no time is passed."""

    def strftime(*args: Any) -> str:
        if len(args) == 1 and isinstance(args[0], str):
            return time.strftime(args[0], clock.wall().timetuple())
        return time.strftime(*args)

    return strftime


def _standing_for(plain: Any, **methods: Callable[..., Any]) -> Any:
    """Return a class named like `plain` that creates instances of `plain`; `methods` replace class methods."""

    def make(_: type, *args: Any, **kwargs: Any) -> Any:
        return plain(*args, **kwargs)

    replaced = {name: BuiltinShim(method, getattr(plain, name)) for name, method in methods.items()}
    body = {"__new__": make, "__module__": "datetime", "_plain": plain, **replaced}
    return _StandsFor(plain.__name__, (plain,), body)


@final
class BuiltinShim:
    """Replaces a built-in function with `function`, keeping the original's `repr` and signature.

    `inspect.signature` returns the original's signature, or raises ValueError if it has none;
    `runtime.tools.future_calls.smart_call` depends on this.
    """

    __slots__ = ("__weakref__", "__wrapped__", "_statek_function")

    def __init__(self, function: Callable[..., Any], original: Callable[..., Any]) -> None:
        self._statek_function = function
        self.__wrapped__ = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the replacement with the same arguments."""
        return self._statek_function(*args, **kwargs)

    def __repr__(self) -> str:
        return without_addresses(repr(self.__wrapped__))


def format_method(budget: ExecutionBudget, owner: Any, name: str) -> Any:
    """Return `owner.format` or `owner.format_map`; for a string, a version that checks the template.

    That version raises `SandboxViolation` for forbidden attributes in the template, counts the result's
    bytes, and removes memory addresses from it.
    """
    method = getattr(owner, name)
    if not (isinstance(owner, str) or (isinstance(owner, type) and issubclass(owner, str))):
        return method

    def formatted(*args: Any, **kwargs: Any) -> Any:
        template = owner if isinstance(owner, str) else args[0] if args else ""
        if isinstance(template, str):
            check_template(template)
        text = method(*args, **kwargs)
        budget.allocate(len(text))
        return without_addresses(text)

    return BuiltinShim(formatted, method)
