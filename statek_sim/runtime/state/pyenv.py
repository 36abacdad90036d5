"""A job's Python workspace, and the names that jobs share ("Jobs", The Python Workspace).

`init_shared_context` binds shared names; their contexts are the application's stored objects
(`statek_sim.shim.shared_context`). Code can read shared names like its own variables (they precede tools and
builtins), but cannot bind or delete them. Functions and `python_cli` do not see shared names (observed with
STATEK 1.4.2).

This module also limits the data that a job keeps across blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Final, Protocol

from statek_sim.runtime.state.access import StoredObject, member_text, recorded
from statek_sim.runtime.state.futures import FutureResult
from statek_sim.runtime.stored.containers import put
from statek_sim.runtime.stored.ordering import Shows, in_store_order, shown_members
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.llm_repr import StoredCollection


class ErrorKind(StrEnum):
    """Where a console error comes from."""

    EXECUTION = "EXECUTION"
    HARNESS = "HARNESS"

    __repr__ = member_text


@recorded("kind", "message")
@dataclass(frozen=True, slots=True)
class Error:
    """An error on the console. Since 1.2.7, only EXECUTION errors count towards the harness limits."""

    kind: ErrorKind
    message: str


PERMANENT: Final = "_PERM_CTX"
"""The job variable in which `perm_ctx_set` stores names."""

Pushed = str | list["Pushed"]
"""The messages pushed at a console position: a single message, or `[earlier messages, next message]`."""


@dataclass(slots=True)
class PyEnv(StoredObject):
    """What agent code can see, and the results of running it.

    `console`, `exceptions` and `push_log` are the runtime's `lines`, `errors` and `pushed`, or None while
    empty. `errors` is keyed by console entry. (Up to 1.2.6, it contains plain strings, keyed by the console
    position of the chat log's newest item.) `pushed` is keyed by the console's length when the message
    arrived. `stores` is whether dbzero's rules apply. `in_block` is whether a block is running; the block's
    bindings appear in `local_state` when it ends.
    """

    global_state: dict[str, object] = field(default_factory=dict)
    local_state: dict[str, object] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    errors: dict[int, Error | str] = field(default_factory=dict)
    pushed: dict[int, Pushed] = field(default_factory=dict)
    exit_status: object = None
    future_result: FutureResult | None = None
    stores: bool = False
    in_block: bool = False

    def __store_members__(self, shows: Shows) -> dict[str, object]:
        """Return the members displayed to agents."""
        members = {
            "global_state": self.global_state,
            "local_state": self.local_state,
            "console": self.console,
            "exceptions": self.exceptions,
            "push_log": self.push_log,
            "next_instr_id": None,
            "warmup_block_num": None,
            "exit_status": self.exit_status,
            "future_result": self.future_result,
        }
        return shown_members(members, shows)

    @property
    def console(self) -> list[str]:
        """The output, one string per entry; None before the first entry."""
        return self.lines or None  # type: ignore[return-value]  # as STATEK annotates it

    @property
    def exceptions(self) -> dict[int, Error | str]:
        """Console errors, keyed by position; None before the first error."""
        return self.errors or None  # type: ignore[return-value]  # as STATEK annotates it

    @property
    def push_log(self) -> dict[int, Pushed]:
        """Pushed messages, keyed by console position; None before the first message."""
        return self.pushed or None  # type: ignore[return-value]  # as STATEK annotates it

    @property
    def perm_ctx(self) -> Any:
        """The names stored by `perm_ctx_set`, or None if there are none."""
        return (self.local_state or {}).get(PERMANENT)

    def push(self, position: int, message: str) -> None:
        """Add a pushed message; a second message at the same position is paired with the first.

        The model sees the pair printed as a Python list, because STATEK's history does not recognize its
        durable lists as `list`s (checked with 1.2.7 and 1.4.2).
        """
        existing = self.pushed.get(position)
        self.pushed[position] = message if existing is None else [existing, message]

    def update_locals(self, **values: object) -> None:
        """Bind names in the workspace. If dbzero's rules apply, a rejected value raises dbzero's error."""
        if not self.stores:
            self.local_state.update(values)
            return
        for name, value in values.items():
            put(value, partial(self.local_state.__setitem__, name))
        self.local_state = {name: self.local_state[name] for name in in_store_order(self.local_state)}


CATEGORIES: Final = ("PREFERENCE", "ENTITY", "VOCABULARY")
"""STATEK's own categories, without those added by an application."""


class Categories(Protocol):
    """The categories of shared names."""

    def get(self, name: str, /) -> Any:
        """Return the category with this name, or None."""


class SharedNames(Protocol):
    """The variables that a job shares with other jobs."""

    def get_var(self, key: str, /) -> Any:
        """Return the variable with this name and count the read, or return None."""

    def set_var(self, category: Any, key: str, value: Any, description: str, /) -> None:
        """Store a variable."""

    def _select_items(self, category: Any, /, filter: Any = None) -> Iterable[tuple[str, Any]]:  # noqa: A002
        """Yield the matching variables in a category."""


@dataclass(frozen=True, slots=True)
class KnownCategory:
    """A category of shared names in runs without an application."""

    name: str


class KnownCategories:
    """STATEK's own categories, for runs without an application."""

    def get(self, name: object, /) -> KnownCategory | None:
        """Return the category with this name, in any letter case, or None."""
        wanted = name.upper() if isinstance(name, str) else None
        return None if wanted not in CATEGORIES else KnownCategory(str(wanted))


def category_name(category: Any) -> str | None:
    """Return the upper-case name of a category, given as an object or a string; None for any other value."""
    name = getattr(category, "name", category)
    return name.upper() if isinstance(name, str) else None


class Fallback:
    """The shared names available to one block; each name is looked up only once."""

    def __init__(self, shared: SharedNames, categories: Categories) -> None:
        self._shared = shared
        self._categories = categories
        self._found: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        """Return the shared variable with this name, or None if there is none in a known category."""
        if name not in self._found:
            found = self._shared.get_var(name)
            known = (
                found is not None and self._categories.get(category_name(found.category) or "") is not None
            )
            self._found[name] = found if known else None
        return self._found[name]

    def check_writable(self, name: str) -> None:
        """Raise PermissionError for a shared name."""
        if self.find(name) is not None:
            raise PermissionError(
                f"Shared context variable is read-only: {name}. "
                "Use shared_context_set_var to update shared context."
            )


def print_category(
    category: str,
    kinds: tuple[type, ...],
    categories: Categories,
    shared: SharedNames | None,
    write: Callable[[str], None],
) -> None:
    """Write a line for each shared name in a category. If `kinds` is given, only values of these types are included.

    Raises ValueError for an unknown category, and TypeError if `kinds` contains anything but types.
    """
    resolved = categories.get(category)
    if resolved is None:
        raise ValueError(f"Unknown context category: {category}")
    if any(not isinstance(kind, type) for kind in kinds):
        raise TypeError("print_locals positional filters must be types")
    of_kinds = f", type: {', '.join(kind.__name__ for kind in kinds)}" if kinds else ""
    write(f"Locals from the category: {resolved.name}{of_kinds}")
    for name, variable in _fitting(resolved, kinds, shared):
        suffix = f": {variable.description}" if variable.description else ""
        write(f"{name}  # {resolved.name}{suffix}")


def _fitting(category: Any, kinds: tuple[type, ...], shared: SharedNames | None) -> Iterator[tuple[str, Any]]:
    if shared is not None:
        fits = (lambda variable: isinstance(variable.value, kinds)) if kinds else None
        yield from shared._select_items(category, fits)


STEPS_KEPT: Final = 4
"""Maximum size of the data that a job keeps, as a multiple of the allocation limit for one block."""

_OBJECT: Final = 56
_WIDE: Final = 4
_SEQUENCES: Final = (list, tuple, set, frozenset, deque)

# A job may keep any values that its code has created.
Value = Any


def check_kept(env: PyEnv, budget: ExecutionBudget) -> None:
    """Stop the budget if a job's variables contain too much data."""
    limit = STEPS_KEPT * budget.allocation
    if weight(env.local_state, limit) > limit:
        budget.stop(
            f"the job keeps more than {limit:,} bytes of data across turns; the likely cause is a list or string "
            "that grows every turn"
        )


def weight(names: Mapping[str, Value], limit: int) -> int:
    """Return the estimated size in bytes of the values in `names`.

    Counting stops once the size exceeds `limit`. Each object counts once. The estimate is the same on every
    machine.
    """
    total = 0
    met: set[int] = set()
    pending: list[Value] = list(names.values())
    while pending and total <= limit:
        value = pending.pop()
        if id(value) in met:
            continue
        met.add(id(value))
        total += _OBJECT
        if isinstance(value, str):
            total += len(value) if value.isascii() else _WIDE * len(value)
        elif type(value) is int:
            total += value.bit_length() >> 3
        elif isinstance(value, bytes):
            total += len(value)
        elif isinstance(value, StoredCollection):
            total += 8 * len(value)
            pending += value._contents()
        elif isinstance(value, dict):
            total += 64 * len(value)
            pending += value.keys()
            pending += value.values()
        elif isinstance(value, _SEQUENCES):
            total += 8 * len(value)
            pending += _members(value)
    return total


def _members(value: Value) -> Iterable[Value]:
    """Return the items of a sequence or set, even if model-written code overrides `__iter__` in a set subclass."""
    if isinstance(value, set):
        return set.__iter__(value)
    return frozenset.__iter__(value) if isinstance(value, frozenset) else value
