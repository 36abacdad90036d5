"""Merging partial scenarios: mappings merge, everything else replaces."""

from __future__ import annotations

from statek_sim.scenario.expect import Expect
from statek_sim.scenario.schema import Profile, Scenario
from statek_sim.values import JSON


def merge(base: JSON, over: JSON) -> JSON:
    """Return `over` merged over `base`: key by key where both are mappings, else `over`, null included."""
    if not isinstance(base, dict) or not isinstance(over, dict):
        return over
    merged = dict(base)
    for key, value in over.items():
        merged[key] = merge(base[key], value) if key in base else value
    return merged


def expectations_for(scenario: Scenario, profile: Profile) -> Expect:
    """Return what `scenario` expects under `profile`: `expect_in` of the profile merged over `expect`."""
    special = scenario.expect_in.get(profile)
    if special is None:
        return scenario.expect
    return Expect.model_validate(merge(_said(scenario.expect), _said(special)))


def _said(expect: Expect) -> JSON:
    fields: dict[str, JSON] = expect.model_dump(exclude_unset=True)
    return fields
