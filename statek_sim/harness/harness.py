"""The harness, which stops a job that exceeds a limit ("Harness Policies", When Checks Run)."""

from __future__ import annotations

from typing import Final, Protocol, Self

from statek_sim import errors
from statek_sim.errors import BadSetting
from statek_sim.harness.limits import (
    Exceeded,
    ExtensionRule,
    HarnessLimits,
    HarnessSubject,
    LimitName,
    LimitsInForce,
    exceeded_after_step,
    exceeded_before_step,
    limits_in_force,
)

_KNOWN_SIZE: Final = 1024
"""Maximum completion counts whose limits a harness caches."""


# Same name as its base: consoles and histories show the type's name, and STATEK has one class.
class LLM_HarnessError(errors.LLM_HarnessError):  # noqa: N801  # STATEK's own name
    """A harness limit was exceeded; `limit` is its name."""

    limit: LimitName


class LLM_Harness:  # noqa: N801  # STATEK's own name
    """Checks a job's counters against limits, before and after each of its steps.

    One harness serves all jobs of a process and has no state per job ("Harness Policies", What the Limits Mean). Unlike
    STATEK's, it cannot be changed after construction.
    """

    __slots__ = ("_has_own_rule", "_known", "_limits", "_rule", "_unlimited")

    def __init__(
        self,
        max_turns: int | None,
        max_exceptions: int | None,
        max_consecutive_exceptions: int | None,
        max_token_usage: int | None,
        limit_extension_per_completion: float = 0.0,
        *,
        rule: ExtensionRule | None = None,
    ) -> None:
        """Take STATEK's five arguments, None for an unlimited limit; raise `BadSetting` for an invalid one.

        `rule` is how completions extend a limit. By default it is that of the behaviour profile under which the harness
        is used, or the documents' without one.
        """
        self._has_own_rule = rule is not None
        self._limits = HarnessLimits(
            max_turns=max_turns,
            max_exceptions=max_exceptions,
            max_consecutive_exceptions=max_consecutive_exceptions,
            max_token_usage=max_token_usage,
            limit_extension_per_completion=limit_extension_per_completion,
        )
        limits = (max_turns, max_exceptions, max_consecutive_exceptions, max_token_usage)
        self._unlimited = all(limit is None for limit in limits)
        try:
            self._rule = ExtensionRule.ADDITIVE if rule is None else ExtensionRule(rule)
        except ValueError:
            known = " or ".join(repr(str(known)) for known in ExtensionRule)
            raise BadSetting(f"rule={rule!r}: expected {known}") from None
        self._known: dict[int | None, LimitsInForce] = {}

    @classmethod
    def from_limits(cls, limits: HarnessLimits, *, rule: ExtensionRule = ExtensionRule.ADDITIVE) -> Self:
        """Return a harness for `limits`."""
        return cls(
            limits.max_turns,
            limits.max_exceptions,
            limits.max_consecutive_exceptions,
            limits.max_token_usage,
            limits.limit_extension_per_completion,
            rule=rule,
        )

    def under(self, rule: ExtensionRule) -> LLM_Harness:
        """Return this harness under a profile's `rule`: itself if it was created with an explicit rule."""
        if self._has_own_rule or rule is self._rule:
            return self
        return LLM_Harness.from_limits(self._limits, rule=rule)

    @property
    def limits(self) -> HarnessLimits:
        """The limits as configured, before any extension."""
        return self._limits

    @property
    def rule(self) -> ExtensionRule:
        """How completions extend the limits."""
        return self._rule

    @property
    def max_turns(self) -> int | None:
        """The base limit of LLM turns."""
        return self.limits.max_turns

    @property
    def max_exceptions(self) -> int | None:
        """The base limit of exceptions in total."""
        return self.limits.max_exceptions

    @property
    def max_consecutive_exceptions(self) -> int | None:
        """The base limit of the longest streak of failing turns."""
        return self.limits.max_consecutive_exceptions

    @property
    def max_token_usage(self) -> int | None:
        """The base limit of approximate tokens."""
        return self.limits.max_token_usage

    @property
    def limit_extension_per_completion(self) -> float:
        """How far a completion extends the limits."""
        return self.limits.limit_extension_per_completion

    def check_before_step(self, job: HarnessSubject) -> None:
        """Raise `LLM_HarnessError` if `job` must not take another step: check turns, then exceptions."""
        if self._unlimited:
            return
        exceeded = exceeded_before_step(self._in_force(job.num_completions), job)
        if exceeded is not None:
            raise harness_error(exceeded)

    def check_after_step(self, job: HarnessSubject) -> None:
        """Raise `LLM_HarnessError` if the step of `job` exceeded a limit: check tokens, then exceptions."""
        if self._unlimited:
            return
        exceeded = exceeded_after_step(self._in_force(job.num_completions), job)
        if exceeded is not None:
            raise harness_error(exceeded)

    def _in_force(self, completions: int | None) -> LimitsInForce:
        """Return the limits at `completions`, cached: every step of every job needs them twice."""
        known = self._known.get(completions)
        if known is None:
            if len(self._known) >= _KNOWN_SIZE:
                self._known.clear()
            known = self._known[completions] = limits_in_force(self._limits, completions, self._rule)
        return known


def harness_error(exceeded: Exceeded) -> LLM_HarnessError:
    """Return the error for an exceeded limit."""
    # Set, not passed: an exception with one argument can be copied and pickled.
    error = LLM_HarnessError(exceeded.message)
    error.limit = exceeded.limit
    return error


class Limited(Protocol):
    """Settings with the five values of a harness; None is unlimited."""

    @property
    def max_turns(self) -> int | None:
        """LLM turns."""

    @property
    def max_exceptions(self) -> int | None:
        """Exceptions of LLM turns."""

    @property
    def max_consecutive_exceptions(self) -> int | None:
        """Failing LLM turns in a row."""

    @property
    def max_token_usage(self) -> int | None:
        """Tokens, as STATEK estimates them."""

    @property
    def limit_extension_per_completion(self) -> float:
        """How completions extend a limit."""


def harness_of(limits: Limited, rule: ExtensionRule | None = None) -> LLM_Harness:
    """Return the harness for settings, or for a scenario's limits."""
    return LLM_Harness(
        limits.max_turns,
        limits.max_exceptions,
        limits.max_consecutive_exceptions,
        limits.max_token_usage,
        limits.limit_extension_per_completion,
        rule=rule,
    )
