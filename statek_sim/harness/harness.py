"""The harness, which stops a job that exceeds a limit ("Harness Policies", When Checks Run)."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import astuple, replace
from typing import Any, ClassVar, Final, Self

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
"""Maximum number of completion counts for which a harness caches extended limits."""


RULE_IN_USE: Final[ContextVar[ExtensionRule]] = ContextVar("statek_sim_rule", default=ExtensionRule.ADDITIVE)
"""The default extension rule."""


# Same name as its base: consoles and histories show the type's name, and STATEK has one class.
class LLM_HarnessError(errors.LLM_HarnessError):  # noqa: N801  # STATEK's own name
    """Raised when a job exceeds a limit; `limit` is the limit's name."""

    limit: LimitName


class LLM_Harness:  # noqa: N801  # STATEK's own name
    """Checks jobs' counters against limits, before and after each step.

    One harness serves every job in a process and keeps no per-job state ("Harness Policies", What the Limits Mean).
    """

    __slots__ = ("_has_own_rule", "_known", "_limits", "_rule", "_unlimited")

    limits_type: ClassVar[type[HarnessLimits]] = HarnessLimits
    """The class of the limits, which validates them."""

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
        """Create a harness from STATEK's five arguments; None means unlimited.

        Raises `BadSetting` for invalid values. `rule` defines how completions extend a limit. It defaults to
        the active behaviour profile's rule, or to the rule in STATEK's documents if there is no profile.
        """
        self._has_own_rule = rule is not None
        limits = (max_turns, max_exceptions, max_consecutive_exceptions, max_token_usage)
        self._use(self.limits_type(*limits, limit_extension_per_completion))
        try:
            self._rule = RULE_IN_USE.get() if rule is None else ExtensionRule(rule)
        except ValueError:
            known = " or ".join(repr(str(known)) for known in ExtensionRule)
            raise BadSetting(f"rule={rule!r}: expected {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a limit, which applies from the next check; raises `BadSetting` for an invalid value."""
        if name in self.limits_type.__dataclass_fields__:
            self._use(replace(self._limits, **{name: value}))
        else:
            super().__setattr__(name, value)

    def _use(self, limits: HarnessLimits) -> None:
        self._limits = limits
        self._unlimited = all(limit is None for limit in astuple(limits)[:-1])
        self._known: dict[int | None, LimitsInForce] = {}

    @classmethod
    def from_limits(
        cls, limits: HarnessLimits, *, rule: ExtensionRule | None = ExtensionRule.ADDITIVE
    ) -> Self:
        """Return a harness for `limits`; if `rule` is None, the active behaviour profile determines the rule."""
        return cls(*astuple(limits), rule=rule)

    def under(self, rule: ExtensionRule) -> LLM_Harness:
        """Return a harness with the same limits and `rule`, or this harness if it was created with an explicit rule."""
        if self._has_own_rule or rule is self._rule:
            return self
        return LLM_Harness.from_limits(self._limits, rule=rule)

    @property
    def limits(self) -> HarnessLimits:
        """The configured limits, without extensions for completions."""
        return self._limits

    @property
    def rule(self) -> ExtensionRule:
        """How completions extend the limits."""
        return self._rule

    @property
    def max_turns(self) -> int | None:
        """The configured limit on LLM turns; None means unlimited."""
        return self.limits.max_turns

    @property
    def max_exceptions(self) -> int | None:
        """The configured limit on total exceptions; None means unlimited."""
        return self.limits.max_exceptions

    @property
    def max_consecutive_exceptions(self) -> int | None:
        """The configured limit on consecutive failing turns; None means unlimited."""
        return self.limits.max_consecutive_exceptions

    @property
    def max_token_usage(self) -> int | None:
        """The configured limit on tokens, as estimated by STATEK; None means unlimited."""
        return self.limits.max_token_usage

    @property
    def limit_extension_per_completion(self) -> float:
        """How far each completed unit of work extends the limits."""
        return self.limits.limit_extension_per_completion

    def check_before_step(self, job: HarnessSubject) -> None:
        """Raise `LLM_HarnessError` if `job` exceeds a limit on turns or exceptions; turns are checked first."""
        if self._unlimited:
            return
        exceeded = exceeded_before_step(self._in_force(job.num_completions), job)
        if exceeded is not None:
            raise harness_error(exceeded)

    def check_after_step(self, job: HarnessSubject) -> None:
        """Raise `LLM_HarnessError` if `job` exceeds a limit on tokens or exceptions; tokens are checked first."""
        if self._unlimited:
            return
        exceeded = exceeded_after_step(self._in_force(job.num_completions), job, self._usage)
        if exceeded is not None:
            raise harness_error(exceeded)

    def _usage(self, job: HarnessSubject) -> int:
        """Return the token count to compare with the token limit."""
        return job.approx_token_usage

    def _in_force(self, completions: int | None) -> LimitsInForce:
        """Return the limits extended for `completions`. They are cached, because every step needs them twice."""
        known = self._known.get(completions)
        if known is None:
            if len(self._known) >= _KNOWN_SIZE:
                self._known.clear()
            known = self._known[completions] = limits_in_force(self._limits, completions, self._rule)
        return known


def harness_error(exceeded: Exceeded) -> LLM_HarnessError:
    """Return the exception that ends a job for exceeding a limit."""
    # An exception can only be copied and pickled if all its arguments are in `args`, so `limit` is not an argument.
    error = LLM_HarnessError(exceeded.message)
    error.limit = exceeded.limit
    return error
