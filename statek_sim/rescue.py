"""Rescue parsing: reads tool calls that a model wrote as plain text, or rejects the text (docs/rescue.md).

`rescue` reads a whole reply. `RescueStream` reads a reply in pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.rescue import DIALECTS as DIALECTS
    from statek_sim.agent.rescue import Call as Call
    from statek_sim.agent.rescue import Limits as Limits
    from statek_sim.agent.rescue import Reason as Reason
    from statek_sim.agent.rescue import Reformat as Reformat
    from statek_sim.agent.rescue import Refusal as Refusal
    from statek_sim.agent.rescue import Rescued as Rescued
    from statek_sim.agent.rescue import RescueStream as RescueStream
    from statek_sim.agent.rescue import Span as Span
    from statek_sim.agent.rescue import dialect_called as dialect_called
    from statek_sim.agent.rescue import dialect_of as dialect_of
    from statek_sim.agent.rescue import rescue as rescue

__all__, __getattr__, __dir__ = lazy_exports(__name__)
