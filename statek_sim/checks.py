"""Checkers for pluggable parts: each `check_...` raises `ContractViolation` for the first violation of a contract.

The argument is an adapter, or a function that creates the part. `store_findings` returns every violation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.checkpoints.contract import StoreFinding as StoreFinding
    from statek_sim.agent.checkpoints.contract import check_checkpoint_store as check_checkpoint_store
    from statek_sim.agent.checkpoints.contract import store_findings as store_findings
    from statek_sim.agent.context.contract import check_compaction as check_compaction
    from statek_sim.agent.guards.contract import check_guard as check_guard
    from statek_sim.errors import ContractViolation as ContractViolation
    from statek_sim.providers.contract import check_provider as check_provider

__all__, __getattr__, __dir__ = lazy_exports(__name__)
