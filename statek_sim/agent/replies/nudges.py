"""Nudges: the messages that correct a model after an unusable reply, and their limits.

Source: the agent document §6, component 2.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

PREFIX: Final = "[CORRECTION REQUIRED] "
"""The start of every nudge (agent document §6)."""

ROLE: Final = "user"
"""The role of a nudge (agent document §6: models respond better to corrections in the user role)."""

LIMIT: Final = 3
"""How many consecutive nudges a run may get before it fails (agent document §6, `MAX_RETRIES`)."""

LIMIT_IN_ALL: Final = 12
"""How many nudges a run may get in total, regardless of progress in between."""


class Failure(StrEnum):
    """The faults in a reply that a nudge corrects."""

    INVALID_JSON = "invalid_json"
    MISSING_FIELD = "missing_field"
    INVALID_ARGUMENTS = "invalid_arguments"
    UNKNOWN_TOOL = "unknown_tool"
    WRONG_TOOL = "wrong_tool"
    PREREQUISITE = "prerequisite"
    UNFINISHED = "unfinished"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    NOT_ALONE = "not_alone"
    STUCK = "stuck"


_FORMAT: Final = 'Required format: {{"name": "tool_name", "parameters": {{"key": "value"}}}}'

TEXTS: Final[Mapping[Failure, str]] = {
    Failure.INVALID_JSON: (
        "Your previous response contained invalid JSON. You MUST respond with a valid JSON tool call. "
        + _FORMAT
    ),
    Failure.MISSING_FIELD: (
        "Your tool call is missing the required field '{field}'. "
        "Include '{field}' in your parameters and try again."
    ),
    Failure.INVALID_ARGUMENTS: (
        "The arguments in your call to '{called}' are wrong: {problems}. Correct them and call it again."
    ),
    Failure.UNKNOWN_TOOL: ("There is no tool '{called}' here. The tools you may call now: {offered}."),
    Failure.WRONG_TOOL: (
        "You attempted to call '{called}' but the next required step is '{expected}'. "
        "Call '{expected}' now — do not skip required steps."
    ),
    Failure.PREREQUISITE: "Before '{called}' may be called, '{expected}' has to succeed. Call '{expected}' first.",
    Failure.UNFINISHED: (
        "You answered before the work was done. These steps are still required: {open}. Call '{expected}' now."
    ),
    Failure.EMPTY: "Your previous response was empty. Call a tool, or give the final answer.",
    Failure.TRUNCATED: (
        "Your previous response was cut off before it was complete. Give a shorter one, with one tool call at a time."
    ),
    Failure.REFUSED: "Your previous response could not be used: {reason}.",
    Failure.NOT_ALONE: (
        "Your previous response has text next to a call to '{called}', so the call was not executed: {reason}. "
        "To call the tool, send the call alone, with nothing before or after it. "
        "If you only meant to show it, give your answer again."
    ),
    Failure.STUCK: "{reason}",
}
"""The nudge for each failure; those for invalid_json, missing_field and wrong_tool come from the agent document."""


class _Gaps(dict[str, Any]):
    """The details for a nudge; a missing one becomes a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def nudge_text(failure: Failure, details: Mapping[str, object]) -> str:
    """Return the nudge for a failure; a missing detail is shown as `?`."""
    return PREFIX + string.Formatter().vformat(TEXTS[failure], (), _Gaps(details))


@dataclass(slots=True)
class NudgeBudget:
    """Counts a run's nudges. At most `limit` are given in a row; the next failure ends the run.

    A turn in which a tool returns something new resets `in_a_row`. `in_all` only grows, up to `limit_in_all` (None: no
    limit).
    """

    limit: int = LIMIT
    limit_in_all: int | None = LIMIT_IN_ALL
    in_a_row: int = 0
    in_all: int = 0

    def saved(self) -> dict[str, object]:
        """Return the counts, as values that a checkpoint can store."""
        return {"in_a_row": self.in_a_row, "in_all": self.in_all}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore state returned by `saved`."""
        self.in_a_row, self.in_all = saved["in_a_row"], saved["in_all"]

    @property
    def given(self) -> str:
        """The exhausted limit in words, such as `3 retries`, for the message that ends the run."""
        return f"{self.in_all} retries in all" if self._all_given else f"{self.limit} retries"

    @property
    def _all_given(self) -> bool:
        return self.limit_in_all is not None and self.in_all >= self.limit_in_all

    def take(self) -> int | None:
        """Return the number of this nudge, from 1, or None if no nudges are left."""
        if self._all_given or self.in_a_row >= self.limit:
            return None
        self.in_a_row += 1
        self.in_all += 1
        return self.in_a_row

    def went_well(self, *, progress: bool) -> None:
        """Record a reply without a failure; `progress`: a tool returned something new."""
        if progress:
            self.in_a_row = 0
