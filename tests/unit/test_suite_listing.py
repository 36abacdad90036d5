"""What there is, as lines of text."""

from __future__ import annotations

from pathlib import Path

from statek_sim.scenario.statements import Coverage, Statement
from statek_sim.suite.listing import (
    coverage_problems,
    preset_lines,
    profile_lines,
    profile_rules,
    statement_lines,
    suite_lines,
)
from tests.unit.suite_samples import load

STATEMENTS = [
    Statement(id="H-01", document="000", section="Limits", text="There are limits."),
    Statement(id="H-02", document="000", section="Limits", text="They hold."),
]
COVERAGE = Coverage(proven={"H-01": ("one", "two")}, missing=("H-02",), unknown=(("one", "Z-01"),))


def test_suites_are_counted(tmp_path: Path) -> None:
    scenarios = load(tmp_path, "  - {id: one, title: One, profiles: [docs], agents: {worker: {}}}\n")
    assert list(suite_lines(scenarios)) == [
        "suite    scenarios  runs",
        "samples          1     1",
        "total            1     1",
    ]


def test_each_statement_has_its_proofs_below() -> None:
    assert list(statement_lines(STATEMENTS, COVERAGE)) == [
        "H-01  000 Limits: There are limits.",
        "      one, two",
        "H-02  000 Limits: They hold.",
        "      NOT PROVEN",
        "1 of 2 statements proven",
    ]


def test_problems_of_a_coverage_are_named() -> None:
    assert list(coverage_problems(COVERAGE)) == [
        "one: proves Z-01, which is no statement",
        "no scenario proves H-02",
    ]
    assert list(coverage_problems(Coverage(proven={}, missing=(), unknown=()))) == []


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
