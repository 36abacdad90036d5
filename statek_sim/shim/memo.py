"""`@dbzero.memo` and `dbzero.enum`: classes and enums whose objects are in the shim's store."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from functools import wraps
from types import FrameType, FunctionType
from typing import Any, Final, TypeVar, overload

from statek_sim.runtime.agents.agent import JobDef
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.jobs.subtask import SubTaskHandler
from statek_sim.runtime.state.access import (
    FULL,
    IN_METHOD,
    RESTRICTED,
    access,
    attribute,
    current_access,
    denied,
    ended_in,
    full_name,
    is_entered,
    nothing_to_delete,
)
from statek_sim.runtime.state.chat_log import CONSOLE_ITEMS, UserLogItem
from statek_sim.runtime.stored.containers import Kept
from statek_sim.runtime.stored.ordering import OBJECTS
from statek_sim.runtime.stored.storable_types import (
    KEEPER,
    EarlyEnumValue,
    EnumValue,
    NamedAsInC,
    named,
    object_text,
    read_by,
)
from statek_sim.runtime.stored.storable_types import STORED_MARK as STORED_MARK
from statek_sim.sandbox.llm_repr import STORE_MEMBERS
from statek_sim.sandbox.ordered_set import STORE_PLACE
from statek_sim.sandbox.policy import RestrictedMethod
from statek_sim.shim.covered_names import OF_STATEK, NotCovered
from statek_sim.shim.store import current_store, open_store

T = TypeVar("T")

_TRANSIENT: Final = "_X__"
"""Prefix of attributes that dbzero does not store."""
_IN_THE_MAKING: Final[list[Any]] = []
"""The objects whose `__init__` is running, innermost last."""
_MADE: Final = "__memo_by_statek_sim__"
"""Attribute set on `memo` classes: whether a query for the class finds its objects."""
_BEGUN_WITH: Final = "__init_vars_by_statek_sim__"
"""Attribute set on `memo` classes: the names of the members that `__init__` assigns."""
_OPTIONS: Final = ("prefix", "singleton", "id", "no_default_tags", "access_control")
_CLASSES: Final[dict[str, type]] = {}
"""The application's stored classes, keyed by module and name; if a name is reused, the newest class."""
_ENUMS: Final[dict[str, StoredEnum]] = {}
"""The application's stored enums, keyed by module and name; if a name is reused, the newest enum."""


class InMemory:
    """The keeper for objects in the open store; a `singleton` class has at most one object."""

    def __init__(self, singleton: type | None = None) -> None:
        self._singleton = singleton

    def made(self, kind: type) -> Any:
        """Return an object without attributes; for a singleton class, clear and return the existing object."""
        store = current_store()
        if kind is not self._singleton or kind not in store.singletons:
            return object.__new__(kind)
        found = store.singletons[kind]
        object.__getattribute__(found, "__dict__").clear()
        return found

    def place(self, value: Any) -> int | None:
        """Return an object's number in the open store, or None."""
        return current_store().number_of(value)

    def adopt(self, value: Any, place: int) -> None:
        """Assign the number `place` to an object."""
        current_store().adopt(value, place)


def stored_names() -> Iterator[tuple[str, Any]]:
    """Yield `(name, object)` for the application's stored classes, enums and enum values.

    The names are the same in every process.
    """
    for name, kind in _CLASSES.items():
        yield f"memo:{name}", kind
    for name, listed in _ENUMS.items():
        yield f"enum:{name}", listed
        yield from ((f"enum:{name}.{value}", value) for value in listed.values())


@overload
def memo(kind: type[T], /) -> type[T]: ...
@overload
def memo(kind: None = None, /, **options: Any) -> Callable[[type[T]], type[T]]: ...
def memo(kind: type[T] | None = None, /, **options: Any) -> type[T] | Callable[[type[T]], type[T]]:
    """Decorate a class whose objects are stored. Only the options `singleton` and `no_default_tags` have an effect.

    Raises `NotCovered` for unknown options.
    """
    for name in options:
        if name not in _OPTIONS:
            raise NotCovered(f"dbzero.memo({name}=...)")
    if kind is not None:
        return _stored(kind, singleton=False, tagged=True)
    singleton, tagged = bool(options.get("singleton")), not options.get("no_default_tags")
    return lambda given: _stored(given, singleton=singleton, tagged=tagged)


