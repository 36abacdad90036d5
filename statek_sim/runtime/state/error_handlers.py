"""Error handlers: cleanup of claimed work when a job dies (003, Job Error Handlers)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class ErrorHandler:
    """A handler and the context it will be called with; it runs at most once per job that holds it."""

    error_handler: Callable[..., object]
    context: object

    @property
    def name(self) -> str:
        """The handler's function name."""
        return getattr(self.error_handler, "__name__", type(self.error_handler).__name__)

    def __call__(self, error: BaseException | None = None) -> Exception | None:
        """Run the handler and return the exception it raised, which goes no further (003)."""
        # Our own decorator already hides failures from STATEK-style callers; look behind it to report them.
        target = getattr(self.error_handler, _BODY, self.error_handler)
        try:
            target(self.context, error=error)
        except Exception as failure:  # noqa: BLE001  # the user's handler
            return failure
        return None


_BODY: Final = "__error_handler_body__"
_VARIADIC: Final = frozenset({inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL})


def error_handler(function: Callable[..., object]) -> Callable[..., None]:
    """Mark `function(context, error=None)` as an error handler; exceptions it raises are suppressed."""

    @functools.wraps(function)
    def wrapper(context: object, error: BaseException | None = None) -> None:
        try:
            function(context, error=error)
        except Exception:  # noqa: BLE001, S110  # 003: handler exceptions are suppressed
            pass

    wrapper.is_error_handler = True  # type: ignore[attr-defined]  # STATEK's own marker
    setattr(wrapper, _BODY, function)
    return wrapper


def is_valid_error_handler(candidate: Any) -> bool:
    """Return whether `candidate` follows the handler protocol of 003.

    Decorated with `@error_handler`, a name that starts with `_`, exactly two parameters, the second optional.
    """
    return handler_problem(candidate) is None


def handler_problem(candidate: Any) -> str | None:
    """Return what breaks the handler protocol in words, or None when nothing does."""
    if not callable(candidate):
        return f"is {type(candidate).__name__}, expected a function"
    if not getattr(candidate, "is_error_handler", False):
        return "is not decorated with @error_handler"
    if not candidate.__name__.startswith("_"):
        return "needs a name that starts with '_'"
    try:
        parameters = inspect.signature(candidate).parameters.values()
    except (TypeError, ValueError):
        return "has no readable signature"
    named = [parameter for parameter in parameters if parameter.kind not in _VARIADIC]
    if len(named) != 2:
        return f"takes {len(named)} parameters, expected (context, error=None)"
    if named[1].default is inspect.Parameter.empty:
        return f"needs a default for {named[1].name!r}, expected (context, error=None)"
    return None
