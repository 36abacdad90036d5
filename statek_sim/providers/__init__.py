"""LLM providers: scripted ones that need no network, and clients of real ones.

`protocol` the interface of a provider, and the retries of its client · `script`, `condition` replies and their
conditions · `scripted` providers that play a script or call a function · `delivery` conversion of a reply to a raw
answer · `mismatch` error messages for requests without a reply and unused replies · `wire` the formats of OpenAI,
Anthropic and Gemini · `http_provider` a provider behind HTTP, its address and key, and the transport interface · `live`
requests to real providers · `network` a ban on real connections · `contract` a checker for any provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.providers.http_provider import Access as Access
    from statek_sim.providers.http_provider import access_from as access_from
    from statek_sim.providers.live import AsyncHttpLLM as AsyncHttpLLM
    from statek_sim.providers.live import LiveTransport as LiveTransport
    from statek_sim.providers.network import forbid_network as forbid_network
    from statek_sim.providers.protocol import ChatRequest as ChatRequest
    from statek_sim.providers.protocol import Provider as Provider
    from statek_sim.providers.protocol import RawReply as RawReply
    from statek_sim.providers.wire.format import WireFormat as WireFormat
    from statek_sim.providers.wire.format import format_of as format_of
    from statek_sim.providers.wire.reply import WireReply as WireReply

__all__, __getattr__, __dir__ = lazy_exports(__name__)
