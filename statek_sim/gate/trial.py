"""A scenario that is put to the test: run under each preset, and once without limits for what it needs."""

from __future__ import annotations

from dataclasses import dataclass, field

from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.backends.reference import run_scenario
from statek_sim.backends.setup import harness_for, settings_of
from statek_sim.gate.burnt import reached
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.probe import Probe, ProbeHarness
from statek_sim.gate.verdict import LimitFigure, Stop
from statek_sim.harness.harness import LLM_Harness
from statek_sim.harness.limits import HarnessLimits, LimitName
from statek_sim.harness.settings import StatekSettings
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.semantics import profile_named
from statek_sim.trace import JobStopped, LLMReplied

OWN_ENDS = frozenset({"exit", "final"})
"""What `stop` says of a job that came to its own end."""

LIMITS = frozenset(limit.value for limit in LimitName)


@dataclass(slots=True)
class Trial:
    """One scenario under one profile. Remembers its runs: several rules ask about the same ones."""

    scenario: Scenario
    profile: Profile
    _runs: dict[str, RunRecord] = field(default_factory=dict)
    _probes: list[tuple[StatekSettings, Probe]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """`suite/scenario[profile]`."""
        return f"{self.scenario.suite}/{self.scenario.id}[{self.profile}]"

    def run(self, preset: GatedPreset) -> RunRecord:
        """Return what becomes of the scenario under a preset."""
        if preset.runs_as not in self._runs:
            self._runs[preset.runs_as] = self._run(preset)
        return self._runs[preset.runs_as]

    def probe(self, preset: GatedPreset) -> Probe:
        """Return what becomes of it without limits; presets that differ in their limits alone share that run."""
        settings = _without_limits(settings_of(self.scenario, preset=preset.runs_as))
        for known, probe in self._probes:
            if known == settings:
                return probe
        probe = self._probed(preset)
        self._probes.append((settings, probe))
        return probe

    def reaches(self, preset: GatedPreset) -> bool:
        """Return whether a job goes bad, if no limit stops it before."""
        bad = self.scenario.goes_bad
        if reached(self.run(preset), bad):
            return True
        # Reactivations take turns too; some more than asked for do no harm.
        enough = 3 * max(bad.values()) + 10

        def only_turns(harness: LLM_Harness) -> LLM_Harness:
            return LLM_Harness(enough, None, None, None, rule=harness.rule)

        record = run_scenario(self.scenario, self.profile, preset=preset.runs_as, harness=only_turns)
        return bool(reached(record, bad))

    def figures(self, preset: GatedPreset, *, needed: bool) -> tuple[LimitFigure, ...]:
        """Return what the scenario makes of each limit; with `needed`, also what it needs, if it ends by itself."""
        probe = self.probe(preset) if needed else None
        known = probe is not None and not unfinished(probe.record)
        limits = self.limits(preset)
        return tuple(
            LimitFigure(
                limit=limit,
                value=getattr(limits, limit.value),
                used=max((counted(limit, job) for job in self.run(preset).jobs.values()), default=0),
                needed=probe.needed(limit, limits.limit_extension_per_completion)
                if probe and known
                else None,
                stated=self.scenario.limits.said(limit.value),
            )
            for limit in LimitName
        )

    def limits(self, preset: GatedPreset) -> HarnessLimits:
        """Return the limits in force: what the scenario says itself, the rest from the preset."""
        settings = settings_of(self.scenario, preset=preset.runs_as)
        return harness_for(self.scenario.limits, settings, profile_named(self.profile)).limits

    def _run(self, preset: GatedPreset) -> RunRecord:
        # What goes bad is stopped somewhere else under each preset; the rest mostly runs as it does without limits.
        if not self.scenario.goes_bad and self.probe(preset).is_run_under(self.limits(preset)):
            return self.probe(preset).record
        return run_scenario(self.scenario, self.profile, preset=preset.runs_as)

    def _probed(self, preset: GatedPreset) -> Probe:
        made: list[ProbeHarness] = []

        def probing(harness: LLM_Harness) -> LLM_Harness:
            made.append(ProbeHarness(harness.rule))
            return made[0]

        record = run_scenario(self.scenario, self.profile, preset=preset.runs_as, harness=probing)
        return Probe(record, made[0].counted, made[0].rule, made[0].was_read)


def stops(record: RunRecord) -> tuple[Stop, ...]:
    """Return every stop by a limit, in the order in which they happened."""
    answered: dict[str, int] = {}
    found: list[Stop] = []
    for event in record.events:
        if isinstance(event, LLMReplied):
            answered[event.job] = answered.get(event.job, 0) + 1
        elif isinstance(event, JobStopped) and event.reason in LIMITS:
            found.append(Stop(job=event.job, limit=LimitName(event.reason), turn=answered.get(event.job, 0)))
    return tuple(found)


def unfinished(record: RunRecord) -> str | None:
    """Return why a run did not finish, in words, or None: every job came to its own end, whatever it was sent later."""
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
            "it has no job" if record.error is None else f"{record.error.type}: {_line(record.error.message)}"
        )
    return None


def _open(record: RunRecord, job: JobRecord) -> str:
    if record.error is not None:
        return f"job `{job.name}` has not ended: {record.error.type}: {_line(record.error.message)}"
    return (
        f"job `{job.name}` waits for ever"
        if job.status == "SUSPENDED"
        else f"job `{job.name}` has not ended in time"
    )


def counted(limit: LimitName, job: JobRecord) -> int:
    """Return what a job had counted of a limit at its end."""
    match limit:
        case LimitName.MAX_TURNS:
            return job.turns
        case LimitName.MAX_EXCEPTIONS:
            return job.exceptions
        case LimitName.MAX_CONSECUTIVE_EXCEPTIONS:
            return job.streak
        case LimitName.MAX_TOKEN_USAGE:
            return job.usage.approx_tokens


def _line(text: str) -> str:
    return " ".join(text.split())


def _without_limits(settings: StatekSettings) -> StatekSettings:
    kept = settings.model_dump(exclude=set(HarnessLimits.__dataclass_fields__))
    return StatekSettings(**kept)
