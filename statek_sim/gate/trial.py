"""A scenario's runs under presets and without limits, and the results that rules need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from statek_sim import progress
from statek_sim.analysis.needs import Checks, unlimited, watched_run
from statek_sim.analysis.needs import needed as needed_of
from statek_sim.backends.call_log import AnsweredCall, billed
from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.backends.setup import scenario_harness, settings_of
from statek_sim.errors import BadInput
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.verdict import Burnt, LimitFigure, Stop
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import LIMITS, HarnessLimits, LimitName, count_for
from statek_sim.harness.settings import StatekSettings
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.trace import JobCreated, JobStopped, LLMReplied
from statek_sim.usage.pricing import PriceList

OWN_ENDS = frozenset({"exit", "final"})
"""`stop` values for a job that ended on its own."""


@dataclass(frozen=True, slots=True)
class _Run:
    """A run: its settings without limits, its limit checks, and its record."""

    settings: StatekSettings
    checks: Checks
    record: RunRecord


@dataclass(slots=True)
class Trial:
    """A scenario under a profile, with a cache of runs shared by rules and presets."""

    scenario: Scenario
    profile: Profile
    _runs: list[_Run] = field(default_factory=list)
    _settings: dict[str, tuple[StatekSettings, HarnessLimits]] = field(default_factory=dict)
    _records: dict[str, RunRecord] = field(default_factory=dict)
    _unlimited: dict[str, _Run] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`suite/scenario[profile]`."""
        return f"{self.scenario.suite}/{self.scenario.id}[{self.profile}]"

    def run(self, preset: GatedPreset) -> RunRecord:
        """Return the scenario's record under a preset."""
        if preset.runs_as not in self._records:
            self._records[preset.runs_as] = self._found(preset, self.limits(preset)).record
        return self._records[preset.runs_as]

    def free_run(self, preset: GatedPreset) -> RunRecord:
        """Return the scenario's record without limits but with the preset's other settings."""
        return self._free(preset).record

    def reaches(self, preset: GatedPreset) -> bool:
        """Return whether a job reaches the turn on which it goes bad when no limit stops it earlier."""
        bad = self.scenario.goes_bad
        if reached(self.run(preset), bad):
            return True
        # More turns than the bad turn, because reactivations also take turns.
        enough = 3 * max(bad.values()) + 10

        def only_turns(harness: LLM_Harness) -> LLM_Harness:
            return LLM_Harness(enough, None, None, None, rule=harness.rule)

        record = run_scenario(self.scenario, self.profile, preset=preset.runs_as, harness=only_turns)
        return bool(reached(record, bad))

    def figures(self, preset: GatedPreset, *, needed: bool) -> tuple[LimitFigure, ...]:
        """Return the scenario's figure for each limit; with `needed`, include the needed value if it finishes."""
        needs = self._needs(preset) if needed else {}
        limits, jobs = self.limits(preset), self.run(preset).jobs.values()
        return tuple(
            LimitFigure(
                limit=limit,
                value=getattr(limits, limit.value),
                used=max((counted(limit, job) for job in jobs), default=0),
                needed=needs.get(limit),
                stated=self.scenario.limits.said(limit.value),
            )
            for limit in LimitName
        )

    def _needs(self, preset: GatedPreset) -> dict[LimitName, int | None]:
        free = self._free(preset)
        if unfinished(free.record) is not None:
            return {}
        limits = self._no_limits(preset)
        return {limit: needed_of(free.checks, limits, limit) for limit in LimitName}

    def _no_limits(self, preset: GatedPreset) -> HarnessLimits:
        return unlimited(self.limits(preset).limit_extension_per_completion)

    def limits(self, preset: GatedPreset) -> HarnessLimits:
        """Return the limits in force: the scenario's own, and the preset's for the rest."""
        return self._read(preset)[1]

    def _read(self, preset: GatedPreset) -> tuple[StatekSettings, HarnessLimits]:
        """Return the settings without limits and the limits in force, from a cache."""
        if preset.runs_as not in self._settings:
            settings = settings_of(self.scenario, preset=preset.runs_as)
            limits = scenario_harness(self.scenario, self.profile, settings, preset=preset.runs_as).limits
            self._settings[preset.runs_as] = _without_limits(settings), limits
        return self._settings[preset.runs_as]

    def _free(self, preset: GatedPreset) -> _Run:
        if preset.runs_as not in self._unlimited:
            self._unlimited[preset.runs_as] = self._found(preset, self._no_limits(preset))
        return self._unlimited[preset.runs_as]

    def _found(self, preset: GatedPreset, limits: HarnessLimits) -> _Run:
        """Return a run under these limits, or an earlier run that cannot differ from it."""
        settings, _ = self._read(preset)
        for run in self._runs:
            if run.settings == settings and run.checks.same_run(limits):
                return run
        progress.afresh()
        record, checks = watched_run(self.scenario, self.profile, limits, preset=preset.runs_as)
        self._runs.append(_Run(settings, checks, record))
        return self._runs[-1]


