"""Runs many independent tasks, in processes under a watchdog, in this process, or on a Dask cluster.

`executor` is the interface, with the local executors, and `by_name` chooses one; `dask_cluster` uses other machines.
`pool` runs in the parent and `worker` in the child of a watched process; `limits` has its resource limits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.executors.by_name import executor_for as executor_for
    from statek_sim.executors.executor import Executor as Executor
    from statek_sim.executors.executor import Pending as Pending

__all__, __getattr__, __dir__ = lazy_exports(__name__)
