"""The decorators and functions of one runtime, which the tools of the built-in world are written against.

So the same tools can run on this runtime and on the real package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

from statek_sim.runtime.stored.storable_types import stored

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class Decorator(Protocol):
    """`@decorator` without options."""

    def __call__(self, function: F, /) -> Any:
        """Return the decorated function."""


class ToolDecorator(Protocol):
    """`@decorator` and `@decorator(option=...)`."""

    @overload
    def __call__(self, f: F, /) -> F: ...
    @overload
    def __call__(
        self, f: None = None, /, *, error_handler: Callable[..., object] | None = None, hidden: bool = False
    ) -> Callable[[F], F]: ...


class SubtaskDecorator(Protocol):
    """`@subtask` without options."""

    def __call__(self, f: F, /) -> F:
        """Return the decorated factory."""


class TemporalDecorator(Protocol):
    """`@temporal(complement=..., condition=...)`."""

    def __call__(self, *, complement: Callable[..., Any], condition: Callable[..., bool]) -> Callable[[F], F]:
        """Return the decorator."""


class ClassDecorator(Protocol):
    """A decorator of classes."""

    def __call__(self, kind: type[T], /) -> type[T]:
        """Return the class that takes its place."""


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApi:
    """The decorators and functions of one runtime. `agents` maps roles to its agents, for delegation.

    `stored` makes a class whose objects the runtime can keep as part of a job; `kept` returns what an attribute of such
    an object makes of a value, where the class does not see to it.
    """

    tool: ToolDecorator
    subtask: SubtaskDecorator
    error_handler: Decorator
    temporal: TemporalDecorator
    future: type
    future_error: type[Exception]
    get_current_job: Callable[[], Any]
    create_new_job: Callable[..., Any]
    complete_sub_task: Callable[..., None]
    delegate_task: Callable[..., Any]
    any_future: Callable[..., Any]
    all_future: Callable[..., Any]
    get_llm_harness: Callable[[], Any]
    agents: Mapping[str, Any]
    stored: ClassDecorator = stored
    kept: Callable[[Any], Any] = _itself
