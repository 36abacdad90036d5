"""One scenario held against the baseline of a preset, apart from all others: what a test item does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from statek_sim.gate.baseline import RULE, Baseline, compared
from statek_sim.gate.gate import Case, GatePlan, judged
from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.verdict import GateResult, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineCase:
    """A scenario that the baseline of a preset has. `cases` are all that judge it now; none: it has vanished."""

    preset: GatedPreset
    scenario: str
    baseline: Baseline
    cases: tuple[Case, ...]
    plan: GatePlan

    @property
    def rule(self) -> str:
        """What the rule is called."""
        return RULE

    @property
    def tags(self) -> tuple[str, ...]:
        """The scenario's tags, if it is still there."""
        return self.cases[0].tags if self.cases else ()

    def verdict(self) -> Verdict:
        """Judge the scenario by every rule and hold what comes of it against the baseline."""
        plan = replace(self.plan, presets=(self.preset,))
        now = GateResult(
            profile=self.baseline.profile,
            presets=(judged(self.preset, plan.policies[self.preset.name]),),
            verdicts=tuple(case.verdict() for case in self.cases),
        )
        [verdict] = [
            verdict
            for verdict in compared(now, {self.preset.name: self.baseline}, plan).verdicts
            if verdict.rule == RULE
        ]
        return verdict


def baseline_cases(
    plan: GatePlan, cases: Iterable[Case], baselines: Mapping[str, Baseline]
) -> Iterator[BaselineCase]:
    """Yield a case for every scenario of every baseline, preset by preset; `cases` are those of the plan."""
    every = list(cases)
    for preset in plan.presets:
        if preset.name in baselines:
            yield from _of_preset(
                plan,
                preset,
                [outcome for outcome in every if outcome.preset == preset],
                baselines[preset.name],
            )


def _of_preset(
    plan: GatePlan, preset: GatedPreset, cases: Sequence[Case], baseline: Baseline
) -> Iterator[BaselineCase]:
    for name, figures in baseline.scenarios.items():
        scenario = f"{name}[{baseline.profile}]"
        yield BaselineCase(
            preset=preset,
            scenario=scenario,
            baseline=replace(baseline, scenarios={name: figures}),
            cases=tuple(case for case in cases if case.scenario == scenario),
            plan=plan,
        )
