"""Wire formats: the bodies of requests to providers and of their responses, as pure functions.

- `format`: the common interface, and each provider's format
- `request`, `reply`: body contents in one shape for all formats, and writers for JSON and server-sent events
- `parameters`: supported request parameters
- `openai`, `responses`, `anthropic`, `gemini`: the formats, each with a provider and a client

The clients' requests equal STATEK's byte for byte (STATEK does not use `responses`). The scripted provider, the
cassettes and the fake server use the same functions.
"""
