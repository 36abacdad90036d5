"""The shipped policies: each built-in preset passes its own, and a preset that is changed for the worse does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.gate.gate import gate_plan, judge_presets, workloads
from statek_sim.gate.policy import POLICIES_DIR, read_policy, shipped_policy
from statek_sim.gate.verdict import GateResult
from statek_sim.harness.preset import BUILT_IN, load_preset
from statek_sim.scenario.schema import DEFAULT_PROFILES, Profile


def judged(preset: str, policy: Path | None = None, *, profile: Profile = "docs", folder: Path) -> GateResult:
    plan = gate_plan([preset], policy=policy, folder=folder)
    return judge_presets(plan, workloads(()), profile=profile)


def changed(preset: str, change: str, folder: Path) -> Path:
    """Return a file with the preset's variables, one of them changed: `MAX_TURNS*2` or `MAX_EXCEPTIONS=0`."""
    path = folder / "changed.env"
    values = dict(load_preset(preset).values)
    name, times, number = change.partition("*") if "*" in change else change.partition("=")
    variable = f"STATEK_{name}"
    value = int(float(values[variable]) * float(number)) if times == "*" else number
    values[variable] = str(value)
    path.write_text("".join(f"{key}={text}\n" for key, text in values.items()), encoding="utf-8")
    return path


# Every preset and every profile once; the other pairs where there is more time.
PAIRS = [
    pytest.param(
        preset, profile, marks=() if (row - column) % len(DEFAULT_PROFILES) == 0 else pytest.mark.slow
    )
    for row, preset in enumerate(BUILT_IN)
    for column, profile in enumerate(DEFAULT_PROFILES)
]


@pytest.mark.parametrize(("preset", "profile"), PAIRS)
def test_a_built_in_preset_passes_its_own_policy(preset: str, profile: Profile, tmp_path: Path) -> None:
    assert shipped_policy(preset).stem == preset
    result = judged(preset, profile=profile, folder=tmp_path)
    assert [verdict.reason for verdict in result.failed] == []


@pytest.mark.slow
@pytest.mark.parametrize("profile", DEFAULT_PROFILES)
@pytest.mark.parametrize("preset", BUILT_IN)
def test_a_copy_of_a_built_in_preset_passes_the_general_policy(
    preset: str, profile: Profile, tmp_path: Path
) -> None:
    own = changed(preset, "MAX_TURNS*1", tmp_path)
    result = judged(str(own), profile=profile, folder=tmp_path)
    assert [verdict.reason for verdict in result.failed] == []


EVERY_BREAK = [
    *((preset, "MAX_TURNS*0.5") for preset in BUILT_IN),
    *((preset, "MAX_TURNS*2") for preset in BUILT_IN),
    *((preset, "MAX_TOKEN_USAGE*2") for preset in BUILT_IN),
    *((preset, "MAX_TOKEN_USAGE*0.25") for preset in BUILT_IN),
    *((preset, "MAX_EXCEPTIONS=0") for preset in BUILT_IN),
    *((preset, "MAX_CONSECUTIVE_EXCEPTIONS=0") for preset in BUILT_IN),
    *((preset, "MAX_CONSECUTIVE_EXCEPTIONS*3") for preset in BUILT_IN),
    ("batch", "MAX_EXCEPTIONS*2"),
]
# One of three, which meets every preset and every change; the others where there is more time.
BREAKS = [
    pytest.param(*one, marks=() if number % 3 == 0 else pytest.mark.slow)
    for number, one in enumerate(EVERY_BREAK)
]


@pytest.mark.parametrize(("preset", "change"), BREAKS)
def test_a_preset_that_is_changed_for_the_worse_fails_its_policy(
    preset: str, change: str, tmp_path: Path
) -> None:
    result = judged(str(changed(preset, change, tmp_path)), POLICIES_DIR / f"{preset}.toml", folder=tmp_path)
    assert result.failed


def test_interactive_needs_its_extension_for_long_conversations(tmp_path: Path) -> None:
    path = changed("interactive", "LIMIT_EXTENSION_PER_COMPLETION=0", tmp_path)
    result = judged(str(path), POLICIES_DIR / "interactive.toml", profile="1.4", folder=tmp_path)
    assert {verdict.rule for verdict in result.failed} == {"long conversations finish"}


@pytest.mark.slow
@pytest.mark.parametrize("change", ["MAX_TURNS=2", "MAX_TURNS=1000", "MAX_TOKEN_USAGE=1000"])
def test_the_general_policy_fails_presets_that_are_far_off(change: str, tmp_path: Path) -> None:
    if change == "MAX_TURNS=1000":
        path = tmp_path / "endless.env"
        text = "STATEK_MAX_TURNS=1000\nSTATEK_MAX_EXCEPTIONS=1000\nSTATEK_MAX_CONSECUTIVE_EXCEPTIONS=1000\n"
        path.write_text(text + "STATEK_MAX_TOKEN_USAGE=100000000\n", encoding="utf-8")
    else:
        path = changed("default", change, tmp_path)
    assert judged(str(path), folder=tmp_path).failed


def test_every_preset_demands_every_kind_of_runaway_to_be_stopped() -> None:
    runaways = {scenario.id for scenario in workloads(()) if "runaway" in scenario.tags}
    for preset in BUILT_IN:
        result = judged(preset, folder=Path("/"))
        stop = {rule.name for rule in read_policy(shipped_policy(preset)).rules if rule.must == "stop"}
        demanded = {verdict.scenario for verdict in result.verdicts if verdict.rule in stop}
        assert demanded == {f"workloads/{name}[docs]" for name in runaways}
