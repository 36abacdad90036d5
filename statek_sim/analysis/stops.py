"""Where the token limit stops jobs, and where it would if the harness counted tokens instead of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from statek_sim.analysis.rerun import LIMITS, TOKENS, Ending, Replay
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
