"""`FutureResult`, `PostProcessor` and `FinalCheck` of `statek`: classes that applications derive their own from."""

from __future__ import annotations

from dataclasses import dataclass

from statek_sim.runtime.jobs import post_processing as runtime
from statek_sim.runtime.state import futures
from statek_sim.shim.memo import memo, read_attribute


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


@memo
class PostProcessor(runtime.PostProcessor):
    """Looks at each reply of a job before it is stored; derived classes have `process`."""


@memo
@dataclass(eq=False)
class FinalCheck(runtime.FinalCheck, PostProcessor):
    """Has the model look once more at an early final answer."""

    max_llm_actions: int = 3
