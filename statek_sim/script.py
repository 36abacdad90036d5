"""More kinds of scripted reply; `statek_sim` exports the most common ones, such as `text` and `tool_call`.

These functions return a `Reply`, whose methods add usage, delays and conditions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.providers.script import Reply as Reply
    from statek_sim.providers.script import ReplyFunction as ReplyFunction
    from statek_sim.providers.script import ScriptedCall as ScriptedCall
    from statek_sim.providers.script import ScriptEntry as ScriptEntry
    from statek_sim.providers.script import UsageKind as UsageKind
    from statek_sim.providers.script import computed as computed
    from statek_sim.providers.script import embedding as embedding
    from statek_sim.providers.script import raw_stream as raw_stream
    from statek_sim.providers.script import refusal as refusal
    from statek_sim.providers.wire.reply import ReportedUsage as ReportedUsage

__all__, __getattr__, __dir__ = lazy_exports(__name__)
