"""What a scripted model can answer, beyond the everyday words of `statek_sim` itself.

`Reply` is what `text`, `tool_call` and the others make; its methods add usage, delays and conditions.
"""

from statek_sim.providers.script import (
    Reply,
    ReplyFunction,
    ScriptedCall,
    ScriptedUsage,
    ScriptEntry,
    UsageKind,
    computed,
    embedding,
    raw_stream,
    refusal,
)

__all__ = [
    "Reply",
    "ReplyFunction",
    "ScriptEntry",
    "ScriptedCall",
    "ScriptedUsage",
    "UsageKind",
    "computed",
    "embedding",
    "raw_stream",
    "refusal",
]
