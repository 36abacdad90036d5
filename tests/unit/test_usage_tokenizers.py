"""Each model is measured with its own tokenizer, or with a proxy that says so."""

from __future__ import annotations

import pytest

from statek_sim.errors import BadInput
from statek_sim.usage.tokenizers import (
    LONGEST_CACHED_TEXT,
    SHORT_TEXT,
    CachedTokenizer,
    TokenizerRegistry,
    bare_model_name,
    tokenizer_for_model,
)
from statek_sim.usage.vocabularies import LONGEST_SPACE
from tests.tables import table_test


class WordTokenizer:
    """Counts words, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        self.asked.append(text)
        return len(text.split())


@table_test(
    ("model", "label"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4o-2024-08-06", "o200k_base"),
        ("gpt-5-mini", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("gpt-3.5-turbo", "cl100k_base"),
        ("ft:gpt-4o:acme", "o200k_base"),
        ("openai/gpt-4", "cl100k_base"),
        ("OPENROUTER/openai/gpt-4o-mini", "o200k_base"),
        ("OPENROUTER/openai/gpt-4/rl=60", "cl100k_base"),
        ("text-davinci-003", "o200k_base (proxy)"),
        ("gpt-oss-120b", "o200k_base (proxy)"),
        ("claude-sonnet-4", "o200k_base (proxy)"),
        ("GPT-4", "o200k_base (proxy)"),
        ("", "o200k_base (proxy)"),
    ],
)
def test_a_model_is_measured_with_the_encoding_tiktoken_names_and_otherwise_with_a_labelled_proxy(
    model: str, label: str
) -> None:
    assert tokenizer_for_model(model).label == label


def test_the_two_encodings_count_differently() -> None:
    text = "你好,世界。Zażółć gęślą jaźń."
    modern, older = (tokenizer_for_model(model).tokenizer.count(text) for model in ("gpt-4o", "gpt-4"))
    assert (modern, older) == (16, 20)


@table_test(
    "text",
    ["<|endoftext|>", "<|endofprompt|> and <|fim_prefix|>", "\ud800 alone", "\x00", "\u202e", "e\u0301" * 50],
)
@table_test("model", ["gpt-4", "gpt-4o"])
def test_text_that_looks_special_or_broken_is_counted_like_any_other(model: str, text: str) -> None:
    assert tokenizer_for_model(model).tokenizer.count(text) > 0


def test_the_empty_text_has_no_tokens() -> None:
    assert tokenizer_for_model("gpt-4o").tokenizer.count("") == 0


@table_test("model", ["gpt-4", "gpt-4o"])
@table_test("space", [" ", "\t", "\n"])
def test_a_million_spaces_do_not_overflow_the_tokenizer(model: str, space: str) -> None:
    tokenizer = tokenizer_for_model(model).tokenizer
    text = "before" + space * 1_000_001 + "after"
    assert tokenizer.count(text) >= tokenizer.count(space * LONGEST_SPACE) * 10


def test_a_long_text_without_long_spaces_is_counted_in_one_piece() -> None:
    tokenizer = tokenizer_for_model("gpt-4o").tokenizer
    word = " word"
    assert tokenizer.count(word * LONGEST_SPACE) == LONGEST_SPACE


@pytest.mark.parametrize(
    ("size", "calls"), [(SHORT_TEXT, 1), (SHORT_TEXT + 1, 1), (LONGEST_CACHED_TEXT + 1, 2)]
)
def test_a_text_is_counted_once_unless_it_is_too_long_to_remember(size: int, calls: int) -> None:
    words = WordTokenizer()
    tokenizer = CachedTokenizer(words.count)
    assert [tokenizer.count("x" * size), tokenizer.count("x" * size)] == [1, 1]
    assert len(words.asked) == calls


def test_a_registered_tokenizer_measures_its_model_and_models_that_start_with_its_name() -> None:
    registry = TokenizerRegistry()
    registry.register_tokenizer("claude-", "words", WordTokenizer())
    for model in ("claude-sonnet-4", "ANTHROPIC/anthropic/claude-opus"):
        found = tokenizer_for_model(model, registry)
        assert (found.label, found.tokenizer.count("two words")) == ("words", 2)
    assert tokenizer_for_model("gpt-4o", registry).label == "o200k_base"


def test_the_longest_registered_prefix_wins_whatever_the_order() -> None:
    registry = TokenizerRegistry()
    registry.register_tokenizer("gpt-4o-mini", "mini", WordTokenizer())
    registry.register_tokenizer("gpt-4o", "own", WordTokenizer())
    labels = [
        tokenizer_for_model(model, registry).label for model in ("gpt-4o-mini-1", "gpt-4o-2024", "gpt-4")
    ]
    assert labels == ["mini", "own", "cl100k_base"]


def test_a_registered_tokenizer_is_asked_once_for_each_text() -> None:
    words = WordTokenizer()
    registry = TokenizerRegistry()
    registry.register_tokenizer("mine", "words", words)
    tokenizer = tokenizer_for_model("mine", registry).tokenizer
    assert [tokenizer.count("a b"), tokenizer.count("a b")] == [2, 2]
    assert words.asked == ["a b"]


def test_registering_a_taken_or_empty_name_is_an_error() -> None:
    registry = TokenizerRegistry()
    registry.register_tokenizer("mine", "words", WordTokenizer())
    with pytest.raises(
        BadInput, match=r"^tokenizer 'other': tokens for 'mine' are already counted with 'words'$"
    ):
        registry.register_tokenizer("mine", "other", WordTokenizer())
    with pytest.raises(BadInput, match=r"^tokenizer 'x' for model '': both names must be non-empty$"):
        registry.register_tokenizer("", "x", WordTokenizer())


@table_test(
    ("model", "name"),
    [("gpt-4o", "gpt-4o"), ("a/b/c", "c"), ("a/b/c/rl=3&x=1", "c"), ("a/", "a"), ("/", "/"), ("", "")],
)
def test_the_bare_name_of_a_model_is_its_last_part_without_options(model: str, name: str) -> None:
    assert bare_model_name(model) == name
