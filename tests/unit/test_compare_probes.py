"""What a preset allows."""

from __future__ import annotations

from pathlib import Path

from statek_sim.compare.changes import side_named
from statek_sim.compare.upgrade import answers
from tests.tables import table_test

FOLLOW_UPS = "follow-up messages until the harness stops the chat"
SILENT = "LLM calls by a job whose code is silent and fails every third time"


def asked(before: str, after: str, preset: str) -> dict[str, tuple[int | None, int | None]]:
    found = answers(side_named(before), side_named(after), preset)
    return {one.question: (one.before, one.after) for one in found}


@table_test(
    ("preset", "numbers"),
    [("default", (6, 3)), ("local", (9, 5)), ("interactive", (7, 7)), ("batch", (16, 8))],
)
def test_follow_up_messages_until_the_harness_stops_the_chat(preset: str, numbers: tuple[int, int]) -> None:
    assert asked("1.2.7", "1.4.2", preset)[FOLLOW_UPS] == numbers


def test_silent_turns_cost_a_job_its_life_in_1_2_5() -> None:
    assert asked("1.2.5", "1.2.7", "batch")[SILENT] == (4, 16)


def test_a_job_that_works_on_is_stopped_one_call_after_its_turns() -> None:
    assert asked("1.4", "1.4", "default")["LLM calls by a job that never finishes"] == (6, 6)


def test_what_is_not_stopped_within_the_probes_reach_has_no_number(tmp_path: Path) -> None:
    generous = tmp_path / "generous.env"
    generous.write_text(
        "STATEK_MAX_TURNS=500\nSTATEK_MAX_EXCEPTIONS=500\nSTATEK_MAX_CONSECUTIVE_EXCEPTIONS=500\n"
        "STATEK_MAX_TOKEN_USAGE=100000000\n"
    )
    found = asked("1.2.7", "1.4.2", str(generous))
    assert [question for question, numbers in found.items() if numbers == (None, None)] == [
        FOLLOW_UPS,
        "LLM calls by a job that never finishes",
        "LLM calls by a job whose code always fails",
        SILENT,
    ]
