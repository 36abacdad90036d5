"""What once differed from the real package is run on both sides: the list of it names what there is."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from tests.applications.record import RECORDED
from tests.tables import table_test

LIST = Path(__file__).with_name("differing.yaml")
SCENARIOS = Path(__file__).parents[2] / "scenarios"
ROWS: list[dict[str, Any]] = yaml.safe_load(LIST.read_text(encoding="utf-8"))
FACTS = [name.partition("[")[0].partition("::") for name in json.loads(RECORDED.read_text(encoding="utf-8"))]


@table_test("row", ROWS, ids=lambda row: row["difference"])
def test_what_differed_is_run_on_both_sides(row: dict[str, Any]) -> None:
    assert row["run"], "nothing runs it"
    for place in row["run"]:
        where, _, name = place.partition(" ")
        assert _is_scenario(where, name) if where.endswith(".yaml") else _has_facts(where, name), place


def _is_scenario(file: str, name: str) -> bool:
    written = yaml.safe_load((SCENARIOS / file).read_text(encoding="utf-8"))
    return any(scenario["id"] == name for scenario in written["scenarios"])


def _has_facts(application: str, name: str) -> bool:
    return any(where == application and fnmatchcase(test, name) for where, _, test in FACTS)
