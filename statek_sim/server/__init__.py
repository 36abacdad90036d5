"""A fake LLM server: the scripted LLM behind HTTP, for any client in any language.

`exchange` requests and answers as values · `routes` which path speaks which format · `llm` decides every answer: no
sockets, no clock · `play` one play of a script · `script_lookup` which reply answers, and the message where none does ·
`request_reader` reads requests · `message_validation` messages and tools that providers refuse · `caches` parsed
requests and token counts · `demands` the form that a request demands of a reply · `rendering` from a reply to HTTP ·
`embedding` vectors of texts · `conversations` answers that clients go on from · `fallback_routes` models, journal and
refusals · `fault` faults on command · `journal` the requests so far · `recorded` answers from a cassette

Shells: `protocol` HTTP/1.1 on asyncio, with `header_validation` before it and `response_writer` behind it ·
`server_thread` that server in a thread · `llm_server` what a test holds of it · `asgi` for every ASGI server ·
`mcp_http` MCP servers over HTTP
"""
