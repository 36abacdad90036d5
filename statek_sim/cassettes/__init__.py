"""Cassettes: recorded HTTP conversations with providers, in vcrpy's file format.

`exchange` what is recorded · `jsontext`, `endpoint`, `matching` which requests are the same · `names`, `shapes`,
`own_secrets` what secrets are called and look like · `bodies`, `view`, `members` the texts that are in a body ·
`words`, `elements`, `tables`, `commands` what stands behind a name · `secrets`, `reading`, `scrub` where secrets are,
and exchanges without them · `emit`, `document`, `layout` the file ·
`index` the file read before · `tape` all recordings by request · `nearest` what a miss tells · `session` one test's or
one run's use of a cassette · `tap`, `httpx_tap`, `aiohttp_tap` vcrpy, which puts a session between HTTP clients and the
network · `scan`, `orphans` look after files.
"""
