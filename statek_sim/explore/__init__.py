"""Explores scenarios: runs them under crashes, reorderings, limits and faults, and checks invariants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.explore.agent_player import AgentVariation as AgentVariation
    from statek_sim.explore.player import sometimes as sometimes
    from statek_sim.explore.variation import Variation as Variation

__all__, __getattr__, __dir__ = lazy_exports(__name__)
