"""Texts cut into tokens, as streams send them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statek_sim.usage.tokenizers import token_pieces, tokenizer_for_model


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
