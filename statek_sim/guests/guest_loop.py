"""The event loops of guests: virtual time, where what they put into a thread is done at once, or the machine's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from statek_sim.agent.virtual_loop import VirtualLoop

T = TypeVar("T")


def run_really(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that needs sockets or threads, in real time."""
    return asyncio.run(coroutine)


class GuestLoop(VirtualLoop):
    """A `VirtualLoop` for code that uses `asyncio.to_thread`: with one thread the order is the same every time."""

    def run_in_executor(  # type: ignore[override]  # typeshed's variadic types
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call the function now; its result is there at once."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # whatever it raises belongs to who awaits it
            future.set_exception(error)
        return future
