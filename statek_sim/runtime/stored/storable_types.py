"""Which values dbzero can store, and how it reads them back (observed with dbzero 0.7.0).

dbzero stores the import location of a function or class, and imports it whenever the value is read, with the
rights of the innermost frame. If a line of agent code reads such a value by subscript or in a loop, the
import is denied. If a function called in that line reads the value, the import is allowed.

The methods `index`, `count` and `remove` of dbzero's collections compare by identity. Each read of a plain
value returns a new object, so these methods only find values for which CPython keeps a single object.

A datetime's time zone becomes its offset in whole hours, rounded down: noon in India is read back half an
hour later. In a datetime with a time zone, microseconds are truncated to milliseconds. `fold` is dropped. A
time with a time zone is rejected. A decimal keeps seventeen digits, and its exponent loses its sign.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, StrEnum, auto
from functools import lru_cache
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final, Protocol, TypeVar
from weakref import WeakSet

from statek_sim.errors import SandboxViolation
from statek_sim.runtime.stored.ordering import text_hash
from statek_sim.sandbox import compile as compiling
from statek_sim.sandbox.helpers import CALLING
from statek_sim.sandbox.llm_repr import STORES_OWN, StoredCollection
from statek_sim.sandbox.operators import stands_for
from statek_sim.sandbox.ordered_set import STORE_PLACE

STORED_MARK: Final = "__stored_by_statek_sim__"
"""Marks classes whose objects are stored, such as classes with `@dbzero.memo` and dbzero enums."""

KEEPER: Final = "__keeper_by_statek_sim__"
"""Name of the class attribute that holds the `Keeper` for a class's objects."""

STORE_ID: Final = "A" * 24
"""Placeholder for an object's dbzero id.

It has the same length as an id, so that requests have the same size as in STATEK.
"""

_OWN: Final = ("statek_sim.runtime.", "statek_sim.world.")
"""Prefixes of the modules in this package that define classes which STATEK stores: jobs, agents, futures,
handlers, log items, and the built-in world's classes.
"""
HOMES: Final[Mapping[str, str]] = {
    name: f"statek.{module}"
    for module, names in {
        "agents.agent": "Agent SupervisedAgent WarmupDef",
        "agents.dialog_agent": "DialogAgent",
        "agents.message_dispatcher": "MessageDispatcher",
        "agents.researcher": "Researcher",
        "executors.chat_log_item": (
            "DifficultyChangeLogItem LLM_LogItem NotificationLogItem PostProcessedItem ReminderLogItem SubTaskLogItem "
            "ToolError UserLogItem WarmupLogItem"
        ),
        "executors.job": "Job JobDef JobDefError",
        "executors.llm_usage": "LLM_Usage",
        "locale": "StatekLocale",
        "model_pricing": "ModelPricing",
        "prompt_config": "PromptSection SystemPrompt",
        "pyenv": "Error PyEnv",
        "future": "CombinedFutureResult FutureElement FutureResult",
        "statek_push_queue": "StatekPushQueue",
        "task": "SubTaskHandler TaskError TaskFutureResult",
        "utils": "CallSpec CodeBlock",
    }.items()
    for name in names.split()
}
"""Maps each of STATEK's stored classes to its module in STATEK."""
_ABSTRACT: Final = ("FinalCheck", "PostProcessor", "RecurringReminder", "Reminder")
"""Abstract classes, which dbzero names without their module."""
_HEAP_TYPE: Final = 1 << 9
_IMMUTABLE_TYPE: Final = 1 << 8


K = TypeVar("K", bound=type)


class Keeper(Protocol):
    """Assigns a location to each object of a class, so that a process that resumes a run can find the object."""

    def made(self, kind: type) -> Any:
        """Return an object without attributes: a new object or, for a singleton class, the existing one."""

    def place(self, value: Any) -> int | None:
        """Return an object's location, or None if it has none."""

    def adopt(self, value: Any, place: int) -> None:
        """Assign the location `place` to an object."""


def stored(kind: K, /) -> K:
    """Decorate a class that has `@dbzero.memo` in STATEK or dbzero, so that its objects are stored."""
    setattr(kind, STORED_MARK, True)
    return kind


_NAME: Final[Any] = vars(type)["__name__"]


def _short_name(kind: type) -> str:
    return str(_NAME.__get__(kind)).rpartition(".")[2]


