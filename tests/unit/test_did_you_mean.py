"""Tests of `statek_sim.did_you_mean`."""

from __future__ import annotations

from itertools import permutations

from statek_sim.did_you_mean import closest, suggestion
from tests.tables import table_test

KEYS = ["id", "title", "tools", "status", "expect", "max_turns", "max_token_usage", "fetch_next_item"]


@table_test(
    ("word", "meant"),
    [
        ("titel", "title"),
        ("tols", "tools"),
        ("Status", "status"),
        ("expext", "expect"),
        ("max_turn", "max_turns"),
        ("turns_max", "max_turns"),
        ("max-tokens", "max_token_usage"),
        ("fetch_item", "fetch_next_item"),
    ],
)
def test_a_slip_finds_what_was_meant(word: str, meant: str) -> None:
    assert closest(word, KEYS) == meant


@table_test("word", ["", "foo", "___", "日本語"])
def test_a_word_near_nothing_finds_nothing(word: str) -> None:
    assert closest(word, KEYS) is None


def test_no_options_give_no_suggestion() -> None:
    assert closest("title", []) is None


def test_a_tie_goes_to_the_first_in_the_alphabet_whatever_the_order() -> None:
    assert {closest("jobx", order) for order in permutations(["joba", "jobb", "jobc"])} == {"joba"}


def test_the_suggestion_is_a_sentence_or_nothing() -> None:
    assert suggestion("titel", KEYS) == " Did you mean 'title'?"
    assert suggestion("foo", KEYS) == ""
