"""The sentence about an estimate says what the numbers show."""

from __future__ import annotations

from statek_sim.backends.record import UsageRecord
from statek_sim.reporting.estimate_error import reason
from tests.tables import table_test
from tests.unit.reporting_samples import Talk, chinese, digits, english, result, said, tooled, with_usage


def _sentence(talk: Talk) -> str:
    return reason(result("suite/scenario", talk).record).sentence


@table_test(
    ("talk", "cause"),
    [(chinese(), "escapes"), (digits(), "text"), (tooled(), "tools"), (english(2), "replies")],
)
def test_the_largest_part_of_the_difference_is_the_cause(talk: Talk, cause: str) -> None:
    assert reason(result("suite/scenario", talk).record).cause == cause


def test_escaped_characters_are_counted() -> None:
    text = "请把下一个工作项分配给我" * 40
    expected = f"+{len(text) * 3 // 4} from 480 non-ASCII characters sent as \\uXXXX"
    assert _sentence(Talk().turn(said("user", text))).startswith(expected)


def test_dense_text_is_told_by_its_share_of_digits_and_punctuation() -> None:
    assert _sentence(digits()) == "-541 from texts of 2.2 bytes per token, 100% digits and punctuation."


def test_tools_are_told_by_their_share_of_the_bytes() -> None:
    assert _sentence(tooled()) == "+382 from tool definitions (93% of the bytes)."


def test_history_is_mentioned_when_it_is_most_of_what_was_sent() -> None:
    assert "history" not in _sentence(english(2))
    assert _sentence(english(20)).endswith("% of the message bytes are history sent again in 20 requests.")


def test_what_works_against_the_difference_is_mentioned_when_it_is_large() -> None:
    sentence = _sentence(Talk().turn(said("user", "😀🎉🚀" * 60)))
    assert sentence.startswith("+360 from 180 non-ASCII characters sent as \\uXXXX")
    assert ", against -120 from texts of 2.4 bytes per token" in sentence


def test_a_small_difference_has_no_cause_that_stands_out() -> None:
    usage = UsageRecord(bytes_sent=4, approx_tokens=1, measured_tokens=1, measured_prompt=1)
    sample = with_usage(result("suite/scenario", english()), usage)
    assert reason(sample.record).sentence == "no part of it stands out."


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
    assert reason(sample.record).sentence == "+1,000 from 8,000 bytes of requests for 1,000 tokens."
