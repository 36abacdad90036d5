"""Cassettes: recorded HTTP conversations with providers, in vcrpy's file format.

vcrpy patches HTTP clients and reads and writes their messages; this package adds what it lacks: requests matched by
JSON body, secrets replaced by one rule, readable files, cassettes shared by several tests.

`exchange` recorded values · `bodies` bodies as texts · `secret_rules` names and patterns of secrets · `json_strings`,
`secret_finder` where secrets are · `redaction` exchanges without them · `matching` which requests are equal ·
`document`, `yaml_values` the file · `tape` all recordings by request, and the error for a miss · `store` files, also
shared by several tests · `session` one test's or one run's use of a cassette · `tap` a session between HTTP clients and
the network · `scan` searches files for secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.cassettes.session import CassetteSession as CassetteSession
    from statek_sim.cassettes.session import RecordMode as RecordMode
    from statek_sim.cassettes.tap import tapped as tapped

__all__, __getattr__, __dir__ = lazy_exports(__name__)
