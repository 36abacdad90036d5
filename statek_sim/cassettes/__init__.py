"""Cassettes: recorded HTTP conversations with providers, in vcrpy's file format.

vcrpy takes hold of HTTP clients and reads and writes their messages; here is what it lacks: requests matched by JSON
body, secrets replaced by one rule, readable files, cassettes that several tests share.

`exchange` what is recorded · `bodies` bodies as texts · `secret_rules` what secrets are called and look like ·
`json_strings`, `secret_finder` where they are · `redaction` exchanges without them · `matching` which requests are
the same · `document`, `yaml_values` the file · `tape` all recordings by request, and what a miss tells ·
`store` files, also of several tests · `session` one test's or one run's use of a cassette · `tap` a
session between HTTP clients and the network · `scan` looks for secrets in files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.cassettes.session import CassetteSession as CassetteSession
    from statek_sim.cassettes.session import RecordMode as RecordMode
    from statek_sim.cassettes.tap import tapped as tapped

__all__, __getattr__, __dir__ = lazy_exports(__name__)
