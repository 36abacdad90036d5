"""A fake LLM server: the scripted LLM behind HTTP, for any client in any language.

`exchange` what goes in and comes out · `routes` which path speaks which format · `models` the list of models ·
`known` what need not be worked out again · `llm` decides every answer: no sockets, no clock · `rendering` from a reply
to HTTP · `recorded` answers from a cassette · `fault`, `damage` faults on command · `journal` what was asked ·
`nearest` what to say when the script has no answer · `served` what it plays at the moment

Shells: `protocol` HTTP/1.1 on asyncio, `running` that server in a thread, `asgi` for every ASGI server.
"""
