"""The store for everything that outlives its process: reference runtime jobs and agent sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.store.disk import MemoryDisk as MemoryDisk
    from statek_sim.store.open import open_store as open_store
    from statek_sim.store.protocol import Store as Store

__all__, __getattr__, __dir__ = lazy_exports(__name__)