class NamedAsInC(type):
    """Metaclass for classes that Python's errors show with their module, although `__name__` is the short name."""

    __name__ = property(_short_name, _NAME.__set__)


class EnumValue(metaclass=NamedAsInC):
    """A stored enum value. As in dbzero, it equals only itself and its member, and has no ordering."""

    __slots__ = ("_name", "_owner")
    __module__ = "dbzero"

    def __init__(self, owner: str, name: str) -> None:
        self._owner = owner
        self._name = name

    def __eq__(self, other: object) -> bool:
        """Compare values, so that a value equals itself in another process and its form in tools."""
        if isinstance(other, EnumValue):
            return (self._owner, self._name) == (other._owner, other._name)
        return isinstance(other, StrEnum) and (self._owner, self._name) == (type(other).__name__, other.name)

    def __hash__(self) -> int:
        # Hashed like a member of a string enumeration.
        return hash(self._name)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<EnumValue {self._owner}.{self._name}>"


class EarlyEnumValue(EnumValue):
    """An enum value obtained while no store was open; at that time, dbzero has no name for the enum yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<EnumValue ???.{self._name}>"

    def in_the_store(self) -> EnumValue:
        """Return the value as dbzero reads it back."""
        return EnumValue(self._owner, self._name)


EarlyEnumValue.__name__ = "dbzero.EnumValueRepr"
setattr(EnumValue, STORED_MARK, True)
# As in dbzero 0.7.0, values with the same name in two enumerations have the same hash.
setattr(EnumValue, STORE_PLACE, lambda value: text_hash(str(value)))
EnumValue.__name__ = "dbzero.EnumValue"


def object_text(value: Any) -> str:
    """Return the `str` of a stored object whose class has no `__str__`: dbzero's string, not the `__repr__`."""
    kind = type(value)
    name = kind.__name__
    ours = kind.__module__.startswith("statek_sim.")
    home = HOMES.get(name, kind.__module__) if ours else kind.__module__
    # Names of some classes already include STATEK's module.
    full = name if "." in name or (ours and name in _ABSTRACT) else f"{home}.{name}"
    return f"<{full} instance uuid={STORE_ID}>"


setattr(object_text, STORES_OWN, True)


_NAMED: Final[dict[str, type]] = {}
"""The application's stored classes, keyed by name; if several classes share a name, the newest one."""
_IN_TEXT: Final = re.compile(
    r"""(?<=['"])\w+(?=['"])|(?<=non-iterable )\w+(?= object)|(?<= not )\w+\Z|(?<=str instance, )\w+(?= found)"""
    r"""|(?<= passed to )\w+(?=\.)"""
)


def named(kind: type) -> None:
    """Register an application's stored class, so that `with_full_names` can find it."""
    _NAMED[kind.__name__] = kind


def with_full_names(error: Exception) -> Exception:
    """Return `error` with registered class names replaced by their full names, as in dbzero's process."""
    if (
        isinstance(error, TypeError | AttributeError)
        and _NAMED
        and error.args
        and isinstance(error.args[0], str)
    ):
        error.args = (_IN_TEXT.sub(_full_name, error.args[0]), *error.args[1:])
    return error


def _full_name(match: re.Match[str]) -> str:
    kind = _NAMED.get(match[0])
    return match[0] if kind is None else f"{kind.__module__}.{kind.__qualname__}"


class Kind(Enum):
    """How dbzero stores a class's objects."""

    AS_IT_IS = auto()
    INT = auto()
    TEXT = auto()
    LIST = auto()
    TUPLE = auto()
    DICT = auto()
    SET = auto()
    FUNCTION = auto()
    CLASS = auto()
    DECIMAL = auto()
    DATETIME = auto()
    TIME = auto()
    REFUSED = auto()


_BY_CLASS: Final[dict[type, Kind]] = {
    int: Kind.INT, str: Kind.TEXT, list: Kind.LIST, tuple: Kind.TUPLE, dict: Kind.DICT, set: Kind.SET,
    bool: Kind.AS_IT_IS, float: Kind.AS_IT_IS, bytes: Kind.AS_IT_IS,
    type(None): Kind.AS_IT_IS, ModuleType: Kind.AS_IT_IS,
    Decimal: Kind.DECIMAL, FunctionType: Kind.FUNCTION,
}  # fmt: skip


