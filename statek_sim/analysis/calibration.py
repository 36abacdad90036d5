"""The STATEK_MAX_TOKEN_USAGE that keeps real usage within a budget, found on a team's own traffic.

STATEK's limit is held against an estimate, after a call. So for each scenario the question is: what is the largest
limit with which none of its jobs uses more than the budget, the call that goes over the limit included? It is answered
by running the scenario again. A scenario that stays within the budget by itself has no such limit; there the budget is
translated at the rate of its own jobs, as if they went on like that (`projected`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.analysis.conversations import Conversation
from statek_sim.analysis.rerun import TOKENS, Ending, Replay
from statek_sim.errors import BadInput
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.harness.usage_basis import UsageBasis

SCENARIO: Final = "scenario"
CONVERSATION: Final = "conversation"
"""What a calibration is over: scenarios that are run again, or recorded conversations."""
RECORDED: Final = "recorded"
"""The name of the job that a conversation stands for."""

RESAMPLES: Final = 2_000
_INTERVAL: Final = (0.025, 0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioLimit:
    """One scenario: the largest limit that keeps its jobs within the budget.

    `limit` is None where no limit does: the first call alone is over the budget. `usage` is the largest real usage of
    one of its jobs without a token limit, `estimate` that job's estimate.
    """

    scenario: str
    limit: int | None
    projected: bool
    usage: int
    estimate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """A job that the recommended limit stops: after `calls` of the `of` calls that it makes without one.

    `usage` is what it had used by then. `needlessly`: without the limit it would have stayed within the budget.
    """

    scenario: str
    job: str
    calls: int
    of: int
    usage: int
    needlessly: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The answer. `limit` keeps a share `keep` of the scenarios within `budget` tokens on `basis`.

    `interval` is the 95 % bootstrap interval of `limit` over scenarios, from `seed`. `over` are scenarios that still
    use more with it; `unknown` those whose provider did not report every call. `unit`: what `scenarios` are, scenarios
    or recorded conversations.
    """

    budget: int
    basis: UsageBasis
    keep: float
    limit: int
    interval: tuple[int, int]
    seed: int
    scenarios: tuple[ScenarioLimit, ...]
    stopped: tuple[Stopped, ...]
    over: tuple[str, ...]
    unknown: tuple[str, ...]
    unit: str


def calibrate(
    replays: Sequence[Replay],
    budget: int,
    *,
    basis: UsageBasis = UsageBasis.MEASURED,
    keep: float = 1.0,
    seed: int = 0,
) -> Calibration:
    """Return the limit for this traffic.

    `BadInput` when no scenario says anything: none was answered, none was reported, or none can be kept.
    """
    free = {replay.name: replay.endings(_limits(replay, None)) for replay in replays}
    usable = [replay for replay in replays if _worst(free[replay.name], basis) is not None]
    return _calibration(
        [_scenario_limit(replay, free[replay.name], budget, basis) for replay in usable],
        lambda limit: _effect(usable, free, limit, budget, basis),
        budget=budget,
        basis=basis,
        keep=keep,
        seed=seed,
        traffic=len(replays),
        unknown=tuple(
            name for name, endings in free.items() if _worst(endings, basis) is None and _heard(endings)
        ),
        unit=SCENARIO,
    )


def calibrate_recorded(
    conversations: Sequence[Conversation],
    budget: int,
    *,
    basis: UsageBasis = UsageBasis.REPORTED,
    keep: float = 1.0,
    seed: int = 0,
) -> Calibration:
    """Return the limit for recorded traffic; `BadInput` when no conversation says anything.

    A recording has no job that could be run again, and needs none: STATEK stops after the first call whose estimate is
    over the limit, and the estimate after each call is known. What a conversation would have done beyond its recording
    is not.
    """
    usable = [recording for recording in conversations if any(recording.usage(basis) or ())]
    return _calibration(
        [conversation_limit(conversation, budget, basis) for conversation in usable],
        lambda limit: _recorded_effect(usable, limit, budget, basis),
        budget=budget,
        basis=basis,
        keep=keep,
        seed=seed,
        traffic=len(conversations),
        unknown=tuple(conversation.name for conversation in conversations if conversation not in usable),
        unit=CONVERSATION,
    )


Effect = tuple[tuple[Stopped, ...], tuple[str, ...]]
"""Which jobs a limit stops, and which scenarios or conversations are over the budget nevertheless."""


