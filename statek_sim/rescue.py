"""Rescue parsing: reads tool calls that a model wrote as plain text, or rejects the text (docs/rescue.md).

`rescue` reads a whole reply. `RescueStream` reads a reply in pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.agent.rescue.formats import DIALECTS as DIALECTS
    from statek_sim.agent.rescue.formats import dialect_called as dialect_called
    from statek_sim.agent.rescue.formats import dialect_of as dialect_of
    from statek_sim.agent.rescue.parser import Reformat as Reformat
    from statek_sim.agent.rescue.parser import RescueStream as RescueStream
    from statek_sim.agent.rescue.parser import rescue as rescue
    from statek_sim.agent.rescue.values import Call as Call
    from statek_sim.agent.rescue.values import Limits as Limits
    from statek_sim.agent.rescue.values import Reason as Reason
    from statek_sim.agent.rescue.values import Refusal as Refusal
    from statek_sim.agent.rescue.values import Rescued as Rescued
    from statek_sim.agent.rescue.values import Span as Span

__all__, __getattr__, __dir__ = lazy_exports(__name__)
