"""Policies for evals: a team's rules for an experiment's arms, in a TOML file.

    version = 1

    [[rule]]
    name = "easy work is done"
    arm = "full"
    select = {tiers = ["easy"]}
    right_percent = 90

A rule that matches no run is an error, because it would always pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, Strict

from statek_sim.errors import BadPolicy
from statek_sim.evals.arms import FULL
from statek_sim.evals.experiment import Experiment
from statek_sim.evals.outcome import Outcome
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.summary import LEAST_CLUSTERS, by_scenario, cluster_interval
from statek_sim.gate.policy import lines_of, read_toml
from statek_sim.scenario.part import Items, Part
from statek_sim.scenario.problem import Finding

Percent = Annotated[int, Field(ge=0, le=100)]
Most = Annotated[float, Field(ge=0), Strict(False)]
Words = Items[Annotated[str, Field(min_length=1)]]


class SelectText(Part):
    """Selects the evals that a rule applies to: all conditions must match; without conditions, every eval matches."""

    tiers: Words = ()
    capabilities: Words = ()
    evals: Words = ()


class RuleText(Part):
    """A rule: minimum percentages for an arm's runs of the selected evals, and maximum averages per run.

    `right_surely_percent` is the minimum lower bound of the 95 % interval, clustered by scenario.
    `each_right_percent` is the minimum for each eval.
    """

    name: Annotated[str, Field(min_length=1)]
    arm: Annotated[str, Field(min_length=1)] = FULL
    select: SelectText = SelectText()
    right_percent: Percent | None = None
    right_surely_percent: Percent | None = None
    each_right_percent: Percent | None = None
    completed_percent: Percent | None = None
    wasted_calls: Most | None = None
    measured_tokens: Most | None = None


class PolicyText(Part):
    """The contents of an evals policy file."""

    version: Literal[1]
    rule: Annotated[tuple[RuleText, ...], Field(min_length=1), Strict(False)]


_DEMANDS: Final = tuple(name for name in RuleText.model_fields if name not in ("name", "arm", "select"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalsPolicy:
    """The rules in a file, each with its one-based line number."""

    path: Path
    rules: tuple[tuple[RuleText, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalsVerdict:
    """A rule's verdict on an experiment; `lines` contains a message, `path:line: ...`, for each unmet requirement."""

    rule: str
    passed: bool
    lines: tuple[str, ...]


def read_evals_policy(path: Path) -> EvalsPolicy:
    """Read a policy file; raises `BadPolicy` with a `path:line: problem` line per problem."""
    read, text = read_toml(path, PolicyText, _contradictions)
    lines = lines_of(text, (("rule", n) for n in range(len(read.rule))))
    return EvalsPolicy(path=path, rules=tuple(zip(read.rule, lines, strict=True)))


def _contradictions(policy: PolicyText) -> Iterator[Finding]:
    names: set[str] = set()
    for number, rule in enumerate(policy.rule):
        if rule.name in names:
            yield Finding(("rule", number, "name"), f"rule {rule.name!r}: duplicate name")
        names.add(rule.name)
        if all(getattr(rule, demand) is None for demand in _DEMANDS):
            yield Finding(
                ("rule", number),
                f"rule {rule.name!r}: no requirement; expected one of {', '.join(_DEMANDS)}",
            )


def check_evals_policy(policy: EvalsPolicy, experiment: Experiment, *, option: str = "--arms") -> None:
    """Raise `BadPolicy` for a rule that matches none of an experiment's runs, or too few evals.

    `option` is the name of the option that selects arms.
    """
    problems = []
    arms = [arm.name for arm in experiment.arms]
    for rule, line in policy.rules:
        place = f"{policy.path}:{line}: rule {rule.name!r}"
        if rule.arm not in arms:
            problems.append(
                f"{place}: arm {rule.arm!r} is not run; expected one of {', '.join(arms)}, or {option}"
            )
        judged = len(selected(rule, experiment.suite))
        if not judged:
            problems.append(
                f"{place}: matches none of the {len(experiment.suite)} evals, so it would always pass"
            )
        elif rule.right_surely_percent is not None and judged < LEAST_CLUSTERS:
            problems.append(
                f"{place}: right_surely_percent needs {LEAST_CLUSTERS} or more evals, "
                f"found {judged}; select more evals or use right_percent"
            )
    if problems:
        raise BadPolicy("\n".join(problems))


def selected(rule: RuleText, suite: Sequence[EvalScenario]) -> list[EvalScenario]:
    """Return the evals that a rule selects."""
    chosen = rule.select
    return [
        scenario
        for scenario in suite
        if (not chosen.tiers or scenario.tier in chosen.tiers)
        and (not chosen.capabilities or scenario.capability in chosen.capabilities)
        and (not chosen.evals or scenario.id in chosen.evals)
    ]


def judge_evals(
    policy: EvalsPolicy, experiment: Experiment, outcomes: Sequence[Outcome]
) -> tuple[EvalsVerdict, ...]:
    """Return a verdict for each rule, in file order."""
    check_evals_policy(policy, experiment)
    return tuple(_verdict(policy.path, line, rule, experiment, outcomes) for rule, line in policy.rules)


def _verdict(
    path: Path, line: int, rule: RuleText, experiment: Experiment, outcomes: Sequence[Outcome]
) -> EvalsVerdict:
    wanted = {scenario.id for scenario in selected(rule, experiment.suite)}
    runs = [outcome for outcome in outcomes if outcome.arm == rule.arm and outcome.scenario in wanted]
    broken = tuple(
        f"{path}:{line}: rule {rule.name!r}: [{rule.arm}] {words}" for words in _broken(rule, runs)
    )
    return EvalsVerdict(rule=rule.name, passed=not broken, lines=broken)


def _broken(rule: RuleText, runs: Sequence[Outcome]) -> Iterator[str]:
    """Yield a description of each requirement in a rule that these runs do not meet."""
    groups = by_scenario(runs)
    right = 100 * sum(outcome.passed for outcome in runs) / len(runs)
    completed = 100 * sum(outcome.completed for outcome in runs) / len(runs)
    yield from _too_few("right", right, rule.right_percent, len(runs))
    yield from _too_few("completed", completed, rule.completed_percent, len(runs))
    if rule.right_surely_percent is not None:
        bounds = cluster_interval([[float(outcome.passed) for outcome in group] for group in groups.values()])
        surely = 0.0 if bounds is None else 100 * bounds[0]
        yield from _too_few(
            "right at the lower bound of the interval", surely, rule.right_surely_percent, len(runs)
        )
    for name, group in groups.items() if rule.each_right_percent is not None else ():
        share = 100 * sum(outcome.passed for outcome in group) / len(group)
        yield from _too_few(f"of {name} right", share, rule.each_right_percent, len(group))
    yield from _too_many(
        "wasted calls", sum(outcome.wasted for outcome in runs) / len(runs), rule.wasted_calls
    )
    tokens = sum(outcome.tokens.measured.total for outcome in runs) / len(runs)
    yield from _too_many("measured tokens", tokens, rule.measured_tokens)


def _too_few(what: str, found: float, least: int | None, runs: int) -> Iterator[str]:
    if least is not None and found < least:
        yield f"{found:.1f} % {what} of {runs} runs; expected {least} % or more"


def _too_many(what: str, found: float, most: float | None) -> Iterator[str]:
    if most is not None and found > most:
        yield f"{found:.1f} {what} per run; expected {most:g} or fewer"
