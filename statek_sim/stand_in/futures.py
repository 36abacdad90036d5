"""`statek.future.FutureResult` with STATEK's signature."""

from __future__ import annotations

from statek_sim.runtime.state import futures
from statek_sim.stand_in.memo import memo, read_attribute


@memo
class FutureResult(futures.FutureResult):
    """A value that will exist later. What it depends on is not known here, so its condition is asked often."""

    __getattribute__ = read_attribute

    def __init__(self, deps: object, state_num: int) -> None:
        super().__init__(None, state_num)
        self.deps = deps

    @property
    def stored_deps(self) -> object:
        """All of it."""
        return self.deps
