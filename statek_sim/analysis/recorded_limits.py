"""The STATEK_MAX_TOKEN_USAGE that keeps recorded conversations within a budget.

A recording has no job that could be run again, and needs none: STATEK stops after the first call whose estimate is over
the limit, and the estimate after each call is known. What a conversation would have done beyond its recording is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statek_sim.analysis.calibration import Calibration, ScenarioLimit, Stopped, bootstrap, quantile
from statek_sim.analysis.conversations import Conversation
from statek_sim.errors import BadInput
from statek_sim.harness.usage_basis import UsageBasis

UNIT = "conversation"
JOB = "recorded"


def calibrate_recorded(
    conversations: Sequence[Conversation],
    budget: int,
    *,
    basis: UsageBasis = UsageBasis.REPORTED,
    keep: float = 1.0,
    seed: int = 0,
) -> Calibration:
    """Return the limit for this traffic; `BadInput` when no conversation says anything."""
    usable = [recording for recording in conversations if any(recording.usage(basis) or ())]
    found = tuple(conversation_limit(conversation, budget, basis) for conversation in usable)
    values = sorted(found_limit.limit for found_limit in found if found_limit.limit is not None)
    if not values:
        raise BadInput(
            f"--budget-tokens {budget}: no conversation of {len(conversations)} has a limit that keeps it within this "
            f"budget on {basis} tokens"
        )
    limit = quantile(values, 1 - keep)
    stopped = tuple(_stopped(usable, limit, budget, basis))
    return Calibration(
        budget=budget,
        basis=basis,
        keep=keep,
        limit=limit,
        interval=bootstrap(values, 1 - keep, seed),
        seed=seed,
        scenarios=found,
        stopped=stopped,
        over=tuple(
            conversation.name for conversation in usable if _used(conversation, limit, basis)[1] > budget
        ),
        unknown=tuple(conversation.name for conversation in conversations if conversation not in usable),
        unit=UNIT,
    )


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


def _stopped(
    conversations: Sequence[Conversation], limit: int, budget: int, basis: UsageBasis
) -> Iterator[Stopped]:
    """Yield the conversations that the limit stops, also those of which the stopping call is the last one."""
    for conversation in conversations:
        calls, used = _used(conversation, limit, basis)
        usage = conversation.usage(basis)
        assert usage, conversation.name
        if conversation.estimates()[calls - 1] > limit:
            yield Stopped(
                scenario=conversation.name,
                job=JOB,
                calls=calls,
                of=len(conversation.calls),
                usage=used,
                needlessly=usage[-1] <= budget,
            )


def _used(conversation: Conversation, limit: int, basis: UsageBasis) -> tuple[int, int]:
    """Return how many calls are made under a limit, and what they use."""
    usage = conversation.usage(basis)
    assert usage, conversation.name
    estimates = conversation.estimates()
    calls = next(
        (number for number, estimate in enumerate(estimates, start=1) if estimate > limit), len(estimates)
    )
    return calls, usage[calls - 1]
