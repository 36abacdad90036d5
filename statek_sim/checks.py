"""Checkers for pluggable parts: `check_...` raises `ContractViolation` at the first breach.

Each takes an adapter or a function that creates the part. `store_findings` returns every breach.
"""

from statek_sim.agent.checkpoints.contract import StoreFinding, check_checkpoint_store, store_findings
from statek_sim.agent.context.contract import check_compaction
from statek_sim.agent.guards.contract import check_guard
from statek_sim.errors import ContractViolation
from statek_sim.providers.contract import check_provider

__all__ = [
    "ContractViolation",
    "StoreFinding",
    "check_checkpoint_store",
    "check_compaction",
    "check_guard",
    "check_provider",
    "store_findings",
]
