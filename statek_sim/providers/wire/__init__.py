"""Wire formats: what goes over the wire to a provider and back, as pure functions.

`format` the interface that all share · `formats` which provider speaks which · `request`, `reply` what bodies
say, in one shape for all formats · `encoding` compact JSON and server-sent events · `parameters` which of a request's
parameters are heeded · `openai`, `responses`, `anthropic`, `gemini` the formats. STATEK does not speak `responses`.

`openai_client` and its kin do what STATEK does, byte for byte; `openai` and its kin do what a provider does, and are
the whole format together with the client's side. The scripted provider, the cassettes and the fake server use the same
functions.
"""
