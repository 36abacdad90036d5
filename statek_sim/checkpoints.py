"""Checkpoints: agent runs that survive their process (docs/checkpoints.md).

`SessionStore` keeps sessions in a store from `statek_sim.store`. A `Keeper` writes one run to a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.async_driver import holding as holding
    from statek_sim.agent.checkpoints.seals import Anchor as Anchor
    from statek_sim.agent.checkpoints.seals import Checkpoint as Checkpoint
    from statek_sim.agent.checkpoints.seals import Entry as Entry
    from statek_sim.agent.checkpoints.seals import Kept as Kept
    from statek_sim.agent.checkpoints.seals import MemoryAnchor as MemoryAnchor
    from statek_sim.agent.checkpoints.seals import Sealer as Sealer
    from statek_sim.agent.checkpoints.sessions import Keeper as Keeper
    from statek_sim.agent.checkpoints.sessions import SessionStore as SessionStore
    from statek_sim.agent.checkpoints.sessions import accept_edits as accept_edits
    from statek_sim.agent.checkpoints.sessions import plan_hash as plan_hash
    from statek_sim.agent.tools.tool import Happened as Happened

__all__, __getattr__, __dir__ = lazy_exports(__name__)
