"""The sentence about an estimate says what the numbers show."""

from __future__ import annotations

from statek_sim.backends.record import UsageRecord
from statek_sim.reporting.estimate_error import MOST_CHARACTERS, reason
from tests.tables import table_test
from tests.unit.reporting_samples import Talk, chinese, digits, english, result, said, tooled, with_usage


def _sentence(talk: Talk) -> str:
    return reason(result("suite/scenario", talk)).sentence


@table_test(
    ("talk", "cause"),
    [(chinese(), "escaping"), (digits(), "density"), (tooled(), "tools"), (english(2), "response")],
)
def test_the_largest_part_of_the_difference_is_the_cause(talk: Talk, cause: str) -> None:
    assert reason(result("suite/scenario", talk)).cause == cause


def test_escaped_characters_are_counted() -> None:
    text = "请把下一个工作项分配给我" * 40
    assert _sentence(Talk().turn(said("user", text))) == f"+{len(text) * 3 // 4} from \\uXXXX escapes."


def test_dense_text_is_told_by_the_density_of_its_tokens() -> None:
    assert _sentence(digits()) == "-542 from tokenizer density."


def test_tool_definitions_are_told() -> None:
    assert _sentence(tooled()) == "+382 from tool definitions."


def test_history_is_mentioned_when_it_is_most_of_what_was_sent() -> None:
    assert "history" not in _sentence(english(2))
    assert _sentence(english(20)).endswith("; 75% of the estimate is history sent again.")


def test_what_works_against_the_difference_is_mentioned_when_it_is_large() -> None:
    sentence = _sentence(Talk().turn(said("user", "😀🎉🚀" * 60)))
    assert sentence.startswith("+360 from \\uXXXX escapes")
    assert ", against -120 from tokenizer density" in sentence


def test_a_small_difference_has_no_cause_that_stands_out() -> None:
    usage = UsageRecord(bytes_sent=4, approx_tokens=1, measured_tokens=1, measured_prompt=1)
    sample = with_usage(result("suite/scenario", english()), usage)
    assert reason(sample).sentence == "no part of it stands out."


def test_without_events_totals_are_all_there_is_to_say() -> None:
    usage = UsageRecord(
        bytes_sent=8_000,
        bytes_received=400,
        approx_tokens=2_100,
        measured_tokens=1_050,
        measured_prompt=1_000,
        measured_completion=50,
        tokenizer="mine",
    )
    sample = with_usage(result("suite/scenario", english()), usage)
    assert reason(sample).sentence == "+1,000 from 8,000 bytes of requests for 1,000 tokens."


def test_the_steps_of_a_very_long_run_are_not_measured_again() -> None:
    talk = Talk().turn(said("user", "a b " * (MOST_CHARACTERS // 4 + 1)))
    assert " of requests for " in _sentence(talk)
