"""Rescue parsing on the cases of other people's parsers, the format unknown: right, refused, and never another call."""

from __future__ import annotations

from collections import Counter

import pytest

from statek_sim.agent.rescue import rescue
from tests.rescue.scoring import Case, load_cases, verdict

CASES = load_cases()
MEANT = [case for case in CASES if not case.differs]


def _answer(case: Case) -> str:
    result = rescue(case.text, case.tools)
    return verdict(case, [(call.name, call.arguments) for call in result.calls])


@pytest.mark.parametrize("half", ["build", "measure"])
def test_cases_of_others_are_read_right_and_hardly_ever_wrong(half: str) -> None:
    counted = Counter(_answer(case) for case in MEANT if case.half == half)
    total = sum(counted.values())
    assert total >= 200
    assert counted["right"] >= 0.95 * total, counted
    assert counted["wrong"] <= 0.005 * total, counted


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
