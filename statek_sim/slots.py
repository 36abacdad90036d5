"""Slots: limits how many jobs use a model at the same time, and decides their order (docs/slots.md).

A `SlotWorker` runs jobs, giving them `Slot`s according to its `SlotRules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.slots import Slot as Slot
    from statek_sim.agent.slots import SlotRules as SlotRules
    from statek_sim.agent.slots import SlotWorker as SlotWorker

__all__, __getattr__, __dir__ = lazy_exports(__name__)
