"""Wire formats: pure functions for the bodies of requests and responses.

- `format`: the common interface, and each provider's format
- `request`, `reply`: body content in a common form for all formats, and writers for JSON and server-sent events
- `parameters`: supported request parameters
- `openai`, `responses`, `anthropic`, `gemini`: the formats, each with a provider and a client

The clients' requests are byte-for-byte the same as STATEK's (which does not use `responses`). The scripted provider,
the cassettes and the fake server all use these functions.
"""
