"""How a preset's limits affect scenarios.

This module finds where limits stop jobs, where they would stop jobs if tokens were counted with a tokenizer, and the
value that a scenario needs for each limit: the smallest value with which the limit stops no job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from statek_sim.analysis.needs import Checks, needed, watched_run
from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.backends.setup import scenario_harness, settings_of
from statek_sim.errors import RunawayJob, ScriptExhausted, UnmatchedRequest, UnusedEvents, UnusedReplies
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import LIMITS, HarnessLimits, LimitName
from statek_sim.harness.usage_basis import BasisHarness, UsageBasis
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.usage.tokenizers import TokenizerRegistry


class Judgement(StrEnum):
    """How STATEK's estimate affects a job, compared with another token count."""

    SAME = "same"
    FALSE_STOP = "false stop"
    """The estimate stops the job, although the other count would let it continue."""

    LATE_STOP = "late stop"
    """The job continues, although the other count would stop it."""

    UNKNOWN = "not reported"
    """Unknown, because the provider did not report every call in the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How a job ends with another token count, compared with how it ends with STATEK's estimate.

    `turns` and `tokens` (measured) are the differences; negative numbers mean fewer. `at_least` is whether the job
    would have continued but ran out of scripted replies.
    """

    basis: UsageBasis
    judgement: Judgement
    ending: Ending
    turns: int
    tokens: int
    at_least: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStops:
    """A job in a scenario under a preset: how it ends with STATEK's estimate, and with other token counts."""

    scenario: str
    preset: str
    job: str
    limit: int | None
    ending: Ending
    comparisons: tuple[Comparison, ...]

    @property
    def differs(self) -> bool:
        """Whether another token count would change how the job ends."""
        return any(
            comparison.judgement in (Judgement.FALSE_STOP, Judgement.LATE_STOP)
            for comparison in self.comparisons
        )


OTHERS = (UsageBasis.MEASURED, UsageBasis.REPORTED)


def compare_stops(replays: Sequence[Replay]) -> tuple[JobStops, ...]:
    """Run each scenario with every token count, and return a comparison for each job, in order."""
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
    """Return the effect of STATEK's estimate; the job ends as `ending` with it, and as `other` with another count.

    If limits (even different limits) stop the job after the same call with both counts, the effect is the same.
    """
    if ending.calls == other.calls and {ending.stop, other.stop} <= LIMITS:
        return Judgement.SAME
    stopped, would_be = ending.stop == TOKENS, other.stop == TOKENS
    if stopped and (not would_be or other.calls > ending.calls):
        return Judgement.FALSE_STOP
    if would_be and (not stopped or other.calls < ending.calls):
        return Judgement.LATE_STOP
    return Judgement.SAME


SCRIPT_ENDS = "script ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitNeed:
    """The value that a scenario needs for one limit while the preset's other limits apply.

    `needed` is the smallest value with which the limit stops no job, or None if a job never ends without the limit or
    no value is enough, because the run itself assigns a value that is too small.
    `value` is the preset's value (None if unlimited). `then` is how the run ends without the limit, and so with
    `needed`. `stated` is whether the scenario itself sets the limit, in which case presets do not change it.
    """

    limit: LimitName
    value: int | None
    needed: int | None
    then: str
    stated: bool

    @property
    def enough(self) -> bool:
        """Whether the preset's value is large enough for the scenario."""
        return self.value is None or (self.needed is not None and self.value >= self.needed)

    @property
    def used(self) -> float:
        """The fraction of the limit that the scenario needs; infinite if the limit is 0 and too small, 0 if unknown."""
        if self.value is None or not self.needed:
            return 0.0
        return self.needed / self.value if self.value else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """A scenario's outcome under a preset, and the value it needs for each limit.

    `binds` is the limit that first stops a job, or else the limit that the scenario comes closest to, or None.
    `stopped` is whether a limit stops a job, even if the job then continues.
    """

    scenario: str
    preset: str
    verdict: str
    stopped: bool
    binds: LimitName | None
    needs: tuple[LimitNeed, ...]


def sensitivities(replays: Sequence[Replay]) -> tuple[Sensitivity, ...]:
    """Return each scenario's sensitivity, in order."""
    return tuple(map(sensitivity, replays))


def sensitivity(replay: Replay) -> Sensitivity:
    """Return a scenario's outcome and the value it needs for each limit.

    The scenario runs once, and once more for each limit that stops it.
    """
    endings, checks = replay.watched(replay.limits)
    stops = [exceeded.limit for _, exceeded in checks.failed]
    needs = tuple(_need(replay, limit, endings, checks) for limit in LimitName)
    return Sensitivity(
        scenario=replay.name,
        preset=replay.preset or replay.scenario.preset,
        verdict=outcome(endings),
        stopped=bool(stops),
        binds=stops[0] if stops else _closest(needs),
        needs=needs,
    )


def outcome(endings: Mapping[str, Ending]) -> str:
    """Return how a run ended: a limit's name, an error type, `script ends`, or `finishes`."""
    stops = [ending.stop for ending in endings.values() if ending.stop in LIMITS]
    if stops:
        return str(stops[0])
    failed = [ending.failure for ending in endings.values() if ending.failure is not None]
    if failed:
        return failed[0]
    return SCRIPT_ENDS if any(ending.script_ended for ending in endings.values()) else "finishes"


