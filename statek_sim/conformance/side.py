"""One version of STATEK in a process of this machine's own: it compares examples while others do the same.

The reference runtime has to have its process to itself, and two interpreters keep two processors busy.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from types import TracebackType
from typing import Final, Self, TypeVar

from statek_sim.backends.installed.peer import Peer, profile_of_peer
from statek_sim.scenario.schema import Profile

T = TypeVar("T")

_OPEN: Final[list[Peer]] = []
"""In the process of a side: its interpreter with STATEK."""


class Side:
    """The interpreter `python`, with a process that talks to it. Use it as a context manager.

    `BadInput` for an interpreter without STATEK, or with a version that no behaviour profile describes.
    """

    def __init__(self, python: str) -> None:
        # Forking a process that has threads is not safe, and a pool has one.
        self._pool = ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn"))
        try:
            self.version, self.profile = self._pool.submit(_open, python).result()
        except BaseException:
            self._pool.shutdown()
            raise

    def submit(self, work: Callable[[Peer], T]) -> Future[T]:
        """Call `work` over there, one call after the other; it and its result are pickled."""
        return self._pool.submit(_with_peer, work)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._pool.submit(_close).result()
        self._pool.shutdown(cancel_futures=True)


def _open(python: str) -> tuple[str, Profile]:
    peer = Peer(python)
    _OPEN.append(peer)
    return peer.version, profile_of_peer(peer)


def _with_peer(work: Callable[[Peer], T]) -> T:
    return work(_OPEN[0])


def _close() -> None:
    while _OPEN:
        _OPEN.pop().close()
