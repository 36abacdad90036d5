"""Texts of any length take a bounded place on a page, and what is missing is said."""

from __future__ import annotations

from statek_sim.reporting.text_format import LABEL, LEAST, RUN, TEXT, Excerpts, excerpt, label


def test_a_usual_text_is_whole() -> None:
    assert excerpt("a" * TEXT) == "a" * TEXT
    assert Excerpts().take("hello") == "hello"


def test_a_long_text_says_how_much_of_it_is_left_out() -> None:
    assert excerpt("ab" * 500_000, 10) == "ababababab\n... 999,990 more characters omitted"
    assert excerpt("abc", 2) == "ab\n... 1 more character omitted"


def test_a_run_of_many_long_texts_stays_small() -> None:
    texts = Excerpts()
    taken = [texts.take("a" * 100_000) for _ in range(100)]
    assert all(text.startswith("a" * LEAST) for text in taken)
    assert sum(map(len, taken)) < RUN + TEXT + 100 * 2 * LEAST


def test_a_label_is_one_short_line() -> None:
    assert label("short") == "short"
    assert label("first\nsecond") == "first..."
    assert label("a" * 1000) == "a" * LABEL + "..."
    assert label("") == ""
