"""The slot worker of document 004 §9, defects included, for the checker of slot workers to find.

Its runner and client are replaced by the job itself; everything else is the document's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(order=True)
class AgentJob:
    """A job in the queue. Equal priorities are equal: a heap gives them out in no particular order."""

    priority: int
    agent_id: str = field(compare=False)
    workflow: Callable[[], Awaitable[Any]] = field(compare=False)
    future: asyncio.Future[Any] = field(compare=False)


class DocumentSlotWorker:
    """One background task takes the smallest priority and runs it."""

    def __init__(self, max_queue_size: int = 50) -> None:
        self._queue: asyncio.PriorityQueue[AgentJob] = asyncio.PriorityQueue(max_queue_size)
        self._worker_task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the background task; a second time, a second one."""
        self._worker_task = asyncio.create_task(self._process_queue())

    async def submit(self, agent_id: str, workflow: Callable[[], Awaitable[Any]], priority: int = 5) -> Any:
        """Put a job into the queue and wait for its result."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await self._queue.put(AgentJob(priority, agent_id, workflow, future))
        return await future

    async def _process_queue(self) -> None:
        while True:
            job = await self._queue.get()
            try:
                result = await job.workflow()
                job.future.set_result(result)
            except Exception as exc:  # noqa: BLE001  # as the document has it
                job.future.set_exception(exc)
            finally:
                self._queue.task_done()
