"""How agent code wrote the arguments of a call: STATEK makes positional ones of those that were named."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any


class Spelling:
    """The names in the call that agent code makes right now."""

    def __init__(self) -> None:
        self._written: tuple[Any, tuple[str, ...]] | None = None
        self.keywords: tuple[str, ...] = ()

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `_smart_call` as it is, noticing what it is given."""

        @wraps(call)
        def called(func: Any, *args: Any, **kwargs: Any) -> Any:
            self._written = (func, tuple(kwargs))
            return call(func, *args, **kwargs)

        return called

    def reaches(self, function: Any) -> None:
        """Note that a call reached `function`: its are the names that were noticed, if it is what code called."""
        written, self._written = self._written, None
        self.keywords = written[1] if written is not None and written[0] is function else ()

    def forget(self) -> None:
        """Note that the call was told."""
        self.keywords = ()

    def restored(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a call's arguments with those that were named named again, in the order of the code."""
        names = list(inspect.signature(func).parameters)[: len(args)]
        named = {name: value for name, value in zip(names, args, strict=False) if name in self.keywords}
        left = tuple(value for name, value in zip(names, args, strict=False) if name not in self.keywords)
        given = {**named, **kwargs}
        ordered = {name: given[name] for name in self.keywords if name in given}
        return (*left, *args[len(names) :]), {**ordered, **given}
