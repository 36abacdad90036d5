"""Finds the STATEK_MAX_TOKEN_USAGE that keeps real usage within a budget, on a team's own traffic.

STATEK's limit is compared with an estimate, after a call. So for each scenario, the module finds the largest limit with
which no job uses more than the budget, including the call that exceeds the limit, by running the scenario again. A
scenario that stays within the budget without a limit has no such value; its limit is projected from the rate of its
jobs (`projected`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from statek_sim.analysis.limits import TOKENS, Ending, Replay
from statek_sim.errors import BadInput
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.harness.usage_basis import UsageBasis


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioLimit:
    """One scenario: the largest limit that keeps its jobs within the budget.

    `limit` is None if the first call alone exceeds the budget. `usage` is the largest real usage of one of its jobs
    without a token limit, `estimate` that job's estimate.
    """

    scenario: str
    limit: int | None
    projected: bool
    usage: int
    estimate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A job stopped by the recommended limit: after `calls` of the `of` calls that it makes without one.

    `usage` is its usage by then. `needlessly`: without the limit it would have stayed within the budget.
    """

    scenario: str
    job: str
    calls: int
    of: int
    usage: int
    needlessly: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The result. `limit` keeps a share `keep` of the scenarios within `budget` tokens on `basis`.

    `over` are scenarios that still exceed the budget; `unknown` those whose provider did not report every call.
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
    """Return the limit for this traffic.

    Raises `BadInput` if no scenario is usable: none was answered, none was reported, or none can be kept within the
    budget.
    """
    free = {replay.name: replay.endings(_limits(replay, None)) for replay in replays}
    usable = [replay for replay in replays if _worst(free[replay.name], basis) is not None]
    found = [_scenario_limit(replay, free[replay.name], budget, basis) for replay in usable]
    values = sorted(scenario.limit for scenario in found if scenario.limit is not None)
    if not values:
        raise BadInput(
            f"--budget-tokens {budget}: no scenario of {len(replays)} has a limit that keeps it within this budget "
            f"on {basis} tokens"
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
            name for name, endings in free.items() if _worst(endings, basis) is None and _heard(endings)
        ),
    )


def quantile(values: Sequence[int], share: float) -> int:
    """Return the value with at most a `share` of the sorted `values` below it; the smallest for 0."""
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
    """Return the budget in STATEK's estimate at the rate of the job with the lowest one."""
    rates = [(ending.approx_tokens, ending.tokens(basis) or 0) for ending in free.values() if ending.calls]
    return min(budget * approx // real for approx, real in rates if real)


def _largest(replay: Replay, free: Mapping[str, Ending], budget: int, basis: UsageBasis) -> int | None:
    """Return the largest limit with which no job exceeds the budget, by bisection; None if even 0 fails."""

    def kept(limit: int) -> bool:
        worst = _worst(replay.endings(_limits(replay, limit)), basis)
        return worst is None or (worst.tokens(basis) or 0) <= budget

    if not kept(0):
        return None
    low, high = 0, max(ending.approx_tokens for ending in free.values())
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def _effect(
    replays: Sequence[Replay],
    free: Mapping[str, Mapping[str, Ending]],
    limit: int,
    budget: int,
    basis: UsageBasis,
) -> tuple[tuple[Stopped, ...], tuple[str, ...]]:
    """Run everything under the limit: return the jobs that it stops, and the scenarios that still exceed the budget."""
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


def _heard(endings: Mapping[str, Ending]) -> bool:
    return any(ending.calls for ending in endings.values())


def _worst(endings: Mapping[str, Ending], basis: UsageBasis) -> Ending | None:
    """Return the job with the largest real usage; None if none was answered or one's is unknown."""
    answered = [ending for ending in endings.values() if ending.calls]
    if not answered or any(ending.tokens(basis) is None for ending in answered):
        return None
    return max(answered, key=lambda ending: ending.tokens(basis) or 0)