def _stored(given: type[T], *, singleton: bool, tagged: bool) -> type[T]:
    kind: Any = given  # its methods are replaced
    made = any(STORED_MARK in vars(base) for base in kind.__mro__)
    setattr(kind, _BEGUN_WITH, getattr(kind, _BEGUN_WITH, frozenset()) | _named_at_the_beginning(kind))
    # dbzero ignores a class's own `__hash__`, also None, which `dataclass` assigns.
    kind.__hash__ = object.__hash__
    create, begin = kind.__new__, kind.__init__

    @wraps(begin)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        if not (singleton and current_store().singletons.get(kind) is self):
            if type(self) is kind and is_dataclass(kind) and _is_frozen(kind):
                raise TypeError(f"can't apply this __setattr__ to {full_name(kind)} object")
            _IN_THE_MAKING.append(self)
            try:
                begin(self, *args, **kwargs)
            finally:
                _IN_THE_MAKING.pop()
            if singleton and type(self) is kind:
                current_store().singletons[kind] = self

    def make(cls: type, *args: Any, **kwargs: Any) -> Any:
        store = current_store()
        if STORED_MARK not in vars(cls):
            # dbzero ends the process here.
            raise TypeError(f"{cls.__name__} derives from a stored class: decorate it with @dbzero.memo too")
        if singleton and cls is kind and kind in store.singletons:
            return store.singletons[kind]
        self: Any = object.__new__(cls) if create is object.__new__ else create(cls, *args, **kwargs)
        if store.number_of(self) is None:
            store.add(self)
        return self

    kind.__new__ = make
    kind.__init__ = initialise
    setattr(kind, STORED_MARK, True)
    setattr(kind, _MADE, tagged)
    setattr(kind, KEEPER, InMemory(singleton=kind if singleton else None))
    _CLASSES[f"{kind.__module__}:{kind.__qualname__}"] = kind
    named(kind)
    if kind.__eq__ is object.__eq__:
        kind.__eq__ = _is_it
    if kind.__str__ is object.__str__:
        kind.__str__ = object_text
    if not made:
        setattr(kind, STORE_PLACE, _place)
        setattr(kind, STORE_MEMBERS, _members)
    for name, ours in _ACCESSORS.items():
        if not made or name in vars(kind):
            _let_be(kind, name, ours)
    return given


def _let_be(kind: Any, name: str, ours: Callable[..., Any]) -> None:
    """Replace a class's attribute access, as dbzero does, unless it is inherited from this package."""
    home = next((base for base in kind.__mro__ if name in vars(base)), object)
    own = home is not object and home.__module__.startswith("statek_sim.")
    if not own and (name != "__getattr__" or home is not object):
        setattr(kind, name, ours)


def _is_frozen(kind: Any) -> bool:
    """Return whether a dataclass is frozen and has fields, so that dbzero cannot create its objects."""
    return bool(kind.__dataclass_params__.frozen and kind.__dataclass_fields__)


def _named_at_the_beginning(kind: Any) -> frozenset[str]:
    """Return the names of members assigned in `__init__`, as dbzero finds them on Python 3.11.

    Agent code reads None for such a member if it was never assigned.
    """
    begin = inspect.unwrap(kind.__init__)
    if not isinstance(begin, FunctionType):
        return frozenset()
    myself, found, loaded = begin.__code__.co_varnames[:1], set(), None
    for step in dis.get_instructions(begin):
        if step.opname == "STORE_ATTR" and loaded is not None and (loaded,) == myself:
            found.add(step.argval)
        # Newer Python versions load two variables with one instruction.
        names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        loaded = names[-1] if "LOAD_FAST" in step.opname else None
    return frozenset(found)


def _is_it(self: Any, other: object) -> bool:
    """Return whether two objects are identical; used as `__eq__` for stored classes that do not define it."""
    return self is other


def _place(self: Any) -> int | None:
    """Return an object's position in store order, or None; positions increase with every new object."""
    store = open_store()
    number = None if store is None else store.number_of(self)
    return None if number is None else OBJECTS + number


def _members(self: Any, shows: Callable[[str], bool]) -> dict[str, Any]:
    """Return an object's displayed members: all members that any object of the class has ever had."""
    names = current_store().members_of(type(self)).in_shown_order()
    with access(FULL):
        return {name: getattr(self, name) for name in names if shows(name)}


def _set(self: Any, name: str, value: Any) -> None:
    _check_open(self)
    if name.startswith(_TRANSIENT):
        object.__setattr__(self, name, value)
        return
    members = current_store().members_of(type(self))
    try:
        found = kept(value, type(self).__name__, name)
    except (AttributeError, TypeError):
        if is_entered(value):
            members.names[name] = None
        raise
    # Stored members take precedence over properties and methods of the same name.
    object.__getattribute__(self, "__dict__")[name] = found.value
    members.note(name, found.value)
    if found.error is not None:
        in_the_making = any(made is self for made in _IN_THE_MAKING)
        raise ended_in(f"{type(self).__qualname__}.__init__") if in_the_making else found.error


