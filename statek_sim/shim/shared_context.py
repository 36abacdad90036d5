"""`statek.shared_context`: variables that jobs with the same bound objects share (STATEK 1.4.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from statek_sim.runtime.execution.runtime import current_runtime
from statek_sim.runtime.jobs.job import get_current_job
from statek_sim.runtime.state.pyenv import CATEGORIES, category_name, print_category
from statek_sim.runtime.tools.declaration import tool
from statek_sim.shim.memo import is_memo, memo
from statek_sim.shim.queries import find, uuid

Filter = Callable[["ContextVar"], bool] | None
Item = tuple[str, "ContextVar"]


def _now() -> datetime:
    return current_runtime().clock.wall().replace(tzinfo=UTC)


@memo
class ContextCategory:
    """A category of shared variables."""

    def __init__(self, name: str, prefix: Any = None) -> None:
        self.name = name


@memo(singleton=True)
class ContextCategoryDict:
    """The existing categories; an application adds its own to `categories`."""

    def __init__(self, prefix: Any = None, categories: dict[str, ContextCategory] | None = None) -> None:
        self.categories = (
            {name: ContextCategory(name) for name in CATEGORIES} if categories is None else categories
        )

    def get(self, name: Any) -> Any:
        """Return a category by name, in any letter case, or None."""
        if not isinstance(name, str):
            return None
        return self.categories.get(name) or self.categories.get(name.upper())


@memo
@dataclass
class ContextVar:
    """A shared variable and the number of times it was read."""

    category: Any
    value: Any
    description: str
    created_at: datetime = field(default_factory=_now)
    use_count: int = 0


@memo
class SharedContext:
    """The variables shared by all jobs that are bound to the same objects."""

    def __init__(self, prefix: Any = None, _binding_keys: tuple[str, ...] = ()) -> None:
        self.__context_vars: dict[str, ContextVar] = {}
        self._binding_keys = _binding_keys

    def set_var(self, category: Any, key: str, value: Any, description: str) -> None:
        """Set a variable, replacing any existing one; a variable in an unknown category is silently ignored."""
        name = category.name if isinstance(category, ContextCategory) else category
        if ContextCategoryDict().get(name) is not None:
            self.__context_vars[key] = ContextVar(category, value, description)

    def get_var(self, key: str) -> ContextVar | None:
        """Return a variable and count the read, or return None."""
        found = self._peek_var(key)
        return None if found is None else _counted(found)

    def _peek_var(self, key: str) -> ContextVar | None:
        return self.__context_vars.get(key)

    def _items(self) -> tuple[Item, ...]:
        return tuple(self.__context_vars.items())

    def select(self, category: Any, filter: Filter = None) -> Iterator[ContextVar]:  # noqa: A002  # STATEK's own name
        """Yield the matching variables in a category, and count the reads."""
        for _, variable in self._select_items(category, filter):
            yield variable

    def _select_items(self, category: Any, filter: Filter = None) -> Iterator[Item]:  # noqa: A002
        yield from _selected(self._items(), category, filter)

    def __contains__(self, key: str) -> bool:
        return key in self.__context_vars


@memo
class SharedContextProxy:
    """Several contexts as one: for each name, the newest variable applies; writes go to one of the contexts."""

    def __init__(self, writable: Any, readables: Any = None, read_only: bool = False) -> None:  # STATEK's own
        self.__writable = writable
        given = (readables,) if isinstance(readables, SharedContext) else readables
        self.__readables = tuple(given or ())
        self.__read_only = read_only

    def __contexts(self) -> tuple[SharedContext, ...]:
        own = () if self.__writable is None else (self.__writable,)
        return (*own, *self.__readables)

    def set_var(self, category: Any, key: str, value: Any, description: str) -> None:
        """Set a variable in the writable context; raises PermissionError if there is none."""
        if self.__read_only or self.__writable is None:
            raise PermissionError("Shared context is read-only")
        self.__writable.set_var(category, key, value, description)

    def get_var(self, key: str) -> ContextVar | None:
        """Return the newest variable with a name and count the read, or return None."""
        found = _newest((key, context._peek_var(key)) for context in self.__contexts()).get(key)
        return None if found is None else _counted(found)

    def __contains__(self, key: str) -> bool:
        return any(context._peek_var(key) is not None for context in self.__contexts())

    def select(self, category: Any, filter: Filter = None) -> Iterator[ContextVar]:  # noqa: A002  # STATEK's own name
        """Yield the newest matching variables in a category, and count the reads."""
        for _, variable in self._select_items(category, filter):
            yield variable

    def _select_items(self, category: Any, filter: Filter = None) -> Iterator[Item]:  # noqa: A002
        newest = _newest(item for context in self.__contexts() for item in context._items())
        yield from _selected(newest.items(), category, filter)


def _newest(items: Iterable[tuple[str, ContextVar | None]]) -> dict[str, ContextVar]:
    found: dict[str, ContextVar] = {}
    for key, variable in items:
        if variable is not None and (key not in found or variable.created_at > found[key].created_at):
            found[key] = variable
    return found


def _selected(items: Iterable[Item], category: Any, fits: Filter) -> Iterator[Item]:
    wanted = category_name(category)
    for key, variable in items:
        if category_name(variable.category) == wanted and (fits is None or fits(variable)):
            yield key, _counted(variable)


def _counted(variable: ContextVar) -> ContextVar:
    variable.use_count += 1
    return variable


def _binding_key(thing: Any) -> str:
    if isinstance(thing, str):
        return f"string:{thing}"
    if is_memo(thing):
        return f"memo:{uuid(thing)}"
    raise TypeError("Context specifier must be a string or dbzero memo object")


@tool(system=True, hidden=True)
def init_shared_context(*args: Any, read_only: bool = False, **kwargs: Any) -> None:
    """Bind the current job to the context for these strings and stored objects; it can also read those of subsets."""
    job: Any = get_current_job()
    if job is None:
        raise RuntimeError("init_shared_context requires a current job")
    keys = tuple(sorted({_binding_key(thing) for thing in args}))
    contexts = [context for context in find(SharedContext) if set(context._binding_keys) <= set(keys)]
    exact = next((context for context in contexts if tuple(context._binding_keys) == keys), None)
    if exact is None:
        exact = SharedContext(_binding_keys=keys)
    others = [context for context in contexts if context is not exact]
    if read_only:
        job.shared_names = SharedContextProxy(None, (exact, *others), read_only=True)
    else:
        job.shared_names = SharedContextProxy(exact, others) if others else exact


@tool(system=True)
def print_locals(category: str, *args: Any, **kwargs: Any) -> None:
    """Print the variables of a category in the current job's context."""
    job: Any = get_current_job()
    print_category(category, args, ContextCategoryDict(), None if job is None else job.shared_names, print)
