"""Values as text in traces and records: what an agent would see, and never an exception."""

from __future__ import annotations

from typing import Final

from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.llm_repr import llm_repr

MOST_WORK: Final = 100_000
"""Parts that one text may have; a small value can hold itself a billion times over."""

IN_SHORT: Final = "__told_in_short__"
"""The method of a job or an agent that says what traces tell of it: what agents are shown is all of its members."""

_OF_ONE_PART: Final = frozenset({int, float, bool, type(None)})


def shown(value: object) -> str:
    """Return the text an agent would see; for an object whose own text raises, its class and the error.

    An unfinished subtask handler is such an object: agent code that prints it gets the RuntimeError.
    """
    if type(value) is str:
        return value
    in_short = getattr(type(value), IN_SHORT, None)
    if in_short is not None:
        return str(in_short(value))
    plain = type(value) in _OF_ONE_PART
    budget = None if plain else ExecutionBudget(loop_iterations=MOST_WORK, allocation=10 * MOST_WORK)
    try:
        # A class may give anything as its own text.
        return str(llm_repr(value, budget=budget))
    except BudgetExceeded:
        return f"<{type(value).__name__.rpartition('.')[2]}: too large to show>"
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__.rpartition('.')[2]}: {type(error).__name__}>"
