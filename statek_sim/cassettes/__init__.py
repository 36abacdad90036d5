"""Cassettes: recorded HTTP conversations with providers, in vcrpy's file format.

`exchange` what is recorded · `jsontext`, `endpoint`, `matching` which requests are the same · `secrets`,
`own_secrets`, `scrub`, `sse` what must not be written · `emit`, `document`, `layout` the file · `index` the file read
before · `tape` all recordings by request · `nearest` what a miss tells · `session` one test's or one run's use of a
cassette · `tap`, `httpx_tap`, `aiohttp_tap` vcrpy, which puts a session between HTTP clients and the network · `scan`,
`orphans` look after files.
"""
