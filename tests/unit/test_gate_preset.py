"""Presets before they are judged: what cannot bind, what a `.env` says otherwise, what is no preset at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.errors import BadSetting
from statek_sim.gate.gate import gate_plan
from statek_sim.gate.gated_preset import gated_preset, idle_values, require_unshadowed, shadows
from statek_sim.harness.limits import LimitName
from statek_sim.harness.preset import BUILT_IN
from tests.says import line_with, says
from tests.unit.gate_samples import POLICY, result, written


def idle(folder: Path, text: str) -> list[str]:
    found = idle_values(gated_preset(str(written(folder, "own.env", text))))
    return [f"{remark.place}: {remark.message}".replace(f"{folder}/", "") for remark in found]


def shadowed(folder: Path, preset: str, dotenv: str) -> list[tuple[str, bool]]:
    """Return what the `.env` says otherwise, and whether it decides."""
    (folder / "presets").mkdir()
    own = gated_preset(str(written(folder / "presets", "own.env", preset)))
    written(folder, ".env", dotenv)
    found = shadows(own, folder)
    return [(f"{one.place}: {one.message}".replace(f"{folder}/", ""), one.decides) for one in found]


def test_a_preset_knows_the_line_of_every_limit(tmp_path: Path) -> None:
    preset = gated_preset(str(written(tmp_path, "own.env", "# mine\n\nSTATEK_MAX_TURNS=9\n")))
    assert [preset.place(limit).line for limit in (LimitName.MAX_TURNS, LimitName.MAX_EXCEPTIONS, None)] == [
        3,
        1,
        1,
    ]


def test_built_in_presets_are_named_the_same_on_every_machine() -> None:
    shown = [str(gated_preset(name).path) for name in BUILT_IN]
    assert shown == [f"statek_sim/harness/presets/{name}.env" for name in BUILT_IN]


def test_a_streak_as_long_as_the_total_never_binds(tmp_path: Path) -> None:
    [remark] = idle(tmp_path, "STATEK_MAX_EXCEPTIONS=2\nSTATEK_MAX_CONSECUTIVE_EXCEPTIONS=2\n")
    limits = ("STATEK_MAX_CONSECUTIVE_EXCEPTIONS=2", "STATEK_MAX_EXCEPTIONS=2")
    assert says(remark, "own.env:2", *limits, "no effect", "less than 2")
    assert idle(tmp_path, "STATEK_MAX_EXCEPTIONS=3\nSTATEK_MAX_CONSECUTIVE_EXCEPTIONS=2\n") == []
    assert idle(tmp_path, "STATEK_MAX_EXCEPTIONS=0\nSTATEK_MAX_CONSECUTIVE_EXCEPTIONS=0\n") == []


@pytest.mark.parametrize("streak", [2, 3])
def test_such_a_streak_stops_nothing_when_it_is_tried(tmp_path: Path, streak: int) -> None:
    workloads = """\
suite: sample
scenarios:
  - {id: failing, title: Fails again and again, tags: [runaway], agents: {clerk: {}},
     script: {clerk: [{code: 1/0, repeat: 9}]}}