@lru_cache(maxsize=1024)
def kind_of(found: type) -> Kind:
    """Return how dbzero stores objects of the class `found`; subclasses of Python's types are rejected."""
    known = _BY_CLASS.get(found)
    if known is not None:
        return known
    if found is type:
        return Kind.CLASS
    if issubclass(found, StoredCollection) or hasattr(found, STORED_MARK):
        return Kind.AS_IT_IS
    module = found.__module__
    if issubclass(found, datetime | date | time) and (
        module == "datetime" or module.startswith("statek_sim.sandbox.")
    ):
        if issubclass(found, datetime):
            return Kind.DATETIME
        return Kind.TIME if issubclass(found, time) else Kind.AS_IT_IS
    if issubclass(found, set) and found.__name__ == "set" and module == "builtins":
        return Kind.SET
    if any(base.__module__.startswith(_OWN) for base in found.__mro__):
        return Kind.AS_IT_IS
    return Kind.REFUSED


def type_text(found: type) -> str:
    """Return a class's name in dbzero's errors, with its module only if it is written in C."""
    written_in_python = found.__flags__ & _HEAP_TYPE and not found.__flags__ & _IMMUTABLE_TYPE
    if written_in_python or found.__module__ == "builtins":
        return found.__name__
    return f"{found.__module__}.{found.__name__}"


def refusal(value: Any) -> RuntimeError:
    """Return dbzero's error for a value that cannot be stored."""
    return RuntimeError(f"Type unsupported by dbzero: {type_text(type(stands_for(value)))}\n")


_HERE: Final = str(Path(__file__).parent)
_SANDBOX: Final = str(Path(compiling.__file__).parent)
_COVERED: Final = "statek_sim.sandbox."
"""Prefix of modules in this package that replace functions which agent code may import."""
_OWN_CALLABLES: Final = "statek_sim.runtime."
"""Prefix of modules in this package that replace STATEK's own functions."""

_CALLING: Final = "statek_sim.runtime.tools.future_calls"
_THERE: Final = "statek.executors.utils"
"""The modules, here and in STATEK, that contain the function through which agent code makes calls."""

INJECTED: Final[WeakSet[FunctionType]] = WeakSet()
"""The wrappers through which agent code calls tools. They are not marked with an attribute, because agents
that print a tool see its attributes.
"""


def imported(function: FunctionType) -> FunctionType:
    """Return the function that dbzero imports when it reads `function`; for a tool's wrapper, this is the tool."""
    if function in INJECTED:
        found: FunctionType = function.__wrapped__  # type: ignore[attr-defined]  # of functools.wraps
        return found
    return function


def loaded(value: type) -> type:
    """Return the class that dbzero finds when it imports a stored class.

    A class defined by agent code, where allowed, has the module `builtins`. dbzero looks up the builtin with
    that name, and raises RuntimeError if there is none.
    """
    if value.__module__ == _CALLING:
        # The class was created by calling `type`, which takes the module from its caller.
        raise RuntimeError(
            f"Failed to unload CALLABLE: module {_THERE!r} has no attribute {value.__qualname__!r}\n"
        )
    if value.__module__ != "builtins":
        return value
    found: Any = builtins
    try:
        for name in value.__qualname__.split("."):
            found = getattr(found, name)
    except AttributeError as missing:
        raise RuntimeError(f"Failed to unload CALLABLE: {missing}\n") from None
    kind: type = found
    return kind


def load_all(names: Mapping[str, object]) -> None:
    """Raise dbzero's error if a variable cannot be read, because STATEK reads all variables when a step begins."""
    for value in names.values():
        if isinstance(value, type):
            loaded(value)


def read(value: Any) -> Any:
    """Return a value read from a collection; raises dbzero's error if it may not be imported."""
    if isinstance(value, (FunctionType, type)):
        _import(value)
    return loaded(value) if type(value) is type else value


def read_by(frame: FrameType, value: FunctionType | type) -> None:
    """Raise dbzero's error if `frame` runs agent code that reads `value` but is not allowed to import it."""
    if frame.f_code.co_filename == compiling.FILENAME:
        _import_for(frame, value)


def _import(value: FunctionType | type) -> None:
    frame = _reader()
    if frame is not None:
        _import_for(frame, value)


def _import_for(frame: FrameType, value: FunctionType | type) -> None:
    importing = frame.f_builtins["__import__"]
    if importing is builtins.__import__:
        return
    module = value.__module__
    if module.startswith(_COVERED):
        return
    try:
        importing("statek" if module.startswith(_OWN_CALLABLES) else module)
    except SandboxViolation as refused:
        raise RuntimeError(f"Failed to unload CALLABLE: {refused}\n") from None


