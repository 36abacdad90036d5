"""How agents see values in REPL echoes, `print` arguments and tool results (behaviour 3).

A string is shown unchanged, and in double quotes inside a collection. Collections are shown without spaces
and with at most 25 items. Other objects are shown by their `__llm_repr__` if they have one, else by their own
`__str__`, else as `Class(member=value)`. Memory addresses are removed, and the size of the output is limited.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.ordered_set import without_addresses

# Any value that model-written code prints.
Value = Any

DEFAULT_MAX_LEN: Final = 25
"""Default maximum number of items displayed per collection."""

MAX_PARTS: Final = 50_000
"""Maximum number of items displayed per value, including items in nested collections."""

_MAX_NESTING: Final = 150
_COUNT_EVERY: Final = 1024
_SIMPLE: Final = (bool, int, float, Decimal, str, datetime)


STORES_OWN: Final = "__stores_own__"
"""Marks a `__str__` method that the store added to a class; its objects are displayed by their members."""

STORE_MEMBERS: Final = "__store_members__"
"""Name of the method on stored objects that returns the displayed members; the argument selects members by name."""


class StoredCollection:
    """Base class of the store's collections, which are displayed like the Python type `shown_as`."""

    __slots__ = ()
    shown_as: type = list

    def __len__(self) -> int:
        """Return the number of items."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Value]:
        """Yield the items, or the keys of a mapping."""
        raise NotImplementedError

    def _contents(self) -> Iterable[Value]:
        """Return the stored forms of all items (for a mapping, all keys and values), in any order."""
        raise NotImplementedError


_COLLECTIONS: Final = (list, tuple, set, frozenset, dict, StoredCollection)


_Names = str | tuple[str, ...]
"""Member names. As in STATEK, a string matches every name that is a substring of the string."""


@dataclass(slots=True, kw_only=True)
class _Options:
    """Options for displaying one value.

    `show_only` and `hide` select an object's members by name, and `expand` names members to display in full.
    `max_len` is the maximum number of items displayed per collection. `repeated` omits members that are
    objects. `is_nested` quotes strings.
    """

    hide: _Names = ()
    expand: _Names = ()
    show_only: _Names | None = None
    max_len: int = DEFAULT_MAX_LEN
    repeated: bool = False
    is_nested: bool = False

    def __post_init__(self) -> None:
        self.hide, self.expand = _names(self.hide or ()), _names(self.expand or ())
        self.show_only = None if self.show_only is None else _names(self.show_only)

    def shows(self, name: str) -> bool:
        """Return whether the member `name` is displayed."""
        return (self.show_only is None or name in self.show_only) and name not in self.hide

    def given(self) -> dict[str, Value]:
        """Return the arguments for an object's `__llm_repr__`: `is_nested`, and any options with non-default values."""
        found: dict[str, Value] = {"is_nested": self.is_nested}
        for field in fields(self)[:-1]:
            value = getattr(self, field.name)
            if value != field.default:
                found[field.name] = list(value) if isinstance(value, tuple) else value
        return found


def _names(given: Iterable[str]) -> _Names:
    return given if isinstance(given, str) else tuple(given)


def llm_repr(
    value: Value,
    *,
    budget: ExecutionBudget | None = None,
    others: Mapping[str, Value] | None = None,
    **options: Value,
) -> str:
    """Return the text that an agent sees for `value`; see `_Options` for the options.

    `others` are additional arguments for an object's own `__llm_repr__`. While an object's own `__llm_repr__`
    runs, the object is displayed by its members. Raises `RecursionError` for a value nested more than 150
    levels deep, such as a list that contains itself, and `BudgetExceeded` for a value with more than 50,000
    items.
    """
    if isinstance(value, _SIMPLE):
        return _simple(value, quoted=options.get("is_nested", False))
    wanted = _Options(**options)
    printer = _Printer(budget, wanted.max_len)
    if isinstance(value, _COLLECTIONS):
        return printer.collection(value, repeated=wanted.repeated)
    if not hasattr(value, "__llm_repr__"):
        return printer.by_str(value, wanted)
    if _is_showing_itself(type(value)):
        return printer.by_members(value, wanted)
    return _own_repr(value.__llm_repr__, {**wanted.given(), **(others or {})})


