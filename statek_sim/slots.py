"""Slots: how many jobs use a scarce model at once, and in which order (docs/slots.md).

A `SlotWorker` assigns `Slot`s by `SlotRules`.
"""

from statek_sim.agent.slots import Slot, SlotRules, SlotWorker

__all__ = ["Slot", "SlotRules", "SlotWorker"]
