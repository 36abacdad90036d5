"""Runs scenarios: selection, order, and comparison with expectations."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from statek_sim import semantics
from statek_sim.backends.record import RunRecord
from statek_sim.backends.run import run_scenario
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.harness.preset import located_preset
from statek_sim.providers.http_provider import Exchanges
from statek_sim.scenario.load import expectations_for
from statek_sim.scenario.schema import AGENT_PROFILES, PROFILES, STATEK_PROFILES, Profile, Scenario
from statek_sim.semantics import profile_named
from statek_sim.suite.expectations import compare
from statek_sim.suite.result import ScenarioResult
from statek_sim.usage.tokenizers import TokenizerRegistry

_PACKAGE = Path(__file__).parent.parent


def builtin_suites() -> Path:
    """Return the folder of the built-in suites, in the installed package or in the checkout."""
    for folder in (_PACKAGE / "suites_data", _PACKAGE.parent / "scenarios"):
        if folder.is_dir():
            return folder
    raise BadInput(f"{_PACKAGE}: the built-in suites are missing from this installation")


def chosen(
    scenarios: Iterable[Scenario],
    *,
    profiles: Sequence[str] | None = None,
    select: str | None = None,
    tags: Collection[str] = (),
) -> tuple[tuple[Scenario, Profile], ...]:
    """Return the selected scenarios, each with each of its profiles, in file order.

    `profiles` limits the profiles. `select` is a scenario's id, or a case-insensitive part of `suite/id[profile]`. An
    exact id takes precedence, so a scenario can be selected even if another id contains its own. With `tags`, a
    scenario must have one of these tags. Raises `BadInput` for an unknown profile.
    """
    known = PROFILES if profiles is None else tuple(map(profile_known, profiles))
    tagged = [scenario for scenario in scenarios if not tags or not set(tags).isdisjoint(scenario.tags)]
    exact = [scenario for scenario in tagged if select in (scenario.id, f"{scenario.suite}/{scenario.id}")]
    wanted = "" if select is None or exact else select.casefold()
    return tuple(
        (scenario, profile)
        for scenario in exact or tagged
        for profile in PROFILES
        if profile in scenario.profiles and profile in known
        if wanted in f"{scenario.suite}/{scenario.id}[{profile}]".casefold()
    )


def chosen_or_fail(
    scenarios: Sequence[Scenario],
    *,
    profiles: Sequence[str] | None = None,
    select: str | None = None,
    tags: Collection[str] = (),
) -> tuple[tuple[Scenario, Profile], ...]:
    """Return the result of `chosen`; raises `BadInput` if nothing was selected."""
    pairs = chosen(scenarios, profiles=profiles or None, select=select, tags=tags)
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, profiles=profiles, select=select, tags=tags))
    return pairs


def nothing_chosen(
    scenarios: Sequence[Scenario],
    *,
    profiles: Sequence[str] | None = None,
    select: str | None = None,
    tags: Collection[str] = (),
) -> str:
    """Return the error message for an empty selection, suggesting the tag or scenario that may be meant."""
    problem = f"no scenario to run: none of {len(scenarios)} matches the options."
    unnamed = [
        name for name in profiles or () if not any(name in candidate.profiles for candidate in scenarios)
    ]
    known = {scenario.id: scenario for scenario, _ in chosen(scenarios, select=select, tags=tags)}
    other = _of_other_engine(tuple(known.values()), profiles or ())
    if other:
        return f"no scenario to run: {other}"
    if unnamed:
        named = ", ".join(f'"{name}"' for name in unnamed)
        theirs = [profile for profile in PROFILES if any(profile in each.profiles for each in known.values())]
        instead = f", or use --profile {theirs[0]}" if theirs else ""
        return (
            problem
            + f" To include scenarios, add `profiles: [{named}]` to them or to their defaults{instead}"
        )
    known_tags = {tag for scenario in scenarios for tag in scenario.tags}
    for tag in tags:
        problem += "" if tag in known_tags else suggestion(tag, known_tags) or _tags_there_are(known_tags)
    if select is not None and not chosen(scenarios, select=select):
        prefixed = "/" in select
        problem += suggestion(
            select,
            {f"{candidate.suite}/{candidate.id}" if prefixed else candidate.id for candidate in scenarios},
        )
    return problem.removesuffix(".")


_MOST_TAGS: Final = 12
"""Maximum number of tags that an error lists."""


def _tags_there_are(tags: Collection[str]) -> str:
    if not tags:
        return " They have no tags"
    return f" Their tags: {', '.join(sorted(tags))}" if len(tags) <= _MOST_TAGS else ""


def _of_other_engine(scenarios: Sequence[Scenario], profiles: Sequence[str]) -> str:
    """Return why one engine's scenarios cannot run under the other's profiles, or an empty string."""
    engines = {scenario.engine for scenario in scenarios}
    wanted = {"agent" if name in AGENT_PROFILES else "statek" for name in profiles}
    if len(engines) != 1 or len(wanted) != 1 or engines == wanted:
        return ""
    (engine,), (other,) = engines, wanted
    expected = AGENT_PROFILES if engine == "agent" else STATEK_PROFILES
    left_out = (
        "1 scenario for the {} engine is"
        if len(scenarios) == 1
        else f"{len(scenarios)} scenarios for the {{}} engine are"
    )
    return (
        f"profile {', '.join(profiles)} is for the {other} engine, so {left_out.format(engine)} left out; "
        f"expected --profile {' or '.join(filter(None, (', '.join(expected[:-1]), expected[-1])))}"
    )


def run_suite(
    scenarios: Iterable[Scenario],
    *,
    profiles: Sequence[str] | None = None,
    preset: str | None = None,
    seed: int | None = None,
    select: str | None = None,
    tags: Collection[str] = (),
) -> Iterator[ScenarioResult]:
    """Run the selected scenarios, yielding each result as soon as it is ready.

    `preset` and `seed` override every scenario's own, but not limits that a scenario sets itself. Expectations apply to
    the scenario's own preset, so a scenario may fail under another.
    """
    for scenario, profile in chosen(scenarios, profiles=profiles, select=select, tags=tags):
        yield run_one(scenario, profile, preset=preset, seed=seed)


def run_one(
    scenario: Scenario,
    profile: str,
    *,
    preset: str | None = None,
    seed: int | None = None,
    allow_network: bool = False,
    tokenizers: TokenizerRegistry | None = None,
    exchanges: Exchanges | None = None,
) -> ScenarioResult:
    """Run one scenario under one profile and compare; raises `BadInput` for a tool that cannot be imported.

    `exchanges` replaces the scenario's script.
    """
    behaviour = profile_known(profile)
    located = None if preset is None else located_preset(preset)
    started = time.perf_counter()
    record = run_scenario(
        scenario,
        behaviour,
        preset=located,
        seed=seed,
        allow_network=allow_network,
        tokenizers=tokenizers,
        exchanges=exchanges,
    )
    return compared(scenario, behaviour, record, seconds=time.perf_counter() - started, preset=preset)


def compared(
    scenario: Scenario, profile: Profile, record: RunRecord, *, seconds: float, preset: str | None = None
) -> ScenarioResult:
    """Return a run's result from its record."""
    mismatches = compare(record, expectations_for(scenario, profile))
    return ScenarioResult(
        scenario=scenario,
        profile=profile,
        record=record,
        mismatches=mismatches,
        seconds=seconds,
        preset=preset,
    )


def profile_known(name: str) -> Profile:
    """Return a profile's name as used in scenario files; raises `BadInput` for an unknown profile."""
    if name not in AGENT_PROFILES and name not in semantics.PROFILES:
        problem = (
            f"profile {name!r} is unknown; expected one of: {', '.join(semantics.PROFILES)}, or for the agent engine: "
            f"{', '.join(AGENT_PROFILES)}."
        )
        hint = semantics.profile_hint(name, (*semantics.PROFILES, *AGENT_PROFILES))
        raise BadInput((problem + hint).removesuffix("."))
    known = name if name in AGENT_PROFILES else profile_named(name).name
    return next(profile for profile in PROFILES if profile == known)
