"""Judging presets: every rule of each one's policy, on every scenario that the rule selects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from statek_sim.gate.gated_preset import GatedPreset
from statek_sim.gate.judge import judge
from statek_sim.gate.policy import Policy, Rule
from statek_sim.gate.policy_file import read_policy, shipped_policy
from statek_sim.gate.selection import selected
from statek_sim.gate.shown_path import shown_path
from statek_sim.gate.trial import Trial
from statek_sim.gate.verdict import JudgedPreset, Verdict
from statek_sim.harness.limits import LimitName
from statek_sim.metering.pricing import PriceList, load_prices
from statek_sim.scenario.schema import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One verdict to be given: a preset, a rule of its policy, a scenario that the rule selects."""

    preset: GatedPreset
    rule: Rule
    trial: Trial
    prices: PriceList | None

    def verdict(self) -> Verdict:
        """Run what is needed and judge it."""
        return judge(self.trial, self.preset, self.rule, prices=self.prices)


def policy_for(preset: str, path: Path | None) -> Policy:
    """Return the policy in the file at `path`, or without one the shipped policy for this preset."""
    return read_policy(shipped_policy(preset) if path is None else path)


def cases(
    presets: Sequence[GatedPreset], policies: Mapping[str, Policy], trials: Sequence[Trial]
) -> Iterator[Case]:
    """Yield every verdict to be given: preset by preset, rule by rule, scenarios in their order.

    `policies` has each preset's by its name. Raises `BadPolicy` for a rule that selects nothing.
    """
    by_id = {trial.scenario.id: trial for trial in trials}
    prices = {policy.prices: _prices(policy) for policy in policies.values()}
    for preset in presets:
        policy = policies[preset.name]
        for rule in policy.rules:
            for scenario in _selected(policy, rule, trials):
                yield Case(preset=preset, rule=rule, trial=by_id[scenario.id], prices=prices[policy.prices])


def judged(preset: GatedPreset, policy: Policy) -> JudgedPreset:
    """Return what a result says about a preset."""
    limits = preset.limits
    return JudgedPreset(
        name=preset.name,
        path=preset.path,
        policy=shown_path(policy.path),
        limits=tuple((limit, getattr(limits, limit.value)) for limit in LimitName),
        extension=limits.limit_extension_per_completion,
    )


def _selected(policy: Policy, rule: Rule, trials: Sequence[Trial]) -> Sequence[Scenario]:
    return selected(policy, rule, [trial.scenario for trial in trials])


def _prices(policy: Policy) -> PriceList | None:
    return None if policy.prices is None else load_prices(policy.prices)
