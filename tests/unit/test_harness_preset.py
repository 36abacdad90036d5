"""Tests of `statek_sim.harness.preset`."""

from __future__ import annotations

from pathlib import Path

import pytest

from statek_sim.errors import BadSetting
from statek_sim.harness.limits import HarnessLimits
from statek_sim.harness.preset import BUILT_IN, MAX_BYTES, PRESETS_DIR, load_preset
from statek_sim.harness.settings import StatekSettings
from tests.says import line_with, says
from tests.tables import table_test


def written(tmp_path: Path, content: str | bytes) -> Path:
    """Return a preset file with `content`."""
    path = tmp_path / "own.env"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def problem(path: Path) -> str:
    """Return the message that the preset is refused with, without its folder."""
    with pytest.raises(BadSetting) as caught:
        load_preset(path)
    return str(caught.value).replace(f"{path.parent}/", "")


@table_test(
    ("name", "turns", "exceptions", "consecutive", "tokens", "extension"),
    [
        ("default", 5, 3, 1, 10_000, 0.0),
        ("local", 8, 5, 2, 30_000, 0.0),
        ("interactive", 5, 3, 1, 15_000, 0.25),
        ("batch", 15, 4, 1, 60_000, 0.0),
    ],
)
def test_the_built_in_presets_have_the_values_of_document_000(
    name: str, turns: int, exceptions: int, consecutive: int, tokens: int, extension: float
) -> None:
    preset = load_preset(name)
    assert StatekSettings.from_env(preset.values).harness_limits() == HarnessLimits(
        max_turns=turns,
        max_exceptions=exceptions,
        max_consecutive_exceptions=consecutive,
        max_token_usage=tokens,
        limit_extension_per_completion=extension,
    )
    assert (preset.name, len(preset.values)) == (name, 5)


def test_every_shipped_file_is_a_built_in_preset_and_names_its_source() -> None:
    assert sorted(path.stem for path in PRESETS_DIR.iterdir()) == sorted(BUILT_IN)
    assert all(
        "# Source: STATEK Harness Policies (000)" in path.read_text() for path in PRESETS_DIR.iterdir()
    )


def test_a_file_of_ones_own_is_read_like_a_dotenv_file(tmp_path: Path) -> None:
    path = written(
        tmp_path, "\ufeff# mine\r\nexport STATEK_MAX_TURNS='9'  # plenty\r\nSTATEK_LOG_LEVEL=info\r\n"
    )
    preset = load_preset(str(path))
    assert preset.values == {"STATEK_MAX_TURNS": "9", "STATEK_LOG_LEVEL": "info"}
    assert (preset.name, preset.path) == ("own", path)
    assert preset.lines == {"STATEK_MAX_TURNS": 2, "STATEK_LOG_LEVEL": 3}


def test_what_a_preset_leaves_out_keeps_its_default(tmp_path: Path) -> None:
    preset = load_preset(written(tmp_path, "STATEK_MAX_TURNS=9\n"))
    assert StatekSettings.from_env(preset.values) == StatekSettings(max_turns=9)


@table_test(
    ("line", "facts"),
    [
        ("STATEK_MAX_TOKENS=1", "STATEK_MAX_TOKENS: ; not a STATEK variable; 'STATEK_MAX_TOKEN_USAGE'?"),
        ("MAX_TURNS=1", "MAX_TURNS: ; own .env file; 'STATEK_MAX_TURNS'"),
        ("FOO=1", "FOO: ; own .env file; 'STATEK_'"),
        ("hello world", "'hello world': ; KEY=VALUE"),
        ("STATEK_MAX_TURNS", "'STATEK_MAX_TURNS': ; KEY=VALUE"),
        ("=5", "'=5': ; KEY=VALUE"),
        ("STATEK_LOG_LEVEL='INFO", '"STATEK_LOG_LEVEL=\'INFO": ; KEY=VALUE'),
        ("STATEK_MAX_TURNS=", "STATEK_MAX_TURNS: ; empty; default"),
        ("STATEK_MAX_TURNS=-1", "STATEK_MAX_TURNS='-1': ; whole number from 0 to 2**63 - 1"),
        (
            "STATEK_LIMIT_EXTENSION_PER_COMPLETION=nan",
            "STATEK_LIMIT_EXTENSION_PER_COMPLETION='nan': ; from 0 to 1000000",
        ),
    ],
)
def test_a_wrong_line_is_named_by_path_and_line(tmp_path: Path, line: str, facts: str) -> None:
    path = written(tmp_path, f"# comment\n\nSTATEK_DEFAULT_ACL=DENY\n\n\n{line}\nSTATEK_RPC_PORT=80\n")
    assert says(problem(path), "own.env:6", *facts.split("; "))


def test_a_variable_set_twice_names_both_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "STATEK_MAX_TURNS=8\n\nSTATEK_MAX_TURNS=9\n")
    assert says(problem(path), "own.env:3", "STATEK_MAX_TURNS", "line 1")


def test_every_wrong_line_is_reported(tmp_path: Path) -> None:
    lines = problem(written(tmp_path, "FOO=1\nSTATEK_MAX_TURNS=x\nSTATEK_RPC_PORT=80\nbar\n")).splitlines()
    assert [line.split(": ")[0] for line in lines] == ["own.env:1", "own.env:2", "own.env:4"]


def test_a_byte_that_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, b"STATEK_MAX_TURNS=8\nSTATEK_LOGS_PATH=\xff\n")
    assert problem(path) == "own.env:2: not UTF-8 (byte 0xff)"


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    path = written(tmp_path, b"#" * (MAX_BYTES + 1))
    assert problem(path) == "own.env: more than 1000000 bytes"


def test_blanks_that_the_parser_would_take_minutes_for_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, f"STATEK_MAX_TURNS=8\nSTATEK_MAX_EXCEPTIONS=1{' ' * 100_000}x\n")
    assert says(problem(path), "own.env:2", "1000 consecutive blanks")


def test_a_missing_preset_says_where_it_was_looked_for() -> None:
    names = "default, local, interactive, batch"
    with pytest.raises(
        BadSetting, match=line_with("'interactve'", "file", "built-in", names, "'interactive'?")
    ):
        load_preset("interactve")


@table_test("name", ["", "nowhere/at/all.env", "a\0b", "x" * 5000])
def test_a_name_that_cannot_be_a_file_is_just_missing(name: str) -> None:
    with pytest.raises(BadSetting, match=line_with("preset '", "no such file", "built-in presets: ")):
        load_preset(name)


def test_a_folder_is_no_preset(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=line_with("not a regular file", "KEY=VALUE")):
        load_preset(tmp_path)


def test_a_built_in_name_wins_over_a_file_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "batch").write_text("STATEK_MAX_TURNS=1\n")
    monkeypatch.chdir(tmp_path)
    assert load_preset("batch").values["STATEK_MAX_TURNS"] == "15"
    assert load_preset("./batch").values["STATEK_MAX_TURNS"] == "1"
