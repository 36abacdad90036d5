"""Rescue parsing of a reply that comes in pieces."""

from __future__ import annotations

from collections.abc import Collection

from statek_sim.agent.rescue.offered import Tools
from statek_sim.agent.rescue.parser import Reformat, rescue
from statek_sim.agent.rescue.values import Limits, Rescued


class RescueStream:
    """Takes a reply in pieces, however it is cut, and gives at its end what `rescue` gives for the whole.

    Nothing is given before the end: whether the reply is the call is known there. No more than `limits.max_bytes` are
    kept.
    """

    def __init__(
        self,
        tools: Tools | None = None,
        *,
        limits: Limits | None = None,
        dialect: str | None = None,
        coerce: bool = False,
        read_only: Collection[str] = (),
    ) -> None:
        self._tools = tools
        self._limits = limits or Limits()
        self._dialect = dialect
        self._coerce = coerce
        self._read_only = read_only
        self._pieces: list[str] = []
        self._kept = 0

    def feed(self, piece: str) -> None:
        """Take the next piece of the reply."""
        if self._kept <= self._limits.max_bytes:
            self._pieces.append(piece)
            self._kept += len(piece)

    def finish(self, *, reformat: Reformat | None = None) -> Rescued:
        """Return what the reply says."""
        return rescue(
            "".join(self._pieces),
            self._tools,
            limits=self._limits,
            reformat=reformat,
            dialect=self._dialect,
            coerce=self._coerce,
            read_only=self._read_only,
        )
