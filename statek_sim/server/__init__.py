"""A fake LLM server: the scripted LLM behind HTTP, for any client in any language.

`exchange` what goes in and comes out · `routes` which path speaks which format · `llm` decides every answer: no
sockets, no clock · `rendering` from a reply to HTTP · `fault`, `chance`, `damage` faults on command · `journal` what
was asked · `nearest` what to say when the script has no answer · `stage` what it plays at the moment

Shells: `protocol` HTTP/1.1 on asyncio, `running` that server in a thread, `asgi` for every ASGI server.
"""
