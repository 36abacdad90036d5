"""LLM providers: scripted providers that need no network, and clients for real providers.

- `protocol`: the provider interface, and the client's retries
- `script`, `condition`: replies and their conditions
- `scripted`: providers that play a script or call a function
- `delivery`: converts a reply to a raw response
- `mismatch`: error messages for requests without a reply and for unused replies
- `wire`: the OpenAI, Anthropic and Gemini formats
- `http_provider`: a provider over HTTP, its URL and key, and the transport interface
- `live`: requests to real providers
- `network`: blocks real connections
- `contract`: checks any provider
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
