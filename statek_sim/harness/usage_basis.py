"""The count compared with the token limit: STATEK's estimate, or the tokens that it approximates.

STATEK has only the first. The others show how a limit would behave if the harness could count.
"""

from __future__ import annotations

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
        limits = harness.limits
        super().__init__(
            limits.max_turns,
            limits.max_exceptions,
            limits.max_consecutive_exceptions,
            limits.max_token_usage,
            limits.limit_extension_per_completion,
            rule=harness.rule,
        )
        self._basis = basis

    def check_after_step(self, job: HarnessSubject) -> None:
        """Raise `LLM_HarnessError` if `job`'s step exceeded a limit, with tokens counted on this basis."""
        if not isinstance(job, MeteredSubject):
            raise TypeError(f"{job!r} has no token usage, which the limit counts")
        super().check_after_step(_OnBasis(job, self._basis))


class _OnBasis:
    """Presents a job to the harness, with another count as its usage."""

    __slots__ = ("_basis", "_job")

    def __init__(self, job: MeteredSubject, basis: UsageBasis) -> None:
        self._job = job
        self._basis = basis

    @property
    def approx_token_usage(self) -> int:
        match self._basis:
            case UsageBasis.MEASURED:
                return self._job.measured_token_usage
            case UsageBasis.REPORTED:
                return self._job.reported_token_usage
            case UsageBasis.BYTES:
                return self._job.approx_token_usage

    @property
    def num_turns(self) -> int:
        return self._job.num_turns

    @property
    def exception_count(self) -> int:
        return self._job.exception_count

    @property
    def max_consecutive_exceptions(self) -> int:
        return self._job.max_consecutive_exceptions

    @property
    def num_completions(self) -> int | None:
        return self._job.num_completions

    @property
    def difficulty_token_extension(self) -> int:
        return self._job.difficulty_token_extension
