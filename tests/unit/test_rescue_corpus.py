"""Rescue parsing on the cases of other people's parsers, the format unknown: right, refused, and never another call."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest

from statek_sim.agent.rescue import HINTS, Rescued, rescue
from tests.rescue.account import PROJECTS, all_cases, named, opposed, project, rows
from tests.rescue.rules import RULES, breaks
from tests.rescue.scoring import (
    EIGHTH,
    FIFTH,
    FOURTH,
    NINTH,
    SECOND,
    SIXTH,
    TENTH,
    THIRD,
    Case,
    Verdict,
    load_cases,
    verdict,
)

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


# -- why an answer is not the source's ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers() -> dict[str, Rescued]:
    return {place: rescue(case.text, case.tools) for place, case in all_cases()}


def _verdicts(answers: dict[str, Rescued]) -> dict[str, Verdict]:
    return {
        place: verdict(case, [(call.name, call.arguments) for call in answers[place].calls])
        for place, case in all_cases()
    }


def test_every_case_is_read_as_its_source_reads_it_or_says_why_not(answers: dict[str, Rescued]) -> None:
    """And none that is read says why it is not: a reason goes when its case is mended."""
    for place, answer in _verdicts(answers).items():
        assert bool(named(place).account) == (answer != "right"), (place, answer)


def test_a_case_said_to_be_impossible_names_one_that_wants_the_opposite_of_the_same_shape() -> None:
    found = [(place, case) for place, case in all_cases() if case.account.get("kind") == "opposite"]
    assert len(found) > 60
    for place, case in found:
        other = case.account["case"]
        assert other != place
        assert opposed(case, named(other), case.account["shape"]), (place, other)
    # The check can say no: numbers that a schema tells from texts are no opposites.
    listed = [case for _, case in all_cases() if case.tools and case.calls]
    assert not any(opposed(case, listed[0], found[-1][1].account["shape"]) for case in listed[:50])


def test_a_case_said_to_break_a_rule_breaks_it(answers: dict[str, Rescued]) -> None:
    for place, case in all_cases():
        if case.account.get("kind") == "rule":
            rule, result = case.account["rule"], answers[place]
            assert rule in RULES, place
            assert breaks(rule, case, result), (place, rule, result.refused)
            assert case.account.get("why") or rule not in ("guessed", "rendered"), place
        elif case.account.get("kind") == "ours":
            assert case.account["why"], place


def test_the_check_of_a_rule_can_say_no(answers: dict[str, Rescued]) -> None:
    """On complete calls that are read right no rule is broken, but for what stands in a reply besides."""
    right = [
        (case, answers[place])
        for place, case in all_cases()
        if not case.account and not case.differs and case.calls and not answers[place].refused
    ]
    assert len(right) > 2_500
    for rule in RULES:
        found = sum(breaks(rule, case, result) for case, result in right)
        assert found <= 0.01 * len(right), (rule, found)
    # Where nothing is read, what a format writes as the text does is still no guess.
    whole = [case for case, _ in right if not any(call.get("partial") for call in case.calls)]
    assert sum(breaks("guessed", case, rescue("")) for case in whole) <= 0.4 * len(whole)


def test_the_goal_is_reached_where_nothing_stands_against_it(answers: dict[str, Rescued]) -> None:
    verdicts = _verdicts(answers)
    chosen = [(place, case) for place, case in all_cases() if project(case) in PROJECTS]
    every = Counter(verdicts[place] for place, _ in chosen)
    meant = Counter(verdicts[place] for place, case in chosen if case.account.get("kind", "ours") == "ours")
    assert len(chosen) >= 1_800
    assert every["right"] >= 0.85 * len(chosen), every
    assert every["wrong"] <= 0.017 * len(chosen), every
    assert meant["right"] >= 0.98 * sum(meant.values()), meant
    assert meant["wrong"] <= 0.005 * sum(meant.values()), meant


def test_the_page_says_what_is_read_now_and_how_many_reasons_there_are(answers: dict[str, Rescued]) -> None:
    page = (Path(__file__).parents[2] / "docs/rescue.md").read_text(encoding="utf-8")
    missing = [row for row in rows(_verdicts(answers)) if row not in page]
    assert not missing
    kinds = Counter(case.account["kind"] for _, case in all_cases() if case.account)
    assert [kind for kind, number in kinds.items() if f"- `{kind}` ({number}):" not in page] == []
    assert f"without {kinds['opposite'] + kinds['rule']} such ones" in page


def test_the_eighth_collection_is_halved_by_a_hash_and_names_its_sources() -> None:
    records = _records(EIGHTH)
    assert len({record["id"] for record in records}) == len(records) >= 290
    for record in records:
        odd = hashlib.sha256(str(record["id"]).encode()).digest()[0] & 1
        assert record["half"] == ("build" if odd else "measure"), record["id"]
        assert record["licence"] in ("Apache-2.0", "MIT"), record["id"]
        assert record["url"], record["id"]


def test_the_ninth_collection_was_all_held_out_and_names_its_sources(answers: dict[str, Rescued]) -> None:
    records = _records(NINTH)
    assert len({record["id"] for record in records}) == len(records) >= 270
    assert {record["half"] for record in records} == {"measure"}
    for record in records:
        assert record["licence"] in ("Apache-2.0", "MIT"), record["id"]
        assert record["url"], record["id"]
    verdicts = _verdicts(answers)
    counted = Counter(verdicts[place] for place, _ in all_cases() if place.startswith(NINTH.name))
    assert counted["right"] >= 0.92 * len(records), counted
    assert counted["wrong"] <= 2, counted


def test_the_tenth_collection_was_marked_before_its_first_look_and_is_read(
    answers: dict[str, Rescued],
) -> None:
    records = _records(TENTH)
    assert len({record["id"] for record in records}) == len(records) >= 420
    assert {record["half"] for record in records} == {"measure"}
    for record in records:
        assert str(record["licence"]).split()[0] in ("Apache-2.0", "MIT"), record["id"]
        assert record["url"], record["id"]
    verdicts = _verdicts(answers)
    cases = [(place, case) for place, case in all_cases() if place.startswith(TENTH.name)]
    every = Counter(verdicts[place] for place, _ in cases)
    meant = Counter(verdicts[place] for place, case in cases if not case.differs)
    assert every["right"] >= 0.86 * len(cases), every
    assert sum(meant.values()) >= 360
    assert meant["right"] >= 0.98 * sum(meant.values()), meant
    assert meant["wrong"] == 0, meant
