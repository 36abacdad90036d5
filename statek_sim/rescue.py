"""Rescue parsing: turns a reply that is a call written as text into a tool call, or a refusal (docs/rescue.md).

`rescue` reads a whole reply, `RescueStream` one that arrives in pieces.
"""

from statek_sim.agent.rescue import (
    DIALECTS,
    Call,
    Limits,
    Reason,
    Reformat,
    Refusal,
    Rescued,
    RescueStream,
    Span,
    dialect_called,
    dialect_of,
    rescue,
)

__all__ = [
    "DIALECTS",
    "Call",
    "Limits",
    "Reason",
    "Reformat",
    "Refusal",
    "RescueStream",
    "Rescued",
    "Span",
    "dialect_called",
    "dialect_of",
    "rescue",
]