def llm_members(value: Value, **options: Value) -> str:
    """Format `value` by its members, without calling its own methods; strings are quoted by default."""
    wanted = _Options(**{"is_nested": True, **options})
    if isinstance(value, _SIMPLE):
        return _simple(value, quoted=wanted.is_nested)
    printer = _Printer(None, wanted.max_len)
    if isinstance(value, _COLLECTIONS):
        return printer.collection(value, repeated=wanted.repeated)
    return printer.by_members(value, wanted)


def llm_value(value: Value, *, quoted: bool = True) -> str:
    """Format `value` as a member of an object: collections by size, objects as `<Object>`."""
    return value if isinstance(value, str) and not quoted else _short(value)


def format_print_arg(value: Value, budget: ExecutionBudget | None = None) -> str:
    """Return the output of `print(value)`: a string unchanged, any other value as formatted by `llm_repr`."""
    return value if isinstance(value, str) else llm_repr(value, budget=budget)


class _Printer:
    """Converts one value to text, counting the displayed items."""

    __slots__ = ("_budget", "_depth", "_max_len", "_parts")

    def __init__(self, budget: ExecutionBudget | None, max_len: int) -> None:
        self._budget = budget
        self._max_len = max_len
        self._depth = 0
        self._parts = 0

    def collection(self, value: Value, *, repeated: bool) -> str:
        """Format a list, tuple, set or dict."""
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise RecursionError("maximum recursion depth exceeded while printing a value")
        try:
            shape = value.shown_as if isinstance(value, StoredCollection) else type(value)
            if issubclass(shape, dict):
                parts = self._entries(value, repeated=repeated)
                brackets = "{}"
            elif issubclass(shape, set | frozenset):
                ordered = sorted(value, key=lambda item: without_addresses(repr(item)))
                parts = self._items(ordered, repeated=repeated)
                brackets = "{}"
            else:
                parts = self._items(value, repeated=repeated)
                brackets = "[]" if issubclass(shape, list) else "()"
        finally:
            self._depth -= 1
        more = f" ({len(value)} items total)" if len(value) > self._max_len else ""
        return f"{brackets[0]}{','.join(parts)}{', ...' if more else ''}{brackets[1]}{more}"

    def _items(self, values: Iterable[Value], *, repeated: bool) -> list[str]:
        """Format the first items. An item with the same type as an earlier item counts as `repeated`."""
        seen: set[type] = set()
        parts = []
        for item in islice(values, self._max_len):
            kind = type(item)
            parts.append(self._element(item, repeated=repeated or kind in seen))
            seen.add(kind)
        return parts

    def _entries(self, values: Mapping[Value, Value], *, repeated: bool) -> list[str]:
        seen: set[type] = set()
        parts = []
        for key, item in islice(values.items(), self._max_len):
            kind = type(item)
            parts.append(f"{_short(key)}:{self._element(item, repeated=repeated or kind in seen)}")
            seen.add(kind)
        return parts

    def _element(self, item: Value, *, repeated: bool) -> str:
        self._count()
        if isinstance(item, _SIMPLE):
            return _simple(item, quoted=True)
        if isinstance(item, _COLLECTIONS):
            return self.collection(item, repeated=repeated)
        if hasattr(item, "__llm_repr__"):
            return _own_repr(item.__llm_repr__, {"repeated": repeated})
        return self.by_str(item, _Options(repeated=repeated))

    def by_str(self, value: Value, wanted: _Options) -> str:
        """Format an object with its own `__str__`, if any, or by its members."""
        if _has_own_str(type(value)):
            return without_addresses(str(value))
        return self.by_members(value, wanted)

    def by_members(self, value: Value, wanted: _Options) -> str:
        """Format an object as `Class(member=value)`."""
        found = _members_of(value, wanted)
        if found is None:
            return _short(value)
        shown = []
        left_out = False
        for name, member in found.items():
            if name in wanted.expand:
                text = llm_repr(member, budget=self._budget, repeated=wanted.repeated, is_nested=True)
            else:
                text = _short(member)
                if wanted.repeated and text == "<Object>":
                    left_out = True
                    continue
            shown.append(f"{name}={text}")
        if left_out:
            shown.append("...")
        # The name of a stored class may include its module.
        return f"{type(value).__name__.rpartition('.')[2]}({','.join(shown)})"

    def _count(self) -> None:
        self._parts += 1
        if self._budget is not None and self._parts % _COUNT_EVERY == 0:
            self._budget.tick(_COUNT_EVERY)
        if self._parts > MAX_PARTS:
            reason = (
                f"the code printed a value with more than {MAX_PARTS:,} items; the likely cause is a collection that "
                "contains itself many times"
            )
            if self._budget is not None:
                self._budget.stop(reason)
            raise BudgetExceeded(reason)


