"""Tokenizers from this disk: a Hugging Face tokenizer.json, and Mistral's bundled Tekken."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Library
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from statek_sim.errors import BadInput
from statek_sim.usage.tokenizers import (
    HuggingFaceTokenizer,
    TekkenTokenizer,
    registry_of,
    tokenizer_for_model,
)


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """A tokenizer.json that counts words and punctuation, shortens to 3 tokens, and has an end-of-text token."""
    library = Library(WordLevel({"[UNK]": 0, "good": 1, "morning": 2}, unk_token="[UNK]"))
    library.pre_tokenizer = Whitespace()
    library.add_special_tokens(["</s>"])
    library.enable_truncation(3)
    library.save(str(tmp_path / "words.json"))
    return tmp_path / "words.json"


@pytest.fixture(scope="module")
def tekken() -> TekkenTokenizer:
    return TekkenTokenizer()


def test_a_tokenizer_json_counts_whole_texts(words: Path) -> None:
    assert HuggingFaceTokenizer(words).count("good morning , good morning") == 5


def test_a_special_token_in_a_text_is_text(words: Path) -> None:
    # `</`, `s` and `>` as the white space splitter sees them, not one end of text.
    assert HuggingFaceTokenizer(words).count("</s>") == 3


def test_tekken_counts_what_mistral_counts(tekken: TekkenTokenizer) -> None:
    assert tekken.count("") == 0
    assert tekken.count("Hello, world!") == 4
    assert tekken.count("1234567890") == 10


@pytest.mark.parametrize("text", ["</s>", "[INST] [/INST]", "<s>", "<|endoftext|>", "\ud800"])
def test_no_text_stops_a_count(words: Path, tekken: TekkenTokenizer, text: str) -> None:
    assert tekken.count(text) >= 1
    assert HuggingFaceTokenizer(words).count(text) >= 1


def test_models_are_measured_by_the_tokenizer_they_are_given(words: Path) -> None:
    registry = registry_of(["mistral=tekken", f"local/llama={words}"])
    assert tokenizer_for_model("mistral-large-2411", registry).label == "tekken"
    assert tokenizer_for_model("local/llama-3", registry).label == "words"
    assert tokenizer_for_model("gpt-4o", registry).label == "o200k_base"
    assert tokenizer_for_model("claude-x", registry).label == "o200k_base (proxy)"


def test_without_assignments_there_is_no_registry() -> None:
    assert registry_of([]) is None


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("tekken", "--tokenizer 'tekken': expected MODEL=tokenizer.json or MODEL=tekken"),
        ("llama=none.json", "none.json: no such file; expected a Hugging Face tokenizer.json"),
    ],
)
def test_a_wrong_assignment_is_bad_input(assignment: str, message: str) -> None:
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        registry_of([assignment])


def test_a_file_of_another_kind_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(
        BadInput, match=rf"^{re.escape(str(tmp_path))}/a\.json: not a Hugging Face tokenizer\.json: "
    ):
        registry_of([f"llama={tmp_path / 'a.json'}"])


def test_an_extra_that_is_not_installed_is_named(words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    message = "tokenizers is not installed; pip install 'pytest-statek[tokenizers]'"
    with pytest.raises(BadInput, match=f"^{re.escape(message)}$"):
        HuggingFaceTokenizer(words)
