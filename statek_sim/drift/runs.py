"""Running scenarios under profiles, and what a run came to, in the form in which two runs are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from statek_sim.backends.record import JobRecord, RunRecord
from statek_sim.backends.reference import run_scenario
from statek_sim.conformance.compare import Difference, differences
from statek_sim.conformance.facts import facts_of
from statek_sim.scenario.schema import Limits, Scenario
from statek_sim.semantics import Profile as Rules

SIZES: Final = frozenset({"bytes_sent", "bytes_received", "approx_tokens", "reported_tokens"})
"""Facts of a job that say how much went over the wire; nearly every change of a tool's text changes them."""

LIMITS: Final = frozenset({"max_turns", "max_exceptions", "max_consecutive_exceptions", "max_token_usage"})
"""Stop reasons that are the harness's."""


class Runs:
    """Runs of scenarios, each made once. `preset`: replaces the scenarios' own presets, and their own limits too."""

    def __init__(self, preset: str | None = None) -> None:
        self._preset = preset
        self._made: dict[tuple[str, Rules], RunRecord] = {}

    def of(self, scenario: Scenario, rules: Rules) -> RunRecord:
        """Return the run of a scenario under these rules."""
        key = (scenario.id, rules)
        if key not in self._made:
            self._made[key] = self._run(scenario, rules)
        return self._made[key]

    def _run(self, scenario: Scenario, rules: Rules) -> RunRecord:
        if self._preset is None:
            return run_scenario(scenario, rules)
        bare = scenario.model_copy(update={"limits": Limits()})
        return run_scenario(bare, rules, preset=self._preset)


def behaviour(before: RunRecord, after: RunRecord) -> tuple[Difference, ...]:
    """Return in what two runs differ, but for how much they sent and received."""
    return tuple(
        difference
        for difference in differences(facts_of(before), facts_of(after))
        if _last(difference.field) not in SIZES
    )


def bytes_sent(record: RunRecord) -> int:
    """Return the bytes of all requests of a run."""
    return sum(job.usage.bytes_sent for job in record.jobs.values())


def _last(field: str) -> str:
    return field.rpartition(".")[2]


Stops = Mapping[str, tuple[str, int]]
"""Per job that came to no good end: `limit`, `failure` or `hang` with its reason, and after how many LLM calls."""


def stops(record: RunRecord) -> Stops:
    """Return the jobs of a run that were stopped, failed or hang."""
    found = {name: (_bad_end(job, record), job.llm_calls) for name, job in record.jobs.items()}
    return {name: (end, calls) for name, (end, calls) in found.items() if end}


def _bad_end(job: JobRecord, record: RunRecord) -> str:
    if record.error is not None and record.error.type in ("Livelock", "RunawayJob"):
        # The error is about one job, and says which.
        return f"hang: {record.error.type}" if repr(job.name) in record.error.message else ""
    if job.stop in LIMITS:
        return f"limit: {job.stop}"
    return f"failure: {job.stop}" if job.stop in ("crash", "warmup", "contained") else ""
