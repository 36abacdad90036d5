"""Wire formats: the data sent to a provider and back, as pure functions.

`format` the common interface, and the format of each provider · `request`, `reply` contents of bodies, in one shape for
all formats, and how JSON and server-sent events are written · `parameters` which request parameters are supported ·
`openai`, `responses`, `anthropic`, `gemini` the formats: the provider's side, and the client's side, which equals
STATEK's byte for byte (STATEK does not use `responses`).

The scripted provider, the cassettes and the fake server use the same functions.
"""
