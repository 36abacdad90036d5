"""Checkpoints: runs of an agent that outlive their process (docs/checkpoints.md).

`SessionStore` keeps sessions in a store of `statek_sim.store`; a `Keeper` writes one run into it.
"""

from statek_sim.agent.async_driver import holding
from statek_sim.agent.checkpoints.seals import Anchor, Checkpoint, Entry, Kept, MemoryAnchor, Sealer
from statek_sim.agent.checkpoints.sessions import Keeper, SessionStore, accept_edits, plan_hash
from statek_sim.agent.tools.tool import Happened

__all__ = [
    "Anchor",
    "Checkpoint",
    "Entry",
    "Happened",
    "Keeper",
    "Kept",
    "MemoryAnchor",
    "Sealer",
    "SessionStore",
    "accept_edits",
    "holding",
    "plan_hash",
]
