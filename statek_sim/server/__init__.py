"""A fake LLM server: the scripted LLM behind HTTP, for any client in any language.

`exchange` what goes in and comes out · `routes` which path speaks which format · `llm` decides every answer: no
sockets, no clock · `played_script` which reply answers · `known` reads requests and counts their tokens · `demands`
what a request wants of a reply · `rendering` from a reply to HTTP · `embedding` vectors of texts · `conversations`
what clients go on from · `elsewhere` models, journal and refusals · `fault`, `damage` faults on command · `journal`
what was asked · `nearest` what to say when the script has no answer · `recorded` answers from a cassette

Shells: `protocol` HTTP/1.1 on asyncio, `answering` its way back, `running` that server in a thread, `served` what a
test holds of it, `asgi` for every ASGI server.
"""
