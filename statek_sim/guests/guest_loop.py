"""The event loop of guests: virtual time, and what they put into a thread is done at once, in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from statek_sim.agent.virtual_loop import VirtualLoop


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