def _delete(self: Any, name: str) -> None:
    _check_open(self)
    store, held = current_store(), object.__getattribute__(self, "__dict__")
    if name in held:
        del held[name]
        store.deleted.add((store.number_of(self), name))
    elif (store.number_of(self), name) not in store.deleted:
        raise nothing_to_delete(name, known=name in store.members_of(type(self)).names)


def read_attribute(self: Any, name: str) -> Any:
    """Return a stored object's attribute; raises dbzero's AttributeError if the calling code may not read it."""
    if name.startswith("__"):
        return _special(self, name)
    _check_open(self)
    level = current_access()
    held = object.__getattribute__(self, "__dict__")
    if name in held:
        value = held[name]
        if level == RESTRICTED and isinstance(value, FunctionType | type):
            read_by(sys._getframe(1), value)
        return value
    if level == FULL:
        return _got_by_application(self, name)
    return _got_by_agents(self, name, level)


def _special(self: Any, name: str) -> Any:
    if name == "__dict__":
        return _vars(self)
    if name == "__class__" and current_access() != FULL and not _reads_for_us():
        # Therefore agent code cannot compare two objects of a dataclass, whose `__eq__` reads `__class__`.
        raise denied(name)
    return _got_by_application(self, name)


def _reads_for_us() -> bool:
    """Return whether this package is reading the attribute, directly or through `isinstance` with an abstract class."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and frame.f_globals.get("__name__") == "abc":
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__", "")).startswith("statek_sim.")


def _got_by_application(self: Any, name: str) -> Any:
    try:
        return object.__getattribute__(self, name)
    except AttributeError:
        if inspect.getattr_static(type(self), name, None) is not None:
            raise
        text = f"{full_name(type(self))!r} object has no attribute {name!r}"
        raise AttributeError(text, name=name, obj=self) from None


def _vars(self: Any) -> dict[str, Any]:
    """Return a copy of the stored members in the order of dbzero's `vars`."""
    store = open_store()
    members: dict[str, Any] = object.__getattribute__(self, "__dict__")
    return members if store is None else store.members_of(type(self)).in_vars_order(members)


def _got_by_agents(self: Any, name: str, level: int) -> Any:
    """Return a non-member attribute for agent code.

    This is a public method, or a public property that has a value. The object's methods may also call private
    methods. Raises dbzero's AttributeError for all others: static and class methods, class attributes, and
    properties that are None (dbzero 0.7, restricted).
    """
    found = inspect.getattr_static(type(self), name, None)
    public = not name.startswith("_")
    if isinstance(found, FunctionType) and (public or level == IN_METHOD):
        return _in_method(object.__getattribute__(self, name))
    if isinstance(found, property) and public:
        with access(IN_METHOD):
            value = object.__getattribute__(self, name)
        if value is not None:
            return value
    store = current_store()
    if (
        found is None
        and name in getattr(type(self), _BEGUN_WITH)
        and (store.number_of(self), name) not in store.deleted
    ):
        return None
    raise denied(name)


