"""Checks presets against each rule in their policies, using each scenario that the rule selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from statek_sim.backends.run import load_for
from statek_sim.executors.limits import WatchdogLimits
from statek_sim.executors.pool import Killed, Pool
from statek_sim.gate.gated_preset import (
    GatedPreset,
    gated_preset,
    idle_values,
    require_unshadowed,
    shown_path,
)
from statek_sim.gate.judge import judge
from statek_sim.gate.policy import GENERAL, Policy, Rule, read_policy, selected, shipped_policy
from statek_sim.gate.trial import Trial
from statek_sim.gate.verdict import GateResult, JudgedPreset, Remark, Verdict
from statek_sim.harness.limits import LimitName
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.suite.run import builtin_suites
from statek_sim.usage.pricing import PriceList, load_prices

SHIPPED: Final = "built-in"
"""The name for the built-in workloads, used in place of a path."""

_SUITE: Final = "workloads"


def has_shipped(paths: Sequence[str]) -> bool:
    """Return whether `workloads(paths)` includes the built-in workloads."""
    return not paths or SHIPPED in paths


def workloads(paths: Sequence[str]) -> tuple[Scenario, ...]:
    """Return the scenarios in these files and folders; `SHIPPED` or no path means the built-in workloads.

    Raises `BadScenario` with a `path:line: message` line per problem.
    """
    shipped = builtin_suites() / _SUITE
    return load_or_fail([shipped if path == SHIPPED else Path(path) for path in paths or (SHIPPED,)])


class Judged(Protocol):
    """A pending verdict: a `Case` or a `BaselineCase`."""

    @property
    def preset(self) -> GatedPreset:
        """The preset to check."""

    @property
    def rule(self) -> str:
        """The rule's name."""

    @property
    def scenario(self) -> str:
        """`suite/scenario[profile]`."""

    @property
    def tags(self) -> tuple[str, ...]:
        """The scenario's tags."""

    def verdict(self) -> Verdict:
        """Run the scenario as often as the rule requires, and return the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A pending verdict: a preset, a rule in its policy, and a scenario that the rule selects."""

    preset: GatedPreset
    demand: Rule
    trial: Trial
    prices: PriceList | None

    @property
    def rule(self) -> str:
        """The rule's name."""
        return self.demand.name

    @property
    def scenario(self) -> str:
        """`suite/scenario[profile]`."""
        return self.trial.name

    @property
    def tags(self) -> tuple[str, ...]:
        """The scenario's tags."""
        return tuple(self.trial.scenario.tags)

    def verdict(self) -> Verdict:
        """Run the scenario as often as the rule requires, and return the verdict."""
        return judge(self.trial, self.preset, self.demand, prices=self.prices)


def policy_for(preset: str, path: Path | None, *, on_shipped: bool) -> Policy:
    """Return the policy in the file at `path`, or this preset's built-in policy if `path` is None.

    Built-in presets' policies need the built-in workloads. Without these (`on_shipped` is False), the general policy
    is used.
    """
    if path is not None:
        return read_policy(path)
    return read_policy(shipped_policy(preset if on_shipped else GENERAL))


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan:
    """The gate's validated input: presets, their policies keyed by preset name, and remarks."""

    presets: tuple[GatedPreset, ...]
    policies: Mapping[str, Policy]
    remarks: tuple[Remark, ...]


def gate_plan(
    names: Sequence[str],
    *,
    policy: Path | None,
    folder: Path,
    on_shipped: bool = True,
    allow_defaults: bool = False,
) -> GatePlan:
    """Return the plan for the presets named `names`.

    `folder` is STATEK's working folder, whose `.env` may change the limits. `on_shipped` means that the scenarios
    include the built-in workloads. Raises `BadInput`, with a line per problem, for an invalid preset or policy. A
    preset file without limits, which may be truncated, is invalid unless `allow_defaults` is set.
    """
    presets = tuple(gated_preset(name) for name in dict.fromkeys(names))
    if not allow_defaults:
        for preset in presets:
            preset.require_limits()
    shadowed = [remark for preset in presets for remark in require_unshadowed(preset, folder)]
    idle = [remark for preset in presets for remark in idle_values(preset)]
    return GatePlan(
        presets=presets,
        policies={preset.name: policy_for(preset.name, policy, on_shipped=on_shipped) for preset in presets},
        remarks=(*shadowed, *idle),
    )


