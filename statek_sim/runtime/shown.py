"""Values as text in traces and records: what an agent would see, and never an exception."""

from __future__ import annotations

from statek_sim.sandbox.llm_repr import llm_repr


def shown(value: object) -> str:
    """Return the text an agent would see; for an object whose own text raises, its class and the error.

    An unfinished subtask handler is such an object: agent code that prints it gets the RuntimeError.
    """
    try:
        return llm_repr(value)
    except Exception as error:  # noqa: BLE001  # the value's own __str__ or __llm_repr__
        return f"<{type(value).__name__}: {type(error).__name__}>"
