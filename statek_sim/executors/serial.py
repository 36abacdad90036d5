"""Work that is done here and now, one piece after the other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Done(Generic[R]):
    """Work that is done when somebody asks for it; asked again it is not done again."""

    come: list[R]
    function: Callable[..., R]
    arguments: tuple[Any, ...]

    def result(self) -> R | Killed:
        if not self.come:
            self.come.append(self.function(*self.arguments))
        return self.come[0]


class SerialExecutor:
    """Does all work in this process. Nobody watches it: what hangs, hangs everything, and limits are not held."""

    @property
    def width(self) -> int:
        """One at a time."""
        return 1

    def submit(self, function: Callable[..., R], *arguments: Any) -> _Done[R]:
        """Keep a piece of work until its result is asked for."""
        return _Done([], function, arguments)

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,  # nobody watches
        prepare: Callable[[], None] | None = None,  # it is loaded when it is used
    ) -> Generator[R | Killed, None, None]:
        """Yield what comes of each piece of work, in their order."""
        for arguments in tasks:
            yield function(*arguments)

    def close(self) -> None:
        """Nothing was started."""

    def __enter__(self) -> Self:
        """Return the executor."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was started."""