def judge_presets(
    plan: GatePlan,
    scenarios: Sequence[Scenario],
    *,
    profile: Profile,
    watchdog: WatchdogLimits | None = None,
) -> GateResult:
    """Return a plan's verdicts on all scenarios that support the profile, and its remarks.

    With a `watchdog`, scenarios run in worker processes, and a scenario that exceeds the watchdog's limits fails every
    rule. Raises `BadInput` for a rule that selects no scenario, or a scenario that cannot test what a rule requires.
    """
    return GateResult(
        profile=profile,
        presets=tuple(judged(preset, plan.policies[preset.name]) for preset in plan.presets),
        verdicts=_verdicts(tuple(cases(plan, scenarios, profile=profile)), watchdog),
        remarks=plan.remarks,
    )


@dataclass(frozen=True, slots=True)
class _Judge:
    """A worker process's task: returns the verdicts on the cases at `places`, which share a scenario's runs."""

    cases: Sequence[Judged]

    def __call__(self, places: Sequence[int]) -> list[Verdict]:
        return [self.cases[place].verdict() for place in places]


def _verdicts(found: Sequence[Case], watchdog: WatchdogLimits | None) -> tuple[Verdict, ...]:
    """Return the verdict on each case in order; with a watchdog, use worker processes."""
    if watchdog is None:
        return tuple(case.verdict() for case in found)
    groups: dict[str, list[int]] = {}
    for place, case in enumerate(found):
        groups.setdefault(case.scenario, []).append(place)
    verdicts: dict[int, Verdict] = {}
    pool = Pool(
        _Judge(found), limits=watchdog, prepare=partial(load_for, [case.trial.scenario for case in found])
    )
    if not pool.possible:
        return tuple(case.verdict() for case in found)
    with pool:
        for places, came in zip(
            groups.values(), pool.map((places,) for places in groups.values()), strict=True
        ):
            outcomes = [killed(found[place], came) for place in places] if isinstance(came, Killed) else came
            verdicts |= zip(places, outcomes, strict=True)
    return tuple(verdicts[place] for place in range(len(found)))


class WatchedJudge:
    """Checks one case at a time in a worker process, which `close` ends.

    A scenario that was killed fails its other rules without running again.
    """

    def __init__(self, found: Sequence[Judged], limits: WatchdogLimits) -> None:
        # Compare by identity: comparing cases would compare whole scenarios.
        self._places = {id(case): place for place, case in enumerate(found)}
        self._killed: dict[str, Killed] = {}
        self._pool = Pool(_Judge(found), limits=limits, workers=1)

    def verdict(self, case: Judged) -> Verdict:
        """Return the verdict on one of the cases, computed in this process if workers are unavailable."""
        if not self._pool.possible:
            return case.verdict()
        if case.scenario not in self._killed:
            came = self._pool.run([self._places[id(case)]])
            if not isinstance(came, Killed):
                return came[0]
            self._killed[case.scenario] = came
        return killed(case, self._killed[case.scenario])

    def close(self) -> None:
        """End the worker process."""
        self._pool.close()


def killed(case: Judged, why: Killed) -> Verdict:
    """Return the failing verdict on a scenario killed by the watchdog."""
    return Verdict(
        preset=case.preset.name,
        scenario=case.scenario,
        tags=case.tags,
        rule=case.rule,
        passed=False,
        reason=f"`{case.preset.name}`: `{case.scenario}` was {why}",
        place=case.preset.place(None),
    )


def cases(plan: GatePlan, scenarios: Sequence[Scenario], *, profile: Profile) -> Iterator[Case]:
    """Yield all pending verdicts, by preset, then rule, then scenario.

    Raises `BadPolicy` for a rule that selects nothing.
    """
    trials = {
        scenario.id: Trial(scenario, own)
        for scenario in scenarios
        if (own := scenario.under(profile)) is not None
    }
    judged_here = [trial.scenario for trial in trials.values()]
    left_out = [scenario for scenario in scenarios if scenario.id not in trials]
    prices = {policy.prices: _prices(policy) for policy in plan.policies.values()}
    for preset in plan.presets:
        policy = plan.policies[preset.name]
        for rule in policy.rules:
            for scenario in selected(policy, rule, judged_here, left_out):
                yield Case(
                    preset=preset, demand=rule, trial=trials[scenario.id], prices=prices[policy.prices]
                )


def judged(preset: GatedPreset, policy: Policy) -> JudgedPreset:
    """Return a preset's description for the gate's result."""
    limits = preset.limits
    return JudgedPreset(
        name=preset.name,
        path=preset.path,
        policy=shown_path(policy.path),
        limits=tuple((limit, getattr(limits, limit.value)) for limit in LimitName),
        stated=tuple(limit for limit in LimitName if preset.sets(limit)),
        extension=limits.limit_extension_per_completion,
    )


def _prices(policy: Policy) -> PriceList | None:
    return None if policy.prices is None else load_prices(policy.prices)
