"""`statek.future.FutureResult` with STATEK's signature."""

from __future__ import annotations

from statek_sim.backends.application import FUTURE
from statek_sim.runtime.state import futures
from statek_sim.stand_in.memo import memo


@memo
class FutureResult(futures.FutureResult):
    """A value that will exist later. What it depends on is not known here, so its condition is asked often."""

    def __init__(self, deps: object, state_num: int) -> None:
        super().__init__(None, state_num)
        self.deps = deps

    @property
    def stored_deps(self) -> object:
        """All of it."""
        return self.deps

    def __llm_repr__(self) -> str:
        return FUTURE
