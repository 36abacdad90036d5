"""What may stand in the place of a scenario's script: HTTP exchanges, recorded or real."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from statek_sim.providers.http_provider import HttpTransport


class Exchanges(Protocol):
    """Where the requests of one run go, on either backend."""

    @property
    def transport(self) -> HttpTransport:
        """What carries the requests."""

    @property
    def environment(self) -> Mapping[str, str]:
        """STATEK's variables of the providers: `<P>_API_URL`, `<P>_API_KEY`, `<P>_USE_PROMPT_CACHING`."""

    def check_finished(self) -> None:
        """Raise a `StatekSimError` when the run left something undone: recordings unplayed, for one."""
