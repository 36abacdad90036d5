"""Wire formats: what goes over the wire to a provider and back, as pure functions.

`format` the interface all three share · `formats` which provider speaks which · `request`, `reply` what bodies
say, in one shape for all formats · `tool_call` one requested call · `compact` JSON text as providers write it
· `sse` server-sent events · `parameters` which of a request's
parameters are heeded · `openai`, `responses`, `anthropic`, `gemini` the formats. STATEK does not speak `responses`.

Each format has a `client` side, which does what STATEK does byte for byte, and a `server` side (with `stream`),
which does what a provider does. The scripted provider, the cassettes and the fake server use the same functions.
"""
