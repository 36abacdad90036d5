"""Harnesses that compare the token limit with a count other than STATEK's estimate.

STATEK has only its estimate. Use the other counts to see which jobs a limit would stop if the harness counted
real tokens.
"""

from __future__ import annotations

from dataclasses import astuple
from enum import StrEnum
from typing import Protocol, runtime_checkable

from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import HarnessSubject


class UsageBasis(StrEnum):
    """Which of a job's token counts is compared with the token limit."""

    BYTES = "bytes"
    """`(bytes sent + bytes received) // 4`, as in STATEK."""

    MEASURED = "measured"
    """Prompt and completion tokens, counted with the model's tokenizer."""

    REPORTED = "reported"
    """Prompt and completion tokens as reported by the provider; a call without reported usage counts as zero."""


@runtime_checkable
class MeteredSubject(HarnessSubject, Protocol):
    """The job counters that `BasisHarness` reads: the counters for every harness, and two token counts."""

    @property
    def measured_token_usage(self) -> int:
        """Tokens used by the job so far, counted with the model's tokenizer."""

    @property
    def reported_token_usage(self) -> int:
        """Tokens used by the job so far, as reported by the provider."""


class BasisHarness(LLM_Harness):
    """A harness that compares the token limit with the count selected by `basis`.

    Otherwise, it works like STATEK's. With any basis, raising the difficulty extends the limit by STATEK's
    usage estimate (behaviour 4.3).
    """

    __slots__ = ("_basis",)

    def __init__(self, harness: LLM_Harness, basis: UsageBasis) -> None:
        super().__init__(*astuple(harness.limits), rule=harness.rule)
        self._basis = basis

    def _usage(self, job: HarnessSubject) -> int:
        if not isinstance(job, MeteredSubject):
            raise TypeError(
                f"{job!r} lacks `measured_token_usage` and `reported_token_usage`, which this limit needs"
            )
        match self._basis:
            case UsageBasis.MEASURED:
                return job.measured_token_usage
            case UsageBasis.REPORTED:
                return job.reported_token_usage
            case UsageBasis.BYTES:
                return job.approx_token_usage
