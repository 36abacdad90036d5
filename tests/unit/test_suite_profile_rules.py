"""The rules on which profiles differ."""

from __future__ import annotations

from statek_sim.suite.profile_rules import profile_rules


def test_every_rule_has_its_sentence_and_a_value_per_profile() -> None:
    rules = {rule.name: rule for rule in profile_rules()}
    assert rules["limit_extension"].values == ("additive", "additive", "additive", "multiplicative")
    assert rules["limit_extension"].doc.startswith("How completions extend a limit")
    assert all(rule.doc and len(rule.values) == 4 for rule in rules.values())
    assert "name" not in rules