def stops(record: RunRecord) -> tuple[Stop, ...]:
    """Return every stop by a limit, in the order they happened."""
    answered: dict[str, int] = {}
    found: list[Stop] = []
    for event in record.events:
        if isinstance(event, LLMReplied):
            answered[event.job] = answered.get(event.job, 0) + 1
        elif isinstance(event, JobStopped) and event.reason in LIMITS:
            found.append(Stop(job=event.job, limit=LimitName(event.reason), turn=answered.get(event.job, 0)))
    return tuple(found)


def unfinished(record: RunRecord) -> str | None:
    """Return why a run did not finish, or None if every job ended on its own."""
    killed = stops(record)
    if killed:
        return f"job `{killed[0].job}` is stopped on turn {killed[0].turn} by {killed[0].limit}"
    for job in record.jobs.values():
        if job.status == "DONE" and job.stop not in OWN_ENDS:
            return f"job `{job.name}` ends by {job.stop}"
        if job.status != "DONE":
            return _open(record, job)
    if not record.jobs:
        return (
            "it has no jobs"
            if record.error is None
            else f"{record.error.type}: {_line(record.error.message)}"
        )
    return None


def _open(record: RunRecord, job: JobRecord) -> str:
    if record.error is not None:
        return f"job `{job.name}` has not ended: {record.error.type}: {_line(record.error.message)}"
    return (
        f"job `{job.name}` waits forever"
        if job.status == "SUSPENDED"
        else f"job `{job.name}` has not ended in time"
    )


def counted(limit: LimitName, job: JobRecord) -> int:
    """Return a job's final count for a limit."""
    return count_for(
        limit,
        turns=job.turns,
        exceptions=job.exceptions,
        streak=job.streak,
        tokens=job.usage.approx_tokens,
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def _without_limits(settings: StatekSettings) -> StatekSettings:
    limits = HarnessLimits.__dataclass_fields__
    return StatekSettings(**{name: value for name, value in settings.given.items() if name not in limits})


def burnt(record: RunRecord, goes_bad: Mapping[str, int], prices: PriceList | None) -> Burnt:
    """Return jobs' usage from the turn on which they went bad, including jobs that they started from then on.

    A job that was started by a bad job counts from its first turn. Raises `BadInput` if a model has no price.
    """
    calls = list(_bad_calls(record, goes_bad))
    return Burnt(
        turns=len(calls),
        tokens=sum(call.usage.measured_tokens for call in calls),
        cost=None if prices is None else sum((cost_of(call, prices) for call in calls), Decimal()),
    )


def reached(record: RunRecord, goes_bad: Mapping[str, int]) -> tuple[str, ...]:
    """Return the jobs that reached the turn on which they go bad."""
    return tuple(name for name, turn in goes_bad.items() if len(_of_job(record, name)) >= turn)


def _bad_calls(record: RunRecord, goes_bad: Mapping[str, int]) -> Iterator[AnsweredCall]:
    first = {name: turn for name, turn in goes_bad.items() if name in record.jobs}
    first.update(dict.fromkeys(_started_by(record, first), 1))
    for name, turn in first.items():
        yield from _of_job(record, name)[turn - 1 :]


def _started_by(record: RunRecord, first: Mapping[str, int]) -> Iterator[str]:
    """Yield the jobs started, directly or indirectly, by bad jobs after they went bad."""
    answered: dict[str, int] = {}
    bad = {name for name, turn in first.items() if turn == 1}
    for event in record.events:
        if isinstance(event, LLMReplied):
            answered[event.job] = answered.get(event.job, 0) + 1
            if answered[event.job] == first.get(event.job):
                bad.add(event.job)
        elif isinstance(event, JobCreated) and event.parent in bad:
            bad.add(event.job)
            yield event.job


def _of_job(record: RunRecord, name: str) -> Sequence[AnsweredCall]:
    return [call for call in record.calls if call.job == name]


def cost_of(call: AnsweredCall, prices: PriceList) -> Decimal:
    """Return the provider's price for a call; raises `BadInput` if the model has no price."""
    cost = billed(call, prices)
    if cost is None:
        raise BadInput(
            f"no price for model {call.model!r} of {call.provider}; add a row to the price files or use a "
            "policy without within_cost"
        )
    return cost
