"""Runs many independent tasks in processes under a watchdog, in this process, or on a Dask cluster.

`executor` defines the interface and the local executors, and `by_name` selects one; `dask_cluster` uses other
machines. `pool` is the parent side and `worker` the child side of a watched process; `limits` has its
resource limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.executors.by_name import executor_for as executor_for
    from statek_sim.executors.executor import Executor as Executor
    from statek_sim.executors.executor import Pending as Pending

__all__, __getattr__, __dir__ = lazy_exports(__name__)
