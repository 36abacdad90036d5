"""Context: fits a long conversation into the model's context window (docs/context.md).

`ContextSettings` contains the limits, and `compacted` applies them to messages. `wire_faults` returns the faults for
which a provider would reject messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.context.manager import ContextManager as ContextManager
    from statek_sim.agent.context.manager import ContextSettings as ContextSettings
    from statek_sim.agent.context.manager import compacted as compacted
    from statek_sim.agent.context.wire_check import WireFault as WireFault
    from statek_sim.agent.context.wire_check import WireRule as WireRule
    from statek_sim.agent.context.wire_check import wire_faults as wire_faults

__all__, __getattr__, __dir__ = lazy_exports(__name__)
