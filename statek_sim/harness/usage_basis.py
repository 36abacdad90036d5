"""Harnesses that compare the token limit with a count other than STATEK's estimate.

STATEK has only its estimate. The other counts show which jobs a limit would stop if the harness counted real tokens.
"""

from __future__ import annotations

from dataclasses import astuple
from enum import StrEnum
from typing import Protocol, runtime_checkable

from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import HarnessSubject


class UsageBasis(StrEnum):
    """The count of a job that is compared with the token limit."""

    BYTES = "bytes"
    """`(bytes sent + bytes received) // 4`, as in STATEK."""

    MEASURED = "measured"
    """Tokens of prompts and completions, counted by the model's tokenizer."""

    REPORTED = "reported"
    """Tokens of prompts and completions as reported by the provider; a call without a report counts as 0."""


@runtime_checkable
class MeteredSubject(HarnessSubject, Protocol):
    """The counters of a job that `BasisHarness` reads: those of any harness, and two counts of tokens."""

    @property
    def measured_token_usage(self) -> int:
        """Tokens of the job so far, counted by the model's tokenizer."""

    @property
    def reported_token_usage(self) -> int:
        """Tokens of the job so far, as reported by the provider."""


class BasisHarness(LLM_Harness):
    """A harness that compares the token limit with the count of `basis`, and is otherwise STATEK's.

    On any basis, an increase of the difficulty extends the limit by STATEK's estimate of the usage (behaviour 4.3).
    """

    __slots__ = ("_basis",)

    def __init__(self, harness: LLM_Harness, basis: UsageBasis) -> None:
        super().__init__(*astuple(harness.limits), rule=harness.rule)
        self._basis = basis

    def _usage(self, job: HarnessSubject) -> int:
        if not isinstance(job, MeteredSubject):
            raise TypeError(f"{job!r} has no token usage, which the limit counts")
        match self._basis:
            case UsageBasis.MEASURED:
                return job.measured_token_usage
            case UsageBasis.REPORTED:
                return job.reported_token_usage
            case UsageBasis.BYTES:
                return job.approx_token_usage
