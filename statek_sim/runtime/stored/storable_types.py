"""Which values dbzero keeps, by their class, functions and classes among them (dbzero 0.7.0, by running it).

Of a function or a class the store keeps where it can be imported from, and imports it whenever it is read, with what
the innermost frame has for it. So a line of agent code that reads one, by a subscript or in a loop, is refused the
import of its module, while a function that the line calls is not.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Mapping
from datetime import date, datetime, time
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
"""The attribute of classes whose objects have a place in a store of objects that their process has in memory."""

STORE_ID: Final = "A" * 24
"""Stands for the id that dbzero gives an object: as long as one, so that requests are as long as STATEK's."""

_OWN: Final = ("statek_sim.runtime.", "statek_sim.world.")
"""Where STATEK's own classes are (jobs, agents, futures, handlers, log items), which are stored there, and those of the
built-in world, which are stored on the real side."""
HOMES: Final[Mapping[str, str]] = {
    "Agent": "statek.agents.agent",
    "DialogAgent": "statek.agents.dialog_agent",
    "Job": "statek.executors.job",
    "JobDef": "statek.executors.job",
    "LLM_Usage": "statek.executors.llm_usage",
    "PyEnv": "statek.pyenv",
    "SubTaskHandler": "statek.task",
    "SupervisedAgent": "statek.agents.agent",
    "SystemPrompt": "statek.prompt_config",
}
"""The modules of STATEK's own stored classes."""
_HEAP_TYPE: Final = 1 << 9
_IMMUTABLE_TYPE: Final = 1 << 8


K = TypeVar("K", bound=type)


class Keeper(Protocol):
    """Gives objects of some classes their place among others, the same in a process that goes on for another."""

    def made(self, kind: type) -> Any:
        """Return an object without attributes: a new one, or the one that its class has at most."""

    def place(self, value: Any) -> int | None:
        """Return the place of an object, None for one that has none."""

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
    """A class that Python's own errors may name with its module, as they do a class that is written in C."""

    __name__ = property(_short_name, _NAME.__set__)


class EnumValue(metaclass=NamedAsInC):
    """One value of a stored enumeration. Equal to itself and to that member, and without an order, as dbzero's."""

    __slots__ = ("_name", "_owner")

    def __init__(self, owner: str, name: str) -> None:
        self._owner = owner
        self._name = name

    def __eq__(self, other: object) -> bool:
        """Compare, so that a value is itself in another process, too, and what tools know it as."""
        if isinstance(other, EnumValue):
            return (self._owner, self._name) == (other._owner, other._name)
        return isinstance(other, StrEnum) and (self._owner, self._name) == (type(other).__name__, other.name)

    def __hash__(self) -> int:
        # As a member of a text enumeration is hashed.
        return hash(self._name)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<EnumValue {self._owner}.{self._name}>"


class EarlyEnumValue(EnumValue):
    """A value that was taken while no store was open: the same, but dbzero has no name for its enumeration yet."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<EnumValue ???.{self._name}>"

    def in_the_store(self) -> EnumValue:
        """Return the value as the store gives it back."""
        return EnumValue(self._owner, self._name)


EarlyEnumValue.__name__ = "dbzero.EnumValueRepr"
setattr(EnumValue, STORED_MARK, True)
# As dbzero 0.7.0 hashes them, so that values of two enumerations with one name have one hash.
setattr(EnumValue, STORE_PLACE, lambda value: text_hash(str(value)))
EnumValue.__name__ = "dbzero.EnumValue"


def object_text(value: Any) -> str:
    """Return what `str` says of a stored object whose class says nothing: dbzero does not ask its `__repr__`."""
    kind = type(value)
    name = kind.__name__
    # Names of some classes have STATEK's module in front already.
    full = name if "." in name else f"{HOMES.get(name, kind.__module__)}.{name}"
    return f"<{full} instance uuid={STORE_ID}>"


setattr(object_text, STORES_OWN, True)


_NAMED: Final[dict[str, type]] = {}
"""The application's stored classes by their names, the newest of each."""
_IN_TEXT: Final = re.compile(
    r"""(?<=['"])\w+(?=['"])|(?<=non-iterable )\w+(?= object)|(?<= not )\w+\Z|(?<=str instance, )\w+(?= found)"""
    r"""|(?<= passed to )\w+(?=\.)"""
)


def named(kind: type) -> None:
    """Note a class of stored objects whose full name Python's errors say on the real side."""
    _NAMED[kind.__name__] = kind


def with_full_names(error: Exception) -> Exception:
    """Let an error of Python's about an object of a stored class say the class with its module, as dbzero's do."""
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
    """What storing does with the objects of a class."""

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
    """Return what dbzero does with the objects of a class. Subclasses of Python's types are refused."""
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
    """Return a class as dbzero names it: with its module where the class is not written in Python."""
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
"""Where functions of the modules are that agent code may import."""
_OWN_CALLABLES: Final = "statek_sim.runtime."
"""Where functions are that are STATEK's own on the real side."""

_CALLING: Final = "statek_sim.runtime.tools.future_calls"
_THERE: Final = "statek.executors.utils"
"""Where calls of agent code come from, here and on the real side."""

INJECTED: Final[WeakSet[FunctionType]] = WeakSet()
"""Functions as agent code sees them: made around a tool for its workspace, under the tool's name. No mark on the
function itself: agents see the attributes of a tool they print."""


def imported(function: FunctionType) -> FunctionType:
    """Return the function that the store imports where this one was put in: of a tool not what agent code has of it."""
    if function in INJECTED:
        found: FunctionType = function.__wrapped__  # type: ignore[attr-defined]  # of functools.wraps
        return found
    return function


def loaded(value: type) -> type:
    """Return the class that dbzero finds where it imports a kept one from.

    A class that agent code defines, where it may, has the module `builtins`, as all have whose code says none: what is
    found there is another one of its name, or nothing, which is dbzero's RuntimeError.
    """
    if value.__module__ == _CALLING:
        # Made by a call of `type`, which asks who calls it.
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
    """Raise dbzero's error for a variable that cannot be read: STATEK reads all of them when a step begins."""
    for value in names.values():
        if isinstance(value, type):
            loaded(value)


def read(value: Any) -> Any:
    """Return a value that is read out of a collection; raises what dbzero raises where it cannot import it."""
    if isinstance(value, (FunctionType, type)):
        _import(value)
    return loaded(value) if type(value) is type else value


def read_by(frame: FrameType, value: FunctionType | type) -> None:
    """Raise what dbzero raises when code of `frame` reads an attribute of a stored object that it cannot import."""
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
    """Return the frame of agent code that reads, None where something that it called does, or nobody's code."""
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
