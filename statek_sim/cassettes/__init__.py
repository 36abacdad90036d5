"""Cassettes: recorded HTTP conversations with providers, in vcrpy's file format.

vcrpy patches HTTP clients and reads and writes their messages; this package adds what it lacks: requests matched by
JSON body, secrets replaced by one rule, readable files, cassettes shared by several tests.

`exchange` recorded values · `bodies` bodies as texts · `secret_patterns` names and patterns of secrets ·
`json_strings`, `secret_detection` secrets in texts · `redaction` exchanges without secrets · `matching` equality of
requests · `document`, `yaml_values` the file format · `recording_lookup` the recording for a request, or the error ·
`store` files, also shared by several tests · `session` the use of a cassette by one test or run · `tap` patches of HTTP
clients · `scan` search for secrets in files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.cassettes.session import CassetteSession as CassetteSession
    from statek_sim.cassettes.session import RecordMode as RecordMode
    from statek_sim.cassettes.tap import tapped as tapped

__all__, __getattr__, __dir__ = lazy_exports(__name__)
