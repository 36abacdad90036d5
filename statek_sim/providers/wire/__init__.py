"""Wire formats: the bodies of requests to providers and of their answers, as pure functions.

`format` the common interface, and the format of each provider · `request`, `reply` the contents of bodies in one shape
for all formats, and the writing of JSON and server-sent events · `parameters` supported request parameters · `openai`,
`responses`, `anthropic`, `gemini` the formats, each with a provider and a client; the client's requests equal STATEK's
byte for byte (STATEK does not use `responses`).

The scripted provider, the cassettes and the fake server use the same functions.
"""