def _in_method(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with access(IN_METHOD):
            return method(*args, **kwargs)

    return RestrictedMethod(call)


_ACCESSORS: Final[dict[str, Callable[..., Any]]] = {
    "__setattr__": _set, "__delattr__": _delete, "__getattribute__": read_attribute, "__getattr__": read_attribute,
}  # fmt: skip


def _check_open(self: Any) -> None:
    store = open_store()
    if store is None or store.number_of(self) is None:
        raise RuntimeError("Object is no longer accessible")


def is_memo(value: Any) -> bool:
    """Return whether `value` is a stored object or a class of stored objects."""
    kind = value if isinstance(value, type) else type(value)
    return _MADE in vars(kind) or issubclass(kind, (Job, JobDef, SubTaskHandler, UserLogItem, *CONSOLE_ITEMS))


def has_class_tag(value: Any) -> bool:
    """Return whether a query for an object's class finds the object; False for `@memo(no_default_tags=True)`."""
    return bool(vars(type(value)).get(_MADE, True))


def number_of(stored: Any) -> int:
    """Return a stored object's number in the open store.

    Raises TypeError for a value that is not a stored object, and dbzero's RuntimeError for an object from
    another store.
    """
    if not is_memo(stored) or isinstance(stored, type):
        raise TypeError(f"{stored!r} is not a stored object")
    number = current_store().number_of(stored)
    if number is None and isinstance(stored, Job):
        return current_store().add(stored)
    if number is None and STORED_MARK not in vars(type(stored)):
        raise NotCovered(f"tags and queries of {type(stored).__name__}")
    if number is None:
        raise RuntimeError("Object is no longer accessible")
    return number


class StoredEnum(metaclass=NamedAsInC):
    """A stored enum: its values are attributes, and `values()` lists them."""

    names_its_members = True
    """A tool parameter of this type also accepts the name of a value."""
    __module__ = "dbzero"
    __slots__ = ("_early", "_name", "_strays", "_values")

    def __init__(self, name: str, values: Sequence[str]) -> None:
        self._name = name
        self._values = {value: EnumValue(name, value) for value in values}
        self._early = {value: EarlyEnumValue(name, value) for value in values}
        self._strays: dict[str, EnumValue] = {}

    def __repr__(self) -> str:
        return "<dbzero.Enum object at 0x...>"

    def __getattr__(self, name: str) -> EnumValue:
        try:
            self._use()
            return (self._values if open_store() is not None else self._early)[name]
        except KeyError:
            raise AttributeError(f"'dbzero.Enum' object has no attribute {name!r}") from None

    def __getitem__(self, name: str | int) -> EnumValue:
        if isinstance(name, int):
            return self.values()[name]
        # dbzero truncates the name at a NUL, and accepts an empty name.
        text = name.partition("\0")[0]
        self._use()
        if text in self._values:
            return self._values[text]
        if text and not _known(text):
            # dbzero's own message, including its line break.
            raise RuntimeError(f"Enum value not found: {text}\n")
        return self._strays.setdefault(text, EnumValue(self._name, text))

    def _use(self) -> None:
        store = open_store()
        if store is not None:
            store.texts.update((self._name, *self._values))

    def __iter__(self) -> Iterator[EnumValue]:
        raise TypeError("'dbzero.Enum' object is not iterable")

    def __len__(self) -> int:
        return len(self._values)

    def has(self, values: Sequence[str]) -> bool:
        """Return whether these are its values, in this order."""
        return list(self._values) == list(values)

    def values(self) -> tuple[EnumValue, ...]:
        """Return the values in order."""
        return tuple(self._values.values())


StoredEnum.__name__, StoredEnum.__qualname__ = "dbzero.Enum", "Enum"


def _known(text: str) -> bool:
    store = open_store()
    return text in OF_STATEK or (store is not None and store.knows(text))


def is_enum(value: Any) -> bool:
    """Return whether `value` is a stored enum."""
    return isinstance(value, StoredEnum)


def is_enum_value(value: Any) -> bool:
    """Return whether `value` is a value of a stored enum."""
    return isinstance(value, EnumValue)


def enum(name: Any = None, values: Sequence[str] | None = None, type_id: str | None = None) -> Any:
    """Return a stored enum: `enum("Status", ["NEW", "DONE"])`, or `@enum(values=[...])` on a class.

    `type_id` has no effect, because a test has no files. Enums with the same name are the same enum, even in
    different modules; raises RuntimeError if their values differ.
    """
    if isinstance(name, str):
        known = _BY_NAME.setdefault(name, StoredEnum(name, values or ()))
        if not known.has(values or ()):
            raise RuntimeError(f"Enum type already defined with different values: {name} in module ")
        return _noted(known, name, sys._getframe(1).f_globals.get("__name__", ""))
    if name is None and values is not None:
        return lambda kind: _noted(StoredEnum(kind.__name__, values), kind.__qualname__, kind.__module__)
    raise NotCovered("dbzero.enum(class)")


_BY_NAME: Final[dict[str, StoredEnum]] = {}


def _noted(made: StoredEnum, name: str, module: str) -> StoredEnum:
    _ENUMS[f"{module}:{name}"] = made
    return made


def kept(value: Any, owner: str, name: str) -> Kept:
    """Return the stored form of `value` for the attribute `name` of the class `owner`.

    Raises dbzero's error, with a note, for a rejected value.
    """
    try:
        return attribute(value)
    except (AttributeError, TypeError) as refused:
        refused.add_note(
            f"{owner}.{name} cannot be {type(value).__name__} {value!r}: dbzero stores numbers, strings, bytes, dates, "
            "times, module-level functions, its own enums, @memo objects, and collections of these"
        )
        raise
