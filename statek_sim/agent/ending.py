"""How a unit of work ends: raised anywhere in the loop, caught in one place."""

from __future__ import annotations


class Ended(Exception):  # the end of a run, not an error
    """The run is over for this reason."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail
