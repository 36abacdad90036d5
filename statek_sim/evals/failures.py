"""The failure classes of a simulated model, and what it did on a turn.

The classes are ToolScan's seven (wrong value, name or type of an argument, a missing or repeated call, a wrong tool,
too few calls, a malformed reply), with what small models do in loops and long contexts beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class FailureClass(StrEnum):
    """One way to be wrong."""

    MALFORMED = "malformed"
    WRONG_TOOL = "wrong_tool"
    MISSING_ARGUMENT = "missing_argument"
    WRONG_ARGUMENT = "wrong_argument"
    SKIPPED_STEP = "skipped_step"
    REPEATED_CALL = "repeated_call"
    EARLY_ANSWER = "early_answer"
    LOOP = "loop"
    CONTEXT_LOSS = "context_loss"


MEANINGS: Final = {
    FailureClass.MALFORMED: "the call is meant and written so that a server's own parser does not read it",
    FailureClass.WRONG_TOOL: "another tool than the right one is called, sometimes one that does not exist",
    FailureClass.MISSING_ARGUMENT: "a required argument is left out or goes by another name",
    FailureClass.WRONG_ARGUMENT: "an argument, or what the final answer cites, has another value than results gave",
    FailureClass.SKIPPED_STEP: "a required step is left out, and the one after it is taken",
    FailureClass.REPEATED_CALL: "a call that was answered is made again",
    FailureClass.EARLY_ANSWER: "prose comes where a call is due: a plan, or an answer made up",
    FailureClass.LOOP: "the same call is made again and again until something breaks the loop",
    FailureClass.CONTEXT_LOSS: "in a long prompt, results at its beginning are no longer heeded",
}
"""What each class is, in a sentence."""

ORDER: Final = (
    FailureClass.CONTEXT_LOSS,
    FailureClass.LOOP,
    FailureClass.EARLY_ANSWER,
    FailureClass.MALFORMED,
    FailureClass.REPEATED_CALL,
    FailureClass.SKIPPED_STEP,
    FailureClass.WRONG_TOOL,
    FailureClass.MISSING_ARGUMENT,
    FailureClass.WRONG_ARGUMENT,
)
"""In this order classes are asked whether they act on a turn: first whether there will be a readable call at all."""


@dataclass(frozen=True, slots=True)
class Act:
    """What a model did on a turn: a failure or none, and whether it was corrected before, and heeded that."""

    turn: int
    place: str
    failure: FailureClass | None
    corrected: bool
    heeded: bool
    how: str = ""