def _reader() -> FrameType | None:
    """Return the frame of the agent code that reads a value.

    If other code reads it, even if called by agent code, return None.
    """
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == compiling.FILENAME:
            return frame
        called = frame.f_code.co_name == CALLING
        if called or not file.startswith((_HERE, _SANDBOX)):
            return None
        frame = frame.f_back
    return None


_SMALL_INTEGERS: Final = range(-5, 257)
_LATIN_1: Final = 256


def place_of(item: Any, items: Sequence[Any]) -> int | None:
    """Return the first index at which dbzero finds `item`, or None."""
    return next((place for place, found in enumerate(items) if same(found, item)), None)


def same(found: Any, item: Any) -> bool:
    """Return whether dbzero returns the same object as `item` when reading the stored value `found`.

    This is possible for small integers, empty strings and bytes, single Latin-1 characters, single bytes, and
    stored collections and objects.
    """
    kind: type = type(item)
    match kind_of(kind):
        case Kind.INT:
            return type(found) is int and found == item and item in _SMALL_INTEGERS
        case Kind.TEXT:
            return type(found) is str and found == item and _is_shared(item)
        case Kind.AS_IT_IS if isinstance(item, bytes):
            return bool(found == item) and len(item) <= 1
        case _:
            return found is item and not isinstance(item, float | date | time | Decimal)


def _is_shared(text: str) -> bool:
    """Return whether CPython keeps a single object for a string: an empty string, or one Latin-1 character.

    Before Python 3.12, letters, digits and underscores in source code are separate objects.
    """
    return not text or (len(text) == 1 and ord(text) < _LATIN_1 and text is shared(text))


def shared(text: str) -> str:
    """Return CPython's shared object for a one-character string, if there is one, or an equal string otherwise."""
    return chr(ord(text))


_HOUR: Final = timedelta(hours=1)
_LEAST_OFFSET: Final = -23
"""The smallest UTC offset, in hours, that dbzero can read; it can store smaller offsets."""


def stored_datetime(value: datetime) -> datetime:
    """Return a datetime as dbzero reads it back; raises RuntimeError for a UTC offset below -23 hours."""
    offset = value.utcoffset()
    if offset is None:
        return value.replace(fold=0) if value.fold else value
    hours = offset // _HOUR
    if hours < _LEAST_OFFSET:
        raise RuntimeError("Failed to convert to Datetime with TZ\n")
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=timezone(hours * _HOUR), fold=0)


def stored_time(value: time) -> time:
    """Return a time as dbzero reads it back; raises RuntimeError for a time with a time zone."""
    if value.tzinfo is not None:
        raise RuntimeError("tzinfo must have a utcoffset method.")
    return value.replace(fold=0) if value.fold else value


def why_datetime_changed(value: datetime, found: datetime) -> str:
    """Describe how dbzero changed a datetime; empty if nothing visible changed."""
    changes = []
    if value.utcoffset() != found.utcoffset():
        changes.append(f"the whole hours of its UTC offset ({value.tzinfo} is read back as {found.tzinfo})")
    if value.microsecond != found.microsecond:
        changes.append("the milliseconds")
    return f"of a datetime with a time zone, dbzero keeps only {' and '.join(changes)}" if changes else ""


_DIGITS: Final = 17
_LARGEST_EXPONENT: Final = 63


def stored_decimal(value: Decimal) -> Decimal:
    """Return a finite decimal as dbzero reads it back; raises RuntimeError for a decimal outside dbzero's range."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    places = abs(exponent)
    more = min(max(0, len(digits) - _DIGITS), places)
    if len(digits) - more > _DIGITS or places > _LARGEST_EXPONENT:
        raise RuntimeError("Decimal out of range.\n")
    kept = digits[: len(digits) - more]
    return Decimal((sign if any(kept) else 0, kept, more - places))


def why_decimal_changed(value: Decimal, found: Decimal) -> str:
    """Describe how dbzero changed a decimal; empty if the values are equal."""
    if value == found:
        return ""
    _, _, exponent = value.as_tuple()
    if isinstance(exponent, int) and exponent > 0:
        return (
            f"dbzero does not store the exponent's sign: Decimal('{value}') is read back as "
            f"Decimal('{found}')"
        )
    return "dbzero stores only seventeen digits of a decimal"
