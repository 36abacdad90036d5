"""Texts cut into tokens, as streams send them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim.usage.tokenizers import token_pieces, tokenizer_for_model
from statek_sim.usage.vocabularies import (
    LONGEST_OWN_TEXT,
    LONGEST_OWN_WORD,
    OWN_CHARACTERS,
    VOCABULARIES,
    AsciiEncoder,
    load_encoding,
)
from tests.tables import table_test

ROOT = Path(__file__).resolve().parents[2]


def cut_by_tiktoken(text: str, name: str) -> list[str]:
    """Return the tokens of an ASCII text, from tiktoken."""
    encoding = load_encoding(name)
    return [encoding.decode([token]) for token in encoding.encode_ordinary(text)]


@given(
    st.one_of(
        st.text(st.characters(max_codepoint=127), max_size=80),
        st.text("'sStTlLvVeErR \t\r\n19/", max_size=60),
        st.text("abAB'_ \n", max_size=120),
    ),
    st.sampled_from(sorted(VOCABULARIES)),
)
def test_an_ascii_text_is_cut_as_tiktoken_cuts_it(text: str, name: str) -> None:
    assert AsciiEncoder(name).tokens(text) == cut_by_tiktoken(text, name)


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_pages_and_sources_are_cut_as_tiktoken_cuts_them(name: str) -> None:
    for path in (*ROOT.glob("docs/[a-e]*.md"), *ROOT.glob("statek_sim/usage/*.py")):
        text = path.read_text("utf-8").encode("ascii", "ignore").decode()[:LONGEST_OWN_TEXT]
        assert AsciiEncoder(name).tokens(text) == cut_by_tiktoken(text, name), path


@table_test(
    "text",
    ["22 \N{DEGREE SIGN}C", "a" * (LONGEST_OWN_WORD + 1), "a " * LONGEST_OWN_TEXT],
    ids=["not ASCII", "a long word", "a long text"],
)
def test_a_text_that_takes_long_or_is_not_ascii_is_left_to_tiktoken(text: str) -> None:
    assert AsciiEncoder("o200k_base").tokens(text) is None


def test_after_many_characters_all_texts_are_left_to_tiktoken() -> None:
    encoder = AsciiEncoder("o200k_base")
    text = "word " * 2_000
    cut = [encoder.tokens(text) is not None for _ in range(OWN_CHARACTERS // len(text) + 1)]
    assert cut == [True] * (OWN_CHARACTERS // len(text)) + [False]


def test_a_piece_is_a_token_of_the_models_own_vocabulary() -> None:
    assert token_pieces("Hello there, friend", "gpt-4o") == ("Hello", " there", ",", " friend")
    assert len(token_pieces("Hello there, friend", "gpt-4o")) == tokenizer_for_model(
        "gpt-4o"
    ).tokenizer.count("Hello there, friend")


def test_a_character_of_several_tokens_comes_whole() -> None:
    pieces = token_pieces("a 🜁 b", "gpt-4o")
    assert "".join(pieces) == "a 🜁 b"
    assert any("🜁" in piece for piece in pieces)


def test_what_no_token_can_say_stays_in_one_piece() -> None:
    assert token_pieces("a\ud800b", "gpt-4o") == ("a\ud800b",)
    assert token_pieces("", "gpt-4o") == ()


@given(st.text(max_size=60), st.sampled_from(["gpt-4o", "gpt-4", "claude-sonnet-4-5"]))
def test_the_pieces_are_the_text(text: str, model: str) -> None:
    assert "".join(token_pieces(text, model)) == text
