"""The sign of life of a worker that is in the middle of something long: its lease is begun anew by a thread.

The thread touches the lease and nothing else: neither the virtual clock, the trace nor the rows of a run know of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from statek_sim.errors import BadStore, Fenced
from statek_sim.store.protocol import Lease, Store

BEATS: Final = 3
"""So often in the time of one lease it is begun anew: two renewals may fail before others may take the run."""


class Heartbeat:
    """Renews the lease of a run while a block is worked on.

    `taken` is the error of a renewal that another worker's claim had made impossible. Any other failure to renew is
    left to the next one, and to the next commit, which tells it.
    """

    def __init__(self, store: Store, lease: Lease) -> None:
        self._store = store
        self._lease = lease
        self.taken: Fenced | None = None

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Renew the lease as long as the block lasts, however little it commits."""
        over = threading.Event()
        thread = threading.Thread(target=self._beat, args=(over,), name="statek-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(self._store.lease_seconds / BEATS):
            try:
                self._store.renew(self._lease)
            except Fenced as error:
                self.taken = error
                return
            except BadStore:
                continue
