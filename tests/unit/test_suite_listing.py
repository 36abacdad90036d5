"""What there is, as lines of text."""

from __future__ import annotations

from pathlib import Path

from statek_sim.suite.listing import (
    preset_lines,
    profile_lines,
    profile_rules,
    suite_lines,
)
from tests.unit.suite_samples import load


def test_suites_are_counted(tmp_path: Path) -> None:
    scenarios = load(tmp_path, "  - {id: one, title: One, profiles: [docs], agents: {worker: {}}}\n")
    assert list(suite_lines(scenarios)) == [
        "suite    scenarios  runs",
        "samples          1     1",
        "total            1     1",
    ]


def test_profiles_are_a_table_with_sentences() -> None:
    lines = list(profile_lines())
    assert lines[0].split() == ["rule", "docs", "1.2.5", "1.2", "1.4"]
    assert lines[1].split() == ["limit_extension", "additive", "additive", "additive", "multiplicative"]
    assert lines[2].startswith("    How completions extend a limit")
    assert max(map(len, lines)) <= 100


def test_presets_have_their_variables() -> None:
    lines = list(preset_lines())
    assert lines[0] == "default"
    assert lines[lines.index("batch") + 1] == "  STATEK_MAX_TURNS=15"


def test_every_rule_has_its_sentence_and_a_value_per_profile() -> None:
    rules = {rule.name: rule for rule in profile_rules()}
    assert rules["limit_extension"].values == ("additive", "additive", "additive", "multiplicative")
    assert rules["limit_extension"].doc.startswith("How completions extend a limit")
    assert all(rule.doc and len(rule.values) == 4 for rule in rules.values())
    assert "name" not in rules
