"""The values that dbzero keeps, by their class, and their form when it reads them (0.7.0, as observed).

For a function or a class the store keeps its import location, and imports it whenever it is read, with the rights of
the innermost frame. So a line of agent code that reads one, by a subscript or in a loop, is refused the import of its
module, while a function called by the line is not.

Its collections' `index`, `count` and `remove` use identity. Plain values are new objects whenever they are read, so
only those are found for which CPython has a single object.

A zone becomes its offset in whole hours, rounded down: noon in India comes back as a time half an hour later. With a
zone microseconds are cut to milliseconds. `fold` is dropped. A time with a zone is refused. A decimal keeps seventeen
digits, and its exponent loses its sign.
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
"""The attribute of classes whose objects are stored, as those of `@dbzero.memo` and dbzero's enumerations are."""

KEEPER: Final = "__keeper_by_statek_sim__"
"""The attribute of classes whose objects have a place in a store of in-memory objects."""

STORE_ID: Final = "A" * 24
"""Placeholder for dbzero's id of an object, with the same length so that requests are as long as STATEK's."""

_OWN: Final = ("statek_sim.runtime.", "statek_sim.world.")
"""The modules of STATEK's own stored classes (jobs, agents, futures, handlers, log items), and those of the built-in
world, which are stored on the real side.
"""
HOMES: Final[Mapping[str, str]] = {
    "Agent": "statek.agents.agent",
    "CallSpec": "statek.utils",
    "CodeBlock": "statek.utils",
    "DialogAgent": "statek.agents.dialog_agent",
    "Error": "statek.pyenv",
    "Job": "statek.executors.job",
    "JobDef": "statek.executors.job",
    "JobDefError": "statek.executors.job",
    "LLM_LogItem": "statek.executors.chat_log_item",
    "LLM_Usage": "statek.executors.llm_usage",
    "NotificationLogItem": "statek.executors.chat_log_item",
    "PostProcessedItem": "statek.executors.chat_log_item",
    "PyEnv": "statek.pyenv",
    "ReminderLogItem": "statek.executors.chat_log_item",
    "SubTaskHandler": "statek.task",
    "SubTaskLogItem": "statek.executors.chat_log_item",
    "SupervisedAgent": "statek.agents.agent",
    "SystemPrompt": "statek.prompt_config",
    "ToolError": "statek.executors.chat_log_item",
    "UserLogItem": "statek.executors.chat_log_item",
    "WarmupLogItem": "statek.executors.chat_log_item",
}
"""The modules of STATEK's own stored classes."""
_HEAP_TYPE: Final = 1 << 9
_IMMUTABLE_TYPE: Final = 1 << 8


K = TypeVar("K", bound=type)


class Keeper(Protocol):
    """Assigns places to objects of some classes, which are the same in a process that resumes."""

    def made(self, kind: type) -> Any:
        """Return an object without attributes: a new one, or the class's only one."""

    def place(self, value: Any) -> int | None:
        """Return the place of an object, or None if it has none."""

    def adopt(self, value: Any, place: int) -> None:
        """Give an object its place."""


def stored(kind: K, /) -> K:
    """Decorate a class whose objects are stored on the real side, where it has `@dbzero.memo`."""
    setattr(kind, STORED_MARK, True)
    return kind


_NAME: Final[Any] = vars(type)["__name__"]


def _short_name(kind: type) -> str:
    return str(_NAME.__get__(kind)).rpartition(".")[2]


class NamedAsInC(type):
    """A class that Python's own errors may name with its module, like one written in C."""

    __name__ = property(_short_name, _NAME.__set__)


class EnumValue(metaclass=NamedAsInC):
    """One value of a stored enumeration. Like dbzero's, it equals only itself and its member, and has no order."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: str, name: str) -> None:
        self._owner = owner
        self._name = name

    def __eq__(self, other: object) -> bool:
        """Compare, so that a value is equal to itself in another process, and to its form in tools."""
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
    """A value obtained while no store was open, when dbzero has no name for its enumeration yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<EnumValue ???.{self._name}>"

    def in_the_store(self) -> EnumValue:
        """Return the value as it comes back from the store."""
        return EnumValue(self._owner, self._name)


EarlyEnumValue.__name__ = "dbzero.EnumValueRepr"
setattr(EnumValue, STORED_MARK, True)
# Hashed as in dbzero 0.7.0: values of two enumerations with one name have the same hash.
setattr(EnumValue, STORE_PLACE, lambda value: text_hash(str(value)))
EnumValue.__name__ = "dbzero.EnumValue"


def object_text(value: Any) -> str:
    """Return `str` of a stored object whose class does not define it: dbzero does not use its `__repr__`."""
    kind = type(value)
    name = kind.__name__
    home = HOMES.get(name, kind.__module__) if kind.__module__.startswith("statek_sim.") else kind.__module__
    # Names of some classes already include STATEK's module.
    full = name if "." in name else f"{home}.{name}"
    return f"<{full} instance uuid={STORE_ID}>"


setattr(object_text, STORES_OWN, True)


_NAMED: Final[dict[str, type]] = {}
"""The application's stored classes by name, the newest of each."""
_IN_TEXT: Final = re.compile(
    r"""(?<=['"])\w+(?=['"])|(?<=non-iterable )\w+(?= object)|(?<= not )\w+\Z|(?<=str instance, )\w+(?= found)"""
    r"""|(?<= passed to )\w+(?=\.)"""
)


def named(kind: type) -> None:
    """Register a class of stored objects whose full name appears in Python's errors on the real side."""
    _NAMED[kind.__name__] = kind


