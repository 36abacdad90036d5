"""Further replies of a scripted model, besides those in `statek_sim` itself.

`text`, `tool_call` and the others return a `Reply`; its methods add usage, delays and conditions.
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
