"""Usage adds up, and what was not reported stays unreported."""

from __future__ import annotations

import pytest

from statek_sim.usage.token_usage import TurnUsage, UsageTotals


def _turn(
    sent: int = 0,
    received: int = 0,
    *,
    measured: tuple[int, int] = (0, 0),
    reported: tuple[int | None, int | None] = (None, None),
    cached: int | None = None,
    cost: float | None = None,
    tokenizer: str = "o200k_base",
) -> TurnUsage:
    return TurnUsage(sent, received, *measured, *reported, cached, cost, tokenizer)


def _totals(*turns: TurnUsage) -> UsageTotals:
    totals = UsageTotals()
    for turn in turns:
        totals.add(turn)
    return totals


def test_the_estimate_takes_the_floor_once_of_the_totals() -> None:
    turns = [_turn(3, 0), _turn(0, 3), _turn(3, 0)]
    assert [turn.approx_tokens for turn in turns] == [0, 0, 0]
    assert _totals(*turns).approx_tokens == 2


def test_totals_add_every_column() -> None:
    totals = _totals(
        _turn(100, 10, measured=(20, 2), reported=(21, 3), cached=5, cost=0.5),
        _turn(200, 20, measured=(40, 4), reported=(41, 6), cached=7, cost=0.25),
    )
    assert (totals.turns, totals.bytes_sent, totals.bytes_received) == (2, 300, 30)
    assert (totals.measured_prompt, totals.measured_completion, totals.measured_tokens) == (60, 6, 66)
    assert (totals.reported_prompt, totals.reported_completion, totals.reported_tokens) == (62, 9, 71)
    assert (totals.reported_cached, totals.reported_cost) == (12, 0.75)


def test_nothing_reported_is_none_and_zero_reported_is_zero() -> None:
    assert _totals(_turn(), _turn()).reported_tokens is None
    assert _totals(_turn(), _turn(reported=(0, None))).reported_tokens == 0
    assert _totals(_turn(cost=0.0)).reported_cost == 0.0


def test_a_turn_counts_the_halves_that_were_reported() -> None:
    assert _turn(reported=(7, None)).reported_tokens == 7
    assert _turn(reported=(7, 2)).reported_tokens == 9
    assert _turn().reported_tokens is None
    assert _turn(measured=(3, 4)).measured_tokens == 7


def test_several_tokenizers_are_named_sorted_whatever_the_order() -> None:
    labels = ["o200k_base", "cl100k_base", "o200k_base", "o200k_base (proxy)"]
    forwards = _totals(*(_turn(tokenizer=label) for label in labels))
    backwards = _totals(*(_turn(tokenizer=label) for label in reversed(labels)))
    assert forwards.tokenizer == "cl100k_base + o200k_base + o200k_base (proxy)"
    assert forwards == backwards


def test_merging_totals_is_adding_all_their_turns() -> None:
    first = [_turn(5, 1, measured=(1, 2), reported=(3, None), tokenizer="a")]
    second = [_turn(7, 2, cost=0.5), _turn(1, 1, reported=(None, 4), cached=2)]
    merged = _totals(*first)
    merged.merge(_totals(*second))
    assert merged == _totals(*first, *second)
    assert merged.tokenizer == "a + o200k_base"


def test_a_copy_goes_its_own_way() -> None:
    totals = _totals(_turn(4, 4))
    copy = totals.copy()
    totals.add(_turn(4, 4))
    assert (copy.approx_tokens, totals.approx_tokens) == (2, 4)


def test_the_dictionary_has_the_columns_of_the_report_in_order() -> None:
    totals = _totals(_turn(100, 21, measured=(20, 2), reported=(21, 3)))
    assert list(totals.as_dict().items()) == [
        ("bytes_sent", 100),
        ("bytes_received", 21),
        ("approx_tokens", 30),
        ("measured_tokens", 22),
        ("measured_prompt", 20),
        ("measured_completion", 2),
        ("reported_tokens", 24),
        ("tokenizer", "o200k_base"),
    ]


def test_empty_totals_are_zero_and_name_no_tokenizer() -> None:
    empty = UsageTotals().as_dict()
    assert empty["tokenizer"] == "none"
    assert empty["reported_tokens"] is None
    assert [empty[key] for key in ("bytes_sent", "approx_tokens", "measured_tokens")] == [0, 0, 0]


def test_a_turn_is_frozen_and_totals_are_not_hashable() -> None:
    with pytest.raises(AttributeError, match=r"can't set attribute"):
        _turn().bytes_sent = 1  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"^unhashable type: 'UsageTotals'$"):
        hash(UsageTotals())


def test_totals_differ_from_other_values_and_print_their_numbers() -> None:
    assert UsageTotals() != {}
    assert repr(_totals(_turn(8, 0))).startswith("UsageTotals({'bytes_sent': 8, ")