def _need(replay: Replay, limit: LimitName, endings: Mapping[str, Ending], checks: Checks) -> LimitNeed:
    free = replay.with_limit(limit, None)
    if not checks.same_run(free):
        endings, checks = replay.watched(free)
    then = outcome(endings)
    value: int | None = getattr(replay.limits, limit.value)
    return LimitNeed(
        limit=limit,
        value=value,
        needed=None if then == RunawayJob.__name__ else needed(checks, free, limit),
        then=then,
        stated=replay.states(limit),
    )


def _closest(needs: Sequence[LimitNeed]) -> LimitName | None:
    nearest = max(needs, key=lambda need: need.used)
    return nearest.limit if nearest.used else None


TOKENS = LimitName.MAX_TOKEN_USAGE.value

_SCRIPT_ENDS = frozenset({ScriptExhausted.__name__, UnmatchedRequest.__name__})
_IN_ORDER = frozenset({*_SCRIPT_ENDS, UnusedEvents.__name__, UnusedReplies.__name__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a job ended, and its final counts. `stop` is as in the run's record (None for a job that did not end).

    `calls` counts answered calls. `script_ended` is whether the job requested too many replies. `failure` is
    the type of another error that ended the run before the job, such as `RunawayJob`.
    """

    stop: str | None
    calls: int
    turns: int
    exceptions: int
    streak: int
    approx_tokens: int
    measured_tokens: int
    reported_tokens: int | None
    script_ended: bool
    failure: str | None

    def tokens(self, basis: UsageBasis) -> int | None:
        """Return the job's tokens according to one of the counts, or None if the provider did not report every call."""
        match basis:
            case UsageBasis.BYTES:
                return self.approx_tokens
            case UsageBasis.MEASURED:
                return self.measured_tokens
            case UsageBasis.REPORTED:
                return self.reported_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Runs a scenario repeatedly under one profile and preset, with different limits or token counts.

    `tokenizers` take precedence over the included ones. Limits set by the scenario always apply.
    """

    scenario: Scenario
    profile: Profile
    preset: str | None = None
    tokenizers: TokenizerRegistry | None = None

    @property
    def name(self) -> str:
        """`suite/scenario[profile]`."""
        return f"{self.scenario.suite}/{self.scenario.id}[{self.profile}]"

    @property
    def limits(self) -> HarnessLimits:
        """The limits in force: those set by the scenario, and the preset's values for all others."""
        settings = settings_of(self.scenario, preset=self.preset)
        return scenario_harness(self.scenario, self.profile, settings, preset=self.preset).limits

    def states(self, limit: LimitName) -> bool:
        """Return whether the scenario itself sets this limit."""
        return self.scenario.limits.said(limit.value)

    def endings(
        self, limits: HarnessLimits | None = None, basis: UsageBasis = UsageBasis.BYTES
    ) -> Mapping[str, Ending]:
        """Run the scenario and return how each job that was answered or stopped ended, in creation order.

        A script that is too short or has unused replies is not a failure, because different limits end jobs at
        different points.
        """

        def changed(harness: LLM_Harness) -> LLM_Harness:
            kept = harness if limits is None else LLM_Harness.from_limits(limits, rule=harness.rule)
            return kept if basis is UsageBasis.BYTES else BasisHarness(kept, basis)

        record = run_scenario(
            self.scenario, self.profile, preset=self.preset, tokenizers=self.tokenizers, harness=changed
        )
        return _endings(record)

    def watched(self, limits: HarnessLimits) -> tuple[Mapping[str, Ending], Checks]:
        """Run the scenario under these limits, and return its `endings` and its limit checks."""
        record, checks = watched_run(
            self.scenario, self.profile, limits, preset=self.preset, tokenizers=self.tokenizers
        )
        return _endings(record), checks

    def with_limit(self, limit: LimitName, value: int | None) -> HarnessLimits:
        """Return the limits in force with one limit changed; None removes the limit."""
        changes: dict[str, int | None] = {limit.value: value}
        return replace(self.limits, **changes)  # type: ignore[arg-type]  # the limits' own names


def _endings(record: RunRecord) -> Mapping[str, Ending]:
    return {name: _ending(record, job) for name, job in record.jobs.items() if job.llm_calls or job.stop}


def _ending(record: RunRecord, job: JobRecord) -> Ending:
    calls = [call for call in record.calls if call.job == job.name]
    reported = [call.usage.reported_tokens for call in calls]
    known = [tokens for tokens in reported if tokens is not None]
    in_order = record.error is None or record.error.type in _IN_ORDER
    exhausted = record.error is not None and record.error.type in _SCRIPT_ENDS
    return Ending(
        stop=job.stop,
        calls=len(calls),
        turns=job.turns,
        exceptions=job.exceptions,
        streak=job.streak,
        approx_tokens=job.usage.approx_tokens,
        measured_tokens=job.usage.measured_tokens,
        reported_tokens=sum(known) if known and len(known) == len(reported) else None,
        script_ended=exhausted and job.stop is None,
        failure=None if job.stop is not None or record.error is None or in_order else record.error.type,
    )
