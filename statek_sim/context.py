"""Context: fits a long conversation into its model's window (docs/context.md).

`ContextSettings` defines the limits, `compacted` applies them to messages, `wire_faults` lists the faults for which a
provider refuses messages.
"""

from statek_sim.agent.context.manager import ContextManager, ContextSettings, compacted
from statek_sim.agent.context.wire_check import WireFault, WireRule, wire_faults

__all__ = ["ContextManager", "ContextSettings", "WireFault", "WireRule", "compacted", "wire_faults"]
