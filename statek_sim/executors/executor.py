"""The seam between those who have many independent pieces of work and those who do them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Pending(Protocol[R_co]):
    """A piece of work that was submitted."""

    def result(self) -> R_co | Killed:
        """Wait for what comes of it, or what ended it; raises what it raised."""
        ...


class Executor(Protocol):
    """Does pieces of work: here, in processes of this machine, or on other machines; use it in a `with` block.

    What comes of work is the same with any executor, and so is its order. A piece of work whose worker dies is done
    again; one whose workers always die is `Killed`, and the others are done.
    """

    @property
    def width(self) -> int:
        """How many pieces of work are done at a time, as far as is known."""
        ...

    def submit(self, function: Callable[..., R], *arguments: Any) -> Pending[R]:
        """Begin one piece of work; `function` and its arguments can be pickled."""
        ...

    def map(
        self,
        function: Callable[..., R],
        tasks: Iterable[tuple[Any, ...]],
        *,
        limits: WatchdogLimits | None = None,
        prepare: Callable[[], None] | None = None,
    ) -> Generator[R | Killed, None, None]:
        """Yield what comes of `function` with each of the `tasks`' arguments, in their order.

        What one of them raises is raised in its turn. `limits` are what one piece of work may use of the machine, where
        it is done by a process of this one's own. `prepare` loads what all workers would load, before they are made.
        """
        ...

    def close(self) -> None:
        """End the workers that were started for it."""
        ...

    def __enter__(self) -> Self:
        """Return the executor."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        ...
