"""Rescue parsing on the cases of other people's parsers, the format unknown: right, refused, and never another call."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from statek_sim.agent.rescue import HINTS, rescue
from tests.rescue.scoring import FIFTH, FOURTH, SECOND, SIXTH, THIRD, Case, load_cases, verdict

CASES = load_cases()
LATER = load_cases(SECOND)
MEANT = [case for case in CASES if not case.differs]


def _answer(case: Case, dialect: str | None = None) -> str:
    result = rescue(case.text, case.tools, dialect=dialect)
    return verdict(case, [(call.name, call.arguments) for call in result.calls])


@pytest.mark.parametrize("half", ["build", "measure"])
def test_cases_of_others_are_read_right_and_hardly_ever_wrong(half: str) -> None:
    counted = Counter(_answer(case) for case in MEANT if case.half == half)
    total = sum(counted.values())
    assert total >= 200
    assert counted["right"] >= 0.95 * total, counted
    assert counted["wrong"] <= 0.005 * total, counted


@pytest.mark.parametrize("named", [False, True])
def test_later_cases_are_read_right_all_of_them_counted(named: bool) -> None:
    cases = LATER + load_cases(THIRD)
    counted = Counter(_answer(case, case.dialect if named else None) for case in cases)
    assert len(cases) >= 600
    assert counted["right"] >= 0.96 * len(cases), counted
    assert counted["wrong"] <= (6 if named else 9), counted


def test_cases_of_parsers_on_mlx_are_read_right_or_said_to_want_something_else() -> None:
    cases = load_cases(FOURTH)
    counted = Counter(_answer(case) for case in cases)
    meant = Counter(_answer(case) for case in cases if not case.differs)
    assert len(cases) >= 600
    assert counted["right"] >= 0.87 * len(cases), counted
    assert counted["wrong"] <= 20, counted
    assert meant["right"] >= 0.94 * sum(meant.values()), meant
    assert meant["wrong"] == 0, meant


def test_cases_of_vllms_newer_parsers_are_read_right_or_said_to_want_something_else() -> None:
    cases = load_cases(FIFTH)
    counted = Counter(_answer(case) for case in cases)
    meant = Counter(_answer(case) for case in cases if not case.differs and not case.needs_format)
    assert len(cases) >= 300
    assert counted["right"] >= 0.8 * len(cases), counted
    assert counted["wrong"] <= 16, counted
    assert meant["right"] >= 0.92 * sum(meant.values()), meant
    assert meant["wrong"] <= 3, meant


def test_cases_of_sglang_are_read_right_or_said_to_want_something_else() -> None:
    cases = load_cases(SIXTH)
    counted = Counter(_answer(case) for case in cases)
    meant = Counter(_answer(case) for case in cases if not case.differs and not case.needs_format)
    assert len(cases) >= 440
    assert counted["right"] >= 0.86 * len(cases), counted
    assert counted["wrong"] <= 2, counted
    assert meant["right"] >= 0.95 * sum(meant.values()), meant
    assert meant["wrong"] == 0, meant


def test_later_cases_are_in_the_half_that_their_id_says() -> None:
    for path, odd_is in ((SECOND, "build"), (FOURTH, "build"), (FIFTH, "measure")):
        even_is = {"build": "measure", "measure": "build"}[odd_is]
        for record in _records(path):
            odd = hashlib.sha256(str(record["id"]).encode()).digest()[0] & 1
            assert record["half"] == (odd_is if odd else even_is), record["id"]
    assert {record["half"] for record in _records(THIRD)} == {"measure"}


def test_later_cases_name_licence_place_and_dialect() -> None:
    told, recorded = _records(SECOND) + _records(THIRD), _records(FOURTH) + _records(FIFTH)
    records = told + recorded + _records(SIXTH)
    assert len({record["id"] for record in records}) == len(records)
    for record in records:
        assert record["licence"] in ("Apache-2.0", "MIT"), record["id"]
        assert record.get("commit") or record.get("url"), record["id"]
    assert all(record["dialect"] in HINTS for record in told)
    assert {record["dialect"] for record in recorded} == {None}


def _records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_where_sources_guess_no_call_is_made_up() -> None:
    wrong = [case for case in CASES if case.differs and _answer(case) == "wrong"]
    # These read a complete call: the sources refuse it for its format, or drop arguments from it.
    reasons = {
        "reads only the format",
        "an unclosed section is text",
        "arguments that the schema does not name",
    }
    assert all(any(reason in case.differs for reason in reasons) for case in wrong), wrong


def test_every_case_names_its_source_and_licence() -> None:
    projects = Counter(case.source.split()[0] for case in CASES)
    assert set(projects) == {"vllm", "sglang", "llama.cpp", "json_repair"}
    assert sum(projects.values()) >= 300
