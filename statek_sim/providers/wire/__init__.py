"""Wire formats: what goes over the wire to a provider and back, as pure functions.

`format` the interface that all share, and which provider speaks which · `request`, `reply` what bodies say, in one
shape for all formats, and how JSON and server-sent events are written · `parameters` which of a request's parameters
are heeded · `openai`, `responses`, `anthropic`, `gemini` the formats: a provider's side, and the client's, which does
what STATEK does, byte for byte (STATEK does not speak `responses`).

The scripted provider, the cassettes and the fake server use the same functions.
"""
