"""Finds the STATEK_MAX_TOKEN_USAGE that keeps scenarios' real usage within a budget.

STATEK compares its estimate with the limit after each call, so this module runs each scenario with different limits to
find the largest one with which no job exceeds the budget, including its last call. If a scenario stays within the
budget without a limit, the limit is projected from the ratio of estimated to real usage (`projected`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statek_sim.analysis.limits import TOKENS, Ending, Replay
from statek_sim.errors import BadInput
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.harness.usage_basis import UsageBasis


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioLimit:
    """The largest limit with which a scenario's jobs stay within the budget.

    `limit` is None if even the first call exceeds the budget. `usage` is the largest real usage of any job without a
    token limit, and `estimate` is STATEK's estimate for that job.
    """

    scenario: str
    limit: int | None
    projected: bool
    usage: int
    estimate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A job that the recommended limit stops after `calls` of the `of` calls it makes without a limit.

    `usage` is the job's usage when it is stopped. `needlessly` is whether it stays within the budget without a limit.
    """

    scenario: str
    job: str
    calls: int
    of: int
    usage: int
    needlessly: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The recommended `limit`: the fraction `keep` of the scenarios then stays within `budget` tokens.

    `basis` is the token count that the budget applies to. `over` are the scenarios that still exceed the budget, and
    `unknown` are the scenarios whose provider did not report every call.
    """

    budget: int
    basis: UsageBasis
    keep: float
    limit: int
    scenarios: tuple[ScenarioLimit, ...]
    stopped: tuple[Stopped, ...]
    over: tuple[str, ...]
    unknown: tuple[str, ...]


def calibrate(
    replays: Sequence[Replay],
    budget: int,
    *,
    basis: UsageBasis = UsageBasis.MEASURED,
    keep: float = 1.0,
) -> Calibration:
    """Return the limit that keeps the fraction `keep` of these scenarios within `budget` tokens.

    Raises `BadInput` if no scenario has such a limit, for example because the provider reported no tokens.
    """
    free = {replay.name: replay.endings(_limits(replay, None)) for replay in replays}
    usable = [replay for replay in replays if _worst(free[replay.name], basis) is not None]
    found = [_scenario_limit(replay, free[replay.name], budget, basis) for replay in usable]
    values = sorted(scenario.limit for scenario in found if scenario.limit is not None)
    if not values:
        raise BadInput(
            f"--budget-tokens {budget}: no limit keeps any of the {len(replays)} scenarios within this budget in "
            f"{basis} tokens"
        )
    limit = quantile(values, 1 - keep)
    stopped, over = _effect(usable, free, limit, budget, basis)
    return Calibration(
        budget=budget,
        basis=basis,
        keep=keep,
        limit=limit,
        scenarios=tuple(found),
        stopped=stopped,
        over=over,
        unknown=tuple(
            name
            for name, endings in free.items()
            if _worst(endings, basis) is None and _was_answered(endings)
        ),
    )


def quantile(values: Sequence[int], share: float) -> int:
    """Return the largest of the sorted `values` with at most this fraction of values below it (for 0, the smallest)."""
    return values[min(int(share * len(values) + 1e-9), len(values) - 1)]


def _scenario_limit(
    replay: Replay, free: Mapping[str, Ending], budget: int, basis: UsageBasis
) -> ScenarioLimit:
    worst = _worst(free, basis)
    assert worst is not None, replay.name
    usage = worst.tokens(basis) or 0
    projected = usage <= budget
    limit = _projected(free, budget, basis) if projected else _largest(replay, free, budget, basis)
    return ScenarioLimit(
        scenario=replay.name, limit=limit, projected=projected, usage=usage, estimate=worst.approx_tokens
    )


def _projected(free: Mapping[str, Ending], budget: int, basis: UsageBasis) -> int:
    """Convert the budget to STATEK's estimate, using the lowest ratio of estimate to usage among all jobs."""
    rates = [(ending.approx_tokens, ending.tokens(basis) or 0) for ending in free.values() if ending.calls]
    return min(budget * approx // real for approx, real in rates if real)


def _largest(replay: Replay, free: Mapping[str, Ending], budget: int, basis: UsageBasis) -> int | None:
    """Return the largest limit with which no job exceeds the budget, or None if a job exceeds it even with 0."""

    def kept(limit: int) -> bool:
        worst = _worst(replay.endings(_limits(replay, limit)), basis)
        return worst is None or (worst.tokens(basis) or 0) <= budget

    most = max(ending.approx_tokens for ending in free.values())
    first = bisect_left(range(most), True, key=lambda limit: not kept(limit))
    return first - 1 if first else None


def _effect(
    replays: Sequence[Replay],
    free: Mapping[str, Mapping[str, Ending]],
    limit: int,
    budget: int,
    basis: UsageBasis,
) -> tuple[tuple[Stopped, ...], tuple[str, ...]]:
    """Return the jobs that the limit stops, and the scenarios that still exceed the budget."""
    stopped: list[Stopped] = []
    over: list[str] = []
    for replay in replays:
        endings = replay.endings(_limits(replay, limit))
        if any((ending.tokens(basis) or 0) > budget for ending in endings.values()):
            over.append(replay.name)
        for name, ending in endings.items():
            if ending.stop == TOKENS:
                alone = free[replay.name].get(name, ending)
                stopped.append(
                    Stopped(
                        scenario=replay.name,
                        job=name,
                        calls=ending.calls,
                        of=alone.calls,
                        usage=ending.tokens(basis) or 0,
                        needlessly=(alone.tokens(basis) or 0) <= budget,
                    )
                )
    return tuple(stopped), tuple(over)


def _limits(replay: Replay, tokens: int | None) -> HarnessLimits:
    return replay.with_limit(LimitName.MAX_TOKEN_USAGE, tokens)


def _was_answered(endings: Mapping[str, Ending]) -> bool:
    return any(ending.calls for ending in endings.values())


def _worst(endings: Mapping[str, Ending], basis: UsageBasis) -> Ending | None:
    """Return the job with the largest usage, or None if no job was answered or any job's usage is unknown."""
    answered = [ending for ending in endings.values() if ending.calls]
    if not answered or any(ending.tokens(basis) is None for ending in answered):
        return None
    return max(answered, key=lambda ending: ending.tokens(basis) or 0)
