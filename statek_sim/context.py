"""Context: how a long conversation is made to fit its model (docs/context.md).

`ContextSettings` states the limits, `compacted` applies them to messages, `wire_faults` says what a provider refuses.
"""

from statek_sim.agent.context.manager import ContextManager, ContextSettings, compacted
from statek_sim.agent.context.wire_check import WireFault, WireRule, wire_faults

__all__ = ["ContextManager", "ContextSettings", "WireFault", "WireRule", "compacted", "wire_faults"]