def with_full_names(error: Exception) -> Exception:
    """Let a Python error about an object of a stored class name the class with its module, like dbzero's."""
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
    """The effect of storing objects of a class."""

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
    """Return dbzero's treatment of a class's objects. Subclasses of Python's types are refused."""
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
    """Return a class in dbzero's notation: with its module unless the class is written in C."""
    written_in_python = found.__flags__ & _HEAP_TYPE and not found.__flags__ & _IMMUTABLE_TYPE
    if written_in_python or found.__module__ == "builtins":
        return found.__name__
    return f"{found.__module__}.{found.__name__}"


def refusal(value: Any) -> RuntimeError:
    """Return the error with which dbzero refuses a value."""
    return RuntimeError(f"Type unsupported by dbzero: {type_text(type(stands_for(value)))}\n")


_HERE: Final = str(Path(__file__).parent)
_SANDBOX: Final = str(Path(compiling.__file__).parent)
_COVERED: Final = "statek_sim.sandbox."
"""The locations of module functions that agent code may import."""
_OWN_CALLABLES: Final = "statek_sim.runtime."
"""The locations of functions that are STATEK's own on the real side."""

_CALLING: Final = "statek_sim.runtime.tools.future_calls"
_THERE: Final = "statek.executors.utils"
"""The locations of calls by agent code, here and on the real side."""

INJECTED: Final[WeakSet[FunctionType]] = WeakSet()
"""Functions as agent code sees them: wrappers around a tool for its workspace, under the tool's name. The function
itself is not marked: agents see the attributes of a tool they print.
"""


def imported(function: FunctionType) -> FunctionType:
    """Return the function that the store imports for this one: for a tool not the wrapper that agent code has."""
    if function in INJECTED:
        found: FunctionType = function.__wrapped__  # type: ignore[attr-defined]  # of functools.wraps
        return found
    return function


def loaded(value: type) -> type:
    """Return the class that dbzero finds when it imports a stored one.

    A class that agent code defines, where allowed, has the module `builtins`, like all whose code names none: there
    dbzero finds another one of its name, or nothing, which is its RuntimeError.
    """
    if value.__module__ == _CALLING:
        # Created by a call of `type`, which inspects its caller.
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
    """Raise dbzero's error for an unreadable variable: STATEK reads all of them when a step begins."""
    for value in names.values():
        if isinstance(value, type):
            loaded(value)


def read(value: Any) -> Any:
    """Return a value that is read from a collection; raises dbzero's error if it cannot import it."""
    if isinstance(value, (FunctionType, type)):
        _import(value)
    return loaded(value) if type(value) is type else value


def read_by(frame: FrameType, value: FunctionType | type) -> None:
    """Raise dbzero's error if code of `frame` reads an attribute of a stored object that it cannot import."""
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
    """Return the frame of agent code that reads, or None if something called by it or no such code reads."""
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
    """Return the first index at which dbzero finds `item`, or None if it finds none."""
    return next((place for place, found in enumerate(items) if same(found, item)), None)


def same(found: Any, item: Any) -> bool:
    """Return whether dbzero gets the identical object `item` when it reads `found`.

    That is so for small integers, empty texts and bytes, single characters of Latin-1 and single bytes, and for
    collections and objects of the store.
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
    """Return whether a character in code is the shared object.

    Before Python 3.12, letters, digits and _ are not.
    """
    return not text or (len(text) == 1 and ord(text) < _LATIN_1 and text is shared(text))


def shared(text: str) -> str:
    """Return a string of one character as CPython's shared object, if there is one."""
    return chr(ord(text))


_HOUR: Final = timedelta(hours=1)
_LEAST_OFFSET: Final = -23
"""Hours; zones further west can be stored but not read."""


def stored_datetime(value: datetime) -> datetime:
    """Return a datetime as it comes back."""
    offset = value.utcoffset()
    if offset is None:
        return value.replace(fold=0) if value.fold else value
    hours = offset // _HOUR
    if hours < _LEAST_OFFSET:
        raise RuntimeError("Failed to convert to Datetime with TZ\n")
    return value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=timezone(hours * _HOUR), fold=0)


def stored_time(value: time) -> time:
    """Return a time as it comes back; one with a zone is a RuntimeError."""
    if value.tzinfo is not None:
        raise RuntimeError("tzinfo must have a utcoffset method.")
    return value.replace(fold=0) if value.fold else value


def why_datetime_changed(value: datetime, found: datetime) -> str:
    """Return dbzero's changes of a datetime; empty without visible changes."""
    changes = []
    if value.utcoffset() != found.utcoffset():
        changes.append(f"whole hours of its offset to UTC: {value.tzinfo} comes back as {found.tzinfo}")
    if value.microsecond != found.microsecond:
        changes.append("milliseconds of its microseconds")
    return f"dbzero keeps of a datetime with a zone {' and '.join(changes)}" if changes else ""


_DIGITS: Final = 17
_LARGEST_EXPONENT: Final = 63


def stored_decimal(value: Decimal) -> Decimal:
    """Return a finite decimal as it comes back; a RuntimeError for one out of dbzero's range."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    places = abs(exponent)
    more = min(max(0, len(digits) - _DIGITS), places)
    if len(digits) - more > _DIGITS or places > _LARGEST_EXPONENT:
        raise RuntimeError("Decimal out of range.\n")
    kept = digits[: len(digits) - more]
    return Decimal((sign if any(kept) else 0, kept, more - places))


def why_decimal_changed(value: Decimal, found: Decimal) -> str:
    """Return dbzero's changes of a decimal; empty if there are none."""
    if value == found:
        return ""
    _, _, exponent = value.as_tuple()
    if isinstance(exponent, int) and exponent > 0:
        return f"dbzero forgets that the exponent is positive: Decimal('{value}') comes back as Decimal('{found}')"
    return "dbzero keeps seventeen digits of a decimal"
