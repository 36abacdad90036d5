"""Laws of the gate: what is needed is exactly that, and more room never hurts healthy work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.backends.run import run_scenario
from statek_sim.gate.gated_preset import GatedPreset, gated_preset, variable_of
from statek_sim.gate.judge import judge
from statek_sim.gate.policy import Rule, SelectText
from statek_sim.gate.trial import Trial, stops, unfinished
from statek_sim.harness.limits import LimitName
from statek_sim.scenario.schema import Scenario
from statek_sim.values import JSON
from tests.unit.usage_samples import scenario

ROOM = 10**9
CODE = ("print('hello')", "1/0", "x = 1", "print('a' * 300)", "print(harness_limit('max_turns'))")
PLAIN = CODE[:-1]

profiles = st.sampled_from(("docs", "1.2", "1.4"))
extensions = st.sampled_from((0.0, 0.25, 1.0))
limits = st.fixed_dictionaries(
    {
        LimitName.MAX_TURNS: st.integers(0, 9),
        LimitName.MAX_EXCEPTIONS: st.integers(0, 4),
        LimitName.MAX_CONSECUTIVE_EXCEPTIONS: st.integers(0, 3),
        LimitName.MAX_TOKEN_USAGE: st.integers(0, 4_000),
    }
)


def working(codes: tuple[str, ...]) -> st.SearchStrategy[Scenario]:
    """Return jobs that do a few things and end by themselves, some of them reopened by messages while or after that."""
    return st.builds(
        _scenario, st.lists(st.sampled_from(codes), max_size=6), st.lists(st.integers(1, 9), max_size=3)
    )


def _scenario(codes: list[str], pushes: list[int]) -> Scenario:
    replies: list[JSON] = [{"code": code, "latency": 2} for code in codes]
    events: list[JSON] = [{"at": 2.0 * at + 1, "push": "main", "message": "go on"} for at in sorted(pushes)]
    return scenario(
        {
            "agents": {"clerk": {"tools": ["harness_limit"]}},
            "script": {"clerk": [*replies, {"code": "exit('done')", "latency": 2, "repeat": "forever"}]},
            "events": events,
        }
    )


class Presets:
    """Presets of the values that an example chooses, in a file by this name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, values: Mapping[LimitName, int], extension: float, name: str = "own") -> GatedPreset:
        path = self._folder / f"{name}.env"
        lines = [f"{variable_of(limit)}={values.get(limit, ROOM)}" for limit in LimitName]
        lines.append(f"STATEK_LIMIT_EXTENSION_PER_COMPLETION={extension}")
        path.write_text("\n".join(lines), "utf-8")
        return gated_preset(str(path))


@pytest.fixture(scope="module")
def presets() -> Iterator[Presets]:
    with TemporaryDirectory() as folder:
        yield Presets(Path(folder))


def passes(text: Scenario, preset: GatedPreset, profile: str, headroom: int = 0) -> bool:
    rule = Rule(name="finishes", select=SelectText(), must="finish", headroom_percent=headroom)
    return judge(trial(text, profile), preset, rule).passed


def trial(text: Scenario, profile: str) -> Trial:
    return Trial(text, "1.4" if profile == "1.4" else "1.2" if profile == "1.2" else "docs")


def needs(text: Scenario, preset: GatedPreset, profile: str) -> dict[LimitName, int]:
    figures = trial(text, profile).figures(preset, needed=True)
    found = {figure.limit: figure.needed for figure in figures}
    return {limit: needed for limit, needed in found.items() if needed is not None}


@given(text=working(PLAIN), profile=profiles, extension=extensions)
def test_what_is_needed_is_enough_and_one_less_is_not(
    presets: Presets, text: Scenario, profile: str, extension: float
) -> None:
    found = needs(text, presets({}, extension), profile)
    assert set(found) == set(LimitName)
    assert passes(text, presets(found, extension), profile)
    for limit, needed in found.items():
        if needed:
            less = run_scenario(text, profile, preset=presets({limit: needed - 1}, extension).runs_as)
            assert [stop.limit for stop in stops(less)][:1] == [limit]


@given(
    text=working(PLAIN),
    profile=profiles,
    extension=extensions,
    values=limits,
    limit=st.sampled_from(LimitName),
)
def test_raising_a_limit_never_makes_healthy_work_fail(
    presets: Presets,
    text: Scenario,
    profile: str,
    extension: float,
    values: dict[LimitName, int],
    limit: LimitName,
) -> None:
    headroom = 10
    before = passes(text, presets(values, extension), profile, headroom)
    higher = {**values, limit: values[limit] * 2 + 1}
    assert passes(text, presets(higher, extension), profile, headroom) or not before


@given(
    text=working(CODE),
    profile=profiles,
    extension=extensions,
    first=limits,
    second=limits,
    same=st.sets(st.sampled_from(LimitName)),
    freely=st.booleans(),
)
def test_a_run_that_the_gate_spares_itself_would_have_been_the_same(
    presets: Presets,
    text: Scenario,
    profile: str,
    extension: float,
    first: dict[LimitName, int],
    second: dict[LimitName, int],
    same: set[LimitName],
    *,
    freely: bool,
) -> None:
    second = {limit: first[limit] if limit in same else value for limit, value in second.items()}
    judged = trial(text, profile)
    for values, name in ((first, "first"), (second, "second")):
        preset = presets(values, extension, name)
        if freely:
            judged.free_run(preset)
        really = run_scenario(text, profile, preset=preset.runs_as)
        found = judged.run(preset)
        assert found.digest == really.digest
        assert (found.jobs, found.items, unfinished(found)) == (really.jobs, really.items, unfinished(really))
