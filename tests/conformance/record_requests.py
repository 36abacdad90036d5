"""Record the requests that the real package sends: `python -m tests.conformance.record_requests [INTERPRETER ...]`.

Without arguments the interpreters of `make conformance` are asked, one for each release.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from statek_sim.backends.installed.peer import Peer, Ran
from tests.conformance.recording import PROFILES
from tests.conformance.requests import Played, Told, cases, write

ROOT: Final = Path(__file__).resolve().parents[2]


def main() -> None:
    """Record the given interpreters, or all."""
    default = [str(ROOT / f".venv-statek-{version}" / "bin" / "python") for version in PROFILES]
    for python in sys.argv[1:] or default:
        with Peer(python) as peer:
            profile = PROFILES[peer.version]
            requests = {
                name: _requests(peer, name, profile)
                for name, (scenario, _) in cases().items()
                if profile in scenario.profiles
            }
            print(write(peer.version, requests))


def _requests(peer: Peer, name: str, profile: str) -> Told:
    scenario, extra = cases()[name]
    played = Played(scenario, extra)
    outcome = peer.run(scenario, profile, exchanges=played)
    if not isinstance(outcome, Ran) or outcome.facts["error"]:
        raise SystemExit(f"{name}: {outcome}")
    return played.told()


if __name__ == "__main__":
    main()