def _calibration(
    found: Sequence[ScenarioLimit],
    effect: Callable[[int], Effect],
    *,
    budget: int,
    basis: UsageBasis,
    keep: float,
    seed: int,
    traffic: int,
    unknown: tuple[str, ...],
    unit: str,
) -> Calibration:
    """Return the limit that keeps a share of the limits that were `found`, of so many scenarios in all."""
    values = sorted(found_limit.limit for found_limit in found if found_limit.limit is not None)
    if not values:
        raise BadInput(
            f"--budget-tokens {budget}: no {unit} of {traffic} has a limit that keeps it within this budget "
            f"on {basis} tokens"
        )
    limit = quantile(values, 1 - keep)
    stopped, over = effect(limit)
    return Calibration(
        budget=budget,
        basis=basis,
        keep=keep,
        limit=limit,
        interval=bootstrap(values, 1 - keep, seed),
        seed=seed,
        scenarios=tuple(found),
        stopped=stopped,
        over=over,
        unknown=unknown,
        unit=unit,
    )


def quantile(values: Sequence[int], share: float) -> int:
    """Return the value that at most a `share` of the sorted `values` is below; the smallest for 0."""
    return values[min(int(share * len(values) + 1e-9), len(values) - 1)]


def bootstrap(values: Sequence[int], share: float, seed: int) -> tuple[int, int]:
    """Return the 95 % percentile interval of the quantile over resamples of `values`, the same for a seed.

    Of the smallest value (`share` 0) the lower end is that value: no resample holds a smaller one.
    """
    chance = random.Random(seed)
    drawn = sorted(quantile(sorted(chance.choices(values, k=len(values))), share) for _ in range(RESAMPLES))
    low, high = (quantile(drawn, end) for end in _INTERVAL)
    return low, high


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
    """Return the largest limit with which no job goes over the budget, by bisection; None when not even 0 does."""

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
) -> Effect:
    """Run everything under the limit: which jobs it stops, and which scenarios are over the budget nevertheless."""
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
    """Return the job with the largest real usage; None when none was answered or one's is not known."""
    answered = [ending for ending in endings.values() if ending.calls]
    if not answered or any(ending.tokens(basis) is None for ending in answered):
        return None
    return max(answered, key=lambda ending: ending.tokens(basis) or 0)


# -- recorded conversations -------------------------------------------------------------------------------------


def conversation_limit(conversation: Conversation, budget: int, basis: UsageBasis) -> ScenarioLimit:
    """Return the largest limit that keeps a conversation within the budget, the call over the limit included.

    The call that goes over the budget must not be made: the limit is below the estimate before it. A conversation that
    stays within the budget has no such call; there the budget is translated at its own rate.
    """
    usage, estimates = conversation.usage(basis), conversation.estimates()
    assert usage, conversation.name
    over = next((number for number, used in enumerate(usage) if used > budget), None)
    if over is None:
        limit: int | None = budget * estimates[-1] // usage[-1]
    else:
        limit = estimates[over - 1] - 1 if over and estimates[over - 1] else None
    return ScenarioLimit(
        scenario=conversation.name,
        limit=limit,
        projected=over is None,
        usage=usage[-1],
        estimate=estimates[-1],
    )


def _recorded_effect(
    conversations: Sequence[Conversation], limit: int, budget: int, basis: UsageBasis
) -> Effect:
    """Cut conversations off at the limit, also those of which the call that stops them is the last one."""
    stopped: list[Stopped] = []
    over: list[str] = []
    for conversation in conversations:
        calls, used = _used(conversation, limit, basis)
        usage = conversation.usage(basis)
        assert usage, conversation.name
        if used > budget:
            over.append(conversation.name)
        if conversation.estimates()[calls - 1] > limit:
            stopped.append(
                Stopped(
                    scenario=conversation.name,
                    job=RECORDED,
                    calls=calls,
                    of=len(conversation.calls),
                    usage=used,
                    needlessly=usage[-1] <= budget,
                )
            )
    return tuple(stopped), tuple(over)


def _used(conversation: Conversation, limit: int, basis: UsageBasis) -> tuple[int, int]:
    """Return how many calls are made under a limit, and what they use."""
    usage = conversation.usage(basis)
    assert usage, conversation.name
    estimates = conversation.estimates()
    calls = next(
        (number for number, estimate in enumerate(estimates, start=1) if estimate > limit), len(estimates)
    )
    return calls, usage[calls - 1]
