"""Where the token limit stops jobs, where it would if tokens were counted, and which limit keeps recordings in budget.

A recording has no job that could be run again, and needs none: STATEK stops after the first call whose estimate is over
the limit, and the estimate after each call is known. What a conversation would have done beyond its recording is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from statek_sim.analysis.calibration import Calibration, ScenarioLimit, Stopped, bootstrap, quantile
from statek_sim.analysis.conversations import Conversation
from statek_sim.analysis.rerun import LIMITS, TOKENS, Ending, Replay
from statek_sim.errors import BadInput
from statek_sim.harness.usage_basis import UsageBasis


class Judgement(StrEnum):
    """What the estimate did to a job, seen from another count."""

    SAME = "same"
    FALSE_STOP = "false stop"
    """Stopped, although the other count would have let it go on, for some turns or to its end."""

    LATE_STOP = "late stop"
    """Went on, although the other count would have stopped it."""

    UNKNOWN = "not reported"
    """The provider did not report every call of the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One job under another count. `turns` and `tokens` (measured) are how much further it would have gone.

    Negative ones are how much less far. `at_least`: it would have gone further still, but its script ends there.
    """

    basis: UsageBasis
    judgement: Judgement
    ending: Ending
    turns: int
    tokens: int
    at_least: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStops:
    """One job of a scenario under a preset: how it ended, and how it would have on the other counts."""

    scenario: str
    preset: str
    job: str
    limit: int | None
    ending: Ending
    comparisons: tuple[Comparison, ...]

    @property
    def differs(self) -> bool:
        """Whether another count would have decided otherwise."""
        return any(
            comparison.judgement in (Judgement.FALSE_STOP, Judgement.LATE_STOP)
            for comparison in self.comparisons
        )


OTHERS = (UsageBasis.MEASURED, UsageBasis.REPORTED)


def compare_stops(replays: Sequence[Replay]) -> tuple[JobStops, ...]:
    """Return every job of every replay, in the order given."""
    return tuple(job for replay in replays for job in _jobs(replay))


def _jobs(replay: Replay) -> Iterator[JobStops]:
    before = replay.endings()
    after = {basis: replay.endings(basis=basis) for basis in OTHERS}
    for name, ending in before.items():
        if not ending.calls:
            continue
        yield JobStops(
            scenario=replay.name,
            preset=replay.preset or replay.scenario.preset,
            job=name,
            limit=replay.limits.max_token_usage,
            ending=ending,
            comparisons=tuple(_comparison(basis, ending, after[basis].get(name, ending)) for basis in OTHERS),
        )


def _comparison(basis: UsageBasis, ending: Ending, other: Ending) -> Comparison:
    unknown = basis is UsageBasis.REPORTED and None in (ending.reported_tokens, other.reported_tokens)
    judgement = Judgement.UNKNOWN if unknown else judge(ending, other)
    return Comparison(
        basis=basis,
        judgement=judgement,
        ending=other,
        turns=0 if unknown else other.calls - ending.calls,
        tokens=0 if unknown else other.measured_tokens - ending.measured_tokens,
        at_least=not unknown and other.script_ended,
    )


def judge(ending: Ending, other: Ending) -> Judgement:
    """Return what the estimate did: `ending` is with it, `other` with another count.

    A job that two limits stop after the same call is stopped all the same.
    """
    if ending.calls == other.calls and {ending.stop, other.stop} <= LIMITS:
        return Judgement.SAME
    stopped, would_be = ending.stop == TOKENS, other.stop == TOKENS
    if stopped and (not would_be or other.calls > ending.calls):
        return Judgement.FALSE_STOP
    if would_be and (not stopped or other.calls < ending.calls):
        return Judgement.LATE_STOP
    return Judgement.SAME


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
