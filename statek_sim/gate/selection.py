"""Which scenarios a rule judges. A rule that judges none is wrong: it could not fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadPolicy, BadScenario
from statek_sim.gate.policy import Must, Policy, Rule, Selection
from statek_sim.scenario.schema import Scenario


def selected(policy: Policy, rule: Rule, scenarios: Sequence[Scenario]) -> tuple[Scenario, ...]:
    """Return the scenarios that `rule` judges, in the order given.

    Raises `BadPolicy` (`path:line`) when there are none or a name or tag is unknown, and `BadScenario` when one of them
    does not say what the rule counts from.
    """
    place = f"{policy.path}:{rule.line}: rule {rule.name!r}"
    problems = list(_unknown(rule.selection, scenarios))
    if problems:
        raise BadPolicy("\n".join(f"{place}: {problem}" for problem in problems))
    found = tuple(scenario for scenario in scenarios if _fits(rule.selection, scenario))
    if not found:
        raise BadPolicy(
            f"{place}: selects none of {len(scenarios)} scenarios, so it could not fail; change select, or judge other "
            "scenarios with --scenarios"
        )
    for scenario in found:
        _require_goes_bad(rule, scenario)
    return found


def _fits(selection: Selection, scenario: Scenario) -> bool:
    if not set(selection.without_tags).isdisjoint(scenario.tags):
        return False
    if not selection.tags and not selection.scenarios:
        return True
    named = not {scenario.id, _name(scenario)}.isdisjoint(selection.scenarios)
    return named or not set(selection.tags).isdisjoint(scenario.tags)


def _unknown(selection: Selection, scenarios: Sequence[Scenario]) -> Iterable[str]:
    tags = {tag for scenario in scenarios for tag in scenario.tags}
    for tag in selection.tags:
        if tag not in tags:
            yield f"no scenario has the tag {tag!r}.{suggestion(tag, tags)}".removesuffix(".")
    for name in selection.scenarios:
        known = {_name(one) if "/" in name else one.id for one in scenarios}
        if name not in known:
            yield f"there is no scenario {name!r}.{suggestion(name, known)}".removesuffix(".")


def _require_goes_bad(rule: Rule, scenario: Scenario) -> None:
    if rule.must is Must.STOP and rule.counts and not scenario.goes_bad:
        raise BadScenario(
            f"{scenario.path}:{scenario.line}: scenario {scenario.id!r}: rule {rule.name!r} counts from the turn on "
            "which a job goes bad; expected goes_bad, like {main: 3}"
        )


def _name(scenario: Scenario) -> str:
    return f"{scenario.suite}/{scenario.id}"
