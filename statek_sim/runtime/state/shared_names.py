"""Names that jobs share: what `init_shared_context` binds to a job, and what agent code sees of it.

The contexts themselves are the application's stored objects (`statek_sim.shim.shared_context`). Code reads a shared
name like one of its own, before tools and builtins, and cannot bind or delete it; functions and `python_cli` do not see
it (STATEK 1.4.2, by running it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

CATEGORIES: Final = ("PREFERENCE", "ENTITY", "VOCABULARY")
"""What STATEK knows before an application adds its own."""


class Category(Protocol):
    """A category of shared names."""

    name: str


class Categories(Protocol):
    """The categories that there are."""

    def get(self, name: str, /) -> Any:
        """Return the category of a name, None when there is none."""


class SharedNames(Protocol):
    """What a job shares with others."""

    def get_var(self, key: str, /) -> Any:
        """Return the variable of a name, None when there is none; that it was asked for is counted."""

    def set_var(self, category: Any, key: str, value: Any, description: str, /) -> None:
        """Store a variable."""

    def _select_items(self, category: Any, /, filter: Any = None) -> Iterable[tuple[str, Any]]:  # noqa: A002
        """Yield the variables of a category that fit."""


@dataclass(frozen=True, slots=True)
class KnownCategory:
    """A category without a store."""

    name: str


class KnownCategories:
    """STATEK's own categories, for runs without an application."""

    def get(self, name: object, /) -> KnownCategory | None:
        """Return the category of a name, whatever its case."""
        wanted = name.upper() if isinstance(name, str) else None
        return None if wanted not in CATEGORIES else KnownCategory(str(wanted))


def category_name(category: Any) -> str | None:
    """Return the name of a category, or of its name, in capitals; None for anything else."""
    name = getattr(category, "name", category)
    return name.upper() if isinstance(name, str) else None


class Fallback:
    """The shared names as one block of code sees them: each is looked up once, when it is first needed."""

    def __init__(self, shared: SharedNames, categories: Categories) -> None:
        self._shared = shared
        self._categories = categories
        self._found: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        """Return the variable of a name; None when nobody shares it, or in no category that there is."""
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


def tell(
    category: str,
    kinds: tuple[type, ...],
    categories: Categories,
    shared: SharedNames | None,
    write: Callable[[str], None],
) -> None:
    """Write the shared names of a category, those whose values are of some `kinds` if any are given."""
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
