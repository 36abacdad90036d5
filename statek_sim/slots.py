"""Slots: limits how many jobs use a model at once, and decides their order (docs/slots.md).

A `SlotWorker` assigns `Slot`s by `SlotRules`.
"""

from statek_sim.agent.slots import Slot, SlotRules, SlotWorker

__all__ = ["Slot", "SlotRules", "SlotWorker"]
