"""The same scenario again, under other limits or another count of tokens: how each of its jobs ends then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.backends.setup import scenario_harness, settings_of
from statek_sim.errors import ScriptExhausted, UnmatchedRequest, UnusedEvents, UnusedReplies
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.harness.usage_basis import BasisHarness, UsageBasis
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.usage.tokenizers import TokenizerRegistry

TOKENS = LimitName.MAX_TOKEN_USAGE.value

_SCRIPT_ENDS = frozenset({ScriptExhausted.__name__, UnmatchedRequest.__name__})
_IN_ORDER = frozenset({*_SCRIPT_ENDS, UnusedEvents.__name__, UnusedReplies.__name__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How one job ended: `stop` as in the run's record, None when it did not end; `calls` are answered ones.

    `script_ended`: the job wanted to go on, and the scenario has no further replies for it. `failure`: the type of
    another error that ended the whole run before the job, such as one that never comes to an end.
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
        """Return the job's usage on a basis; None when a call was not reported."""
        match basis:
            case UsageBasis.BYTES:
                return self.approx_tokens
            case UsageBasis.MEASURED:
                return self.measured_tokens
            case UsageBasis.REPORTED:
                return self.reported_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A scenario that can be run again and again under one profile and preset, as its limits or counts change.

    `tokenizers` are asked before the vendored ones. Limits that the scenario states itself are its own and stay.
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
        """The limits of the preset and the scenario together."""
        settings = settings_of(self.scenario, preset=self.preset)
        return scenario_harness(self.scenario, self.profile, settings, preset=self.preset).limits

    def states(self, limit: LimitName) -> bool:
        """Return whether the scenario itself says what this limit is."""
        return self.scenario.limits.said(limit.value)

    def endings(
        self, limits: HarnessLimits | None = None, basis: UsageBasis = UsageBasis.BYTES
    ) -> Mapping[str, Ending]:
        """Run the scenario and return how each job that was answered or stopped ended, in order of creation.

        A script that ends too early or is left unfinished is no failure here: other limits end jobs elsewhere.
        """

        def changed(harness: LLM_Harness) -> LLM_Harness:
            kept = harness if limits is None else LLM_Harness.from_limits(limits, rule=harness.rule)
            return kept if basis is UsageBasis.BYTES else BasisHarness(kept, basis)

        record = run_scenario(
            self.scenario, self.profile, preset=self.preset, tokenizers=self.tokenizers, harness=changed
        )
        return {name: _ending(record, job) for name, job in record.jobs.items() if job.llm_calls or job.stop}

    def with_limit(self, limit: LimitName, value: int | None) -> HarnessLimits:
        """Return the limits with one of them changed."""
        changes: dict[str, int | None] = {limit.value: value}
        return replace(self.limits, **changes)  # type: ignore[arg-type]  # the limits' own names


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
