"""Scenario files mean the same without libyaml, the part of PyYAML in C."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from statek_sim.scenario import tree

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.slow
def test_without_libyaml_built_in_files_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = sorted(SCENARIOS.rglob("*.yaml"))
    fast = {path: tree.parse(path.read_text(encoding="utf-8")) for path in chosen}
    # The grammar in Python takes its time, and refuses a `?` in the plain text of a flow mapping.
    monkeypatch.setattr(tree, "_LOADER", yaml.SafeLoader)
    assert {path: tree.parse(path.read_text(encoding="utf-8")) for path in chosen} == fast


def test_without_libyaml_a_file_that_it_would_take_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "scenarios:\n  - {title: Who is it?}\n"
    assert tree.parse(text) is not None
    monkeypatch.setattr(tree, "_LOADER", yaml.SafeLoader)
    with pytest.raises(tree.Malformed, match="this PyYAML lacks libyaml, which accepts more"):
        tree.parse(text)
