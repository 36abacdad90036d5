"""`statek.executors.post_processor`: the classes as stored ones, which applications derive from."""

from __future__ import annotations

from dataclasses import dataclass

from statek_sim.runtime.jobs import post_processing as runtime
from statek_sim.stand_in.memo import memo


@memo
class PostProcessor(runtime.PostProcessor):
    """Looks at each reply of a job before it is stored; derived classes have `process`."""


@memo
@dataclass(eq=False)
class FinalCheck(runtime.FinalCheck, PostProcessor):
    """Has the model look once more at an early final answer."""

    max_llm_actions: int = 3
