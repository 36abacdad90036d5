"""Cassettes: recorded HTTP conversations with providers, in vcrpy's file format.

vcrpy patches HTTP clients and reads and writes their messages. This package adds matching by JSON body, consistent
redaction of secrets, readable files, and cassettes shared by several tests.

- `exchange`: recorded values
- `bodies`: bodies as text
- `secret_patterns`: names and patterns of secrets
- `json_strings`, `secret_detection`: find secrets in text
- `redaction`: removes secrets from exchanges
- `matching`: compares requests
- `document`, `yaml_values`: the file format
- `recording_lookup`: finds the recording for a request
- `store`: files, including shared ones
- `session`: one test's or run's use of a cassette
- `tap`: patches HTTP clients
- `scan`: searches files for secrets
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from statek_sim.exports import lazy_exports

if TYPE_CHECKING:
    from statek_sim.cassettes.session import CassetteSession as CassetteSession
    from statek_sim.cassettes.session import RecordMode as RecordMode
    from statek_sim.cassettes.tap import tapped as tapped

__all__, __getattr__, __dir__ = lazy_exports(__name__)
