"""The count compared with the token limit: STATEK's estimate, or the tokens that it approximates.

STATEK has only the first. The others show how a limit would behave if the harness could count.
"""

from __future__ import annotations

from dataclasses import astuple
from enum import StrEnum
from typing import Protocol, runtime_checkable

from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import HarnessSubject


class UsageBasis(StrEnum):
    """The count that is used as a job's token usage."""

    BYTES = "bytes"
    """`(bytes sent + bytes received) // 4`, as in STATEK."""

    MEASURED = "measured"
    """Prompts and completions, counted by the model's tokenizer."""

    REPORTED = "reported"
    """Prompts and completions, as the provider reported them; a call without a report counts as 0."""


@runtime_checkable
class MeteredSubject(HarnessSubject, Protocol):
    """A job with its usage in tokens too."""

    @property
    def measured_token_usage(self) -> int:
        """Tokens by the tokenizer, so far."""

    @property
    def reported_token_usage(self) -> int:
        """Tokens as reported, so far."""


class BasisHarness(LLM_Harness):
    """A harness whose token limit is compared with another count; everything else is STATEK's.

    Tokens granted by a higher difficulty stay in STATEK's estimate (behaviour 4.3).
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