def _has_own_str(kind: Any) -> bool:
    method = kind.__str__
    return method is not object.__str__ and not hasattr(method, STORES_OWN)


def _simple(value: Value, *, quoted: bool) -> str:
    if isinstance(value, str):
        return f'"{value}"' if quoted else value
    if isinstance(value, datetime):
        return f'datetime("{value.strftime("%Y-%m-%d %H:%M")}")'
    return str(value)


def _short(value: Value) -> str:
    """Format an object's member or a dict's key: simple values in full, collections by size."""
    if value is None:
        return "None"
    if isinstance(value, _SIMPLE):
        return _simple(value, quoted=True)
    if isinstance(value, _COLLECTIONS):
        return f"<{type(value).__name__.capitalize()} of {len(value)} items>"
    return "<Object>"


def _members_of(value: Value, wanted: _Options) -> dict[str, Value] | None:
    """Return the displayed members, or None for a value without members. Hidden members are not read."""
    if isinstance(value, type):
        return None
    stored = getattr(value, STORE_MEMBERS, None)
    if stored is not None:
        members: dict[str, Value] = stored(wanted.shows)
        return members
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        return {name: getattr(value, name) for name in names if wanted.shows(name)}
    if not hasattr(value, "__dict__"):
        return None
    return {name: member for name, member in vars(value).items() if wanted.shows(name)}


def _own_repr(method: Callable[..., Value], options: Mapping[str, Value]) -> str:
    takes_options = any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(method).parameters.values()
    )
    text = method(**options) if takes_options else method()
    return without_addresses(text) if isinstance(text, str) else text


def _is_showing_itself(kind: type) -> bool:
    """Return whether `__llm_repr__` is running for an object of exactly this type."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "__llm_repr__" and type(frame.f_locals.get("self")) is kind:
            return True
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    return False


MOST_WORK: Final = 100_000
"""Maximum iterations for formatting one value in a trace; a small value can contain itself a billion times."""

SHORT_TEXT: Final = "__short_text__"
"""Name of the method by which jobs and agents return their short form for traces."""

_OF_ONE_PART: Final = frozenset({int, float, bool, type(None)})


def shown(value: object) -> str:
    """Return the text that an agent would see for `value`, for use in traces.

    If the object's own method raises an exception, the text consists of the class and the error. For example,
    the `__str__` of an unfinished subtask handler raises RuntimeError.
    """
    if type(value) is str:
        return value
    in_short = getattr(type(value), SHORT_TEXT, None)
    if in_short is not None:
        return str(in_short(value))
    plain = type(value) in _OF_ONE_PART
    budget = None if plain else ExecutionBudget(loop_iterations=MOST_WORK, allocation=10 * MOST_WORK)
    try:
        # `__str__` may return any object.
        return str(llm_repr(value, budget=budget))
    except BudgetExceeded:
        return f"<{type(value).__name__.rpartition('.')[2]}: too large to show>"
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__.rpartition('.')[2]}: {type(error).__name__}>"