"""
    preset = f"STATEK_MAX_TURNS=9\nSTATEK_MAX_EXCEPTIONS=2\nSTATEK_MAX_CONSECUTIVE_EXCEPTIONS={streak}\n"
    found = result(tmp_path, preset, POLICY.partition("\n\n")[2], workloads=workloads)
    assert [one.limit for one in found.verdicts] == [LimitName.MAX_EXCEPTIONS]


def test_a_limit_of_nothing_is_never_extended(tmp_path: Path) -> None:
    found = idle(tmp_path, "STATEK_MAX_EXCEPTIONS=0\nSTATEK_LIMIT_EXTENSION_PER_COMPLETION=0.5\n")
    assert says(found[-1], "own.env:1", "STATEK_MAX_EXCEPTIONS=0", "never", "STATEK 1.3.0")


def test_no_turns_mean_that_no_code_runs(tmp_path: Path) -> None:
    [found] = idle(tmp_path, "STATEK_MAX_TURNS=0\n")
    assert says(found, "own.env:1", "STATEK_MAX_TURNS=0", "first reply", "code never runs")


def test_nothing_in_the_built_in_presets_is_idle_by_itself() -> None:
    assert [remark for name in BUILT_IN for remark in idle_values(gated_preset(name))] == []


# -- .env ----------------------------------------------------------------------------------------------------------


def test_a_field_that_statek_takes_from_dotenv_decides(tmp_path: Path) -> None:
    [(said, decides)] = shadowed(tmp_path, "STATEK_MAX_TURNS=9\n", "FOO=1\nmax_exceptions=8\n")
    assert decides
    place = (".env:2", "max_exceptions=8", "presets/own.env")
    assert says(said, *place, "STATEK uses", "gate checks 3", "set STATEK_MAX_EXCEPTIONS in the preset")


def test_a_variable_of_the_preset_wins_over_the_field_in_dotenv(tmp_path: Path) -> None:
    [(said, decides)] = shadowed(tmp_path, "STATEK_MAX_TURNS=9\n", "MAX_TURNS=5\n")
    assert not decides
    assert says(said, "MAX_TURNS=5", "no effect", "STATEK_MAX_TURNS=9")


def test_a_prefixed_name_in_dotenv_matters_to_what_loads_the_file(tmp_path: Path) -> None:
    [(said, decides)] = shadowed(tmp_path, "STATEK_MAX_TURNS=9\n", "STATEK_MAX_TURNS=5\n")
    assert not decides
    assert says(said, "9", "program", "use 5")


def test_a_dotenv_that_says_the_same_is_no_shadow(tmp_path: Path) -> None:
    assert (
        shadowed(tmp_path, "STATEK_MAX_TURNS=9\n", "MAX_TURNS=9\nSTATEK_MAX_TURNS=9\nMAX_EXCEPTIONS=3\n")
        == []
    )


def test_a_setting_that_is_no_limit_is_only_noticed(tmp_path: Path) -> None:
    [(said, decides)] = shadowed(tmp_path, "STATEK_MAX_TURNS=9\n", "CHAT_STYLE=DIRECT\n")
    assert not decides
    assert says(said, "CHAT_STYLE=DIRECT", "STATEK uses")


def test_a_preset_called_dotenv_is_told_that_statek_does_not_read_it(tmp_path: Path) -> None:
    own = gated_preset(str(written(tmp_path, ".env", "STATEK_MAX_TURNS=9\n")))
    [found] = shadows(own, tmp_path)
    assert not found.decides
    assert says(found.message, "STATEK does not read", "prefix", ".env")


def test_only_the_dotenv_of_the_working_folder_ends_the_gate(tmp_path: Path) -> None:
    (tmp_path / "presets").mkdir()
    preset = written(tmp_path / "presets", "own.env", "STATEK_MAX_TURNS=9\n")
    written(tmp_path / "presets", ".env", "MAX_EXCEPTIONS=8\n")
    [remark] = require_unshadowed(gated_preset(str(preset)), tmp_path)
    assert remark.message.endswith("(if STATEK runs there)")
    written(tmp_path, ".env", "MAX_EXCEPTIONS=8\n")
    with pytest.raises(BadSetting, match=line_with(f"{tmp_path}/.env:1", "MAX_EXCEPTIONS=8", "STATEK uses")):
        gate_plan([str(preset)], policy=None, folder=tmp_path)


def test_every_wrong_line_of_a_preset_ends_the_gate(tmp_path: Path) -> None:
    preset = written(tmp_path, "own.env", "MAX_TURNS=9\nSTATEK_MAX_TOKENS=1\n")
    with pytest.raises(BadSetting) as caught:
        gate_plan([str(preset)], policy=None, folder=tmp_path)
    assert [line.partition(": ")[0] for line in str(caught.value).splitlines()] == [
        f"{preset}:1",
        f"{preset}:2",
    ]
