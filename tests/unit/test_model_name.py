"""Tests of `statek_sim.runtime.execution.model_name`; accepted and refused texts are those of 1.2.7 and 1.4.2."""

from __future__ import annotations

import re

import pytest

from statek_sim.errors import BadSetting
from statek_sim.harness.settings import TaskDifficulty
from statek_sim.runtime.execution.model_name import (
    BadModelName,
    model_for_provider,
    model_provider,
    models_by_difficulty,
    parse_model_name,
)
from tests.tables import table_test


@table_test(
    ("text", "parts", "params"),
    [
        ("gpt-4o", (None, None, "gpt-4o"), {}),
        ("openai/gpt-4o", (None, "openai", "gpt-4o"), {}),
        ("openrouter/openai/gpt-4o", ("openrouter", "openai", "gpt-4o"), {}),
        (" a / b / c ", ("a", "b", "c"), {}),
        ("gpt-4o/rl=50", (None, None, "gpt-4o"), {"rl": "50"}),
        ("a/b/c/rl=5&t=1", ("a", "b", "c"), {"rl": "5", "t": "1"}),
        ("m/rl=", (None, None, "m"), {"rl": ""}),
        ("m/a=1&a=2", (None, None, "m"), {"a": "2"}),
        ("a/b/c/d", ("a", "b", "c/d"), {}),
        ("m/rl=50/x", ("m", "rl=50", "x"), {}),
        ("a//m", ("a", None, "m"), {}),
        ("/m", (None, None, "m"), {}),
        ("rl=5", (None, None, None), {"rl": "5"}),
    ],
)
def test_a_model_string_splits_into_its_parts(
    text: str, parts: tuple[str | None, ...], params: dict[str, str]
) -> None:
    name = parse_model_name(text)
    assert (name.provider, name.model_family, name.model) == parts
    assert name.params == params


def test_equal_names_are_equal_and_hash_alike() -> None:
    one, other = parse_model_name("a/b/rl=5"), parse_model_name(" a/b/rl=5")
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "model name must not be empty"),
        ("  ", "model name must not be empty"),
        ("m/rl=5&x", "model parameters must use URL query syntax"),
    ],
)
def test_a_text_that_is_no_model_is_refused_in_stateks_words_with_a_note(text: str, message: str) -> None:
    with pytest.raises(BadModelName, match=f"^{re.escape(message)}\nMODEL {re.escape(repr(text))}: expected"):
        parse_model_name(text)


def test_a_refused_model_is_a_bad_setting_and_a_value_error_as_in_statek() -> None:
    assert issubclass(BadModelName, BadSetting)
    assert issubclass(BadModelName, ValueError)


@table_test(
    ("text", "provider", "sent"),
    [
        ("openai/gpt-4o", "OPENROUTER", "openai/gpt-4o"),
        ("x/openai/gpt-4o/rl=5", "openrouter", "openai/gpt-4o"),
        ("openai/gpt-4o", "OPENAI", "gpt-4o"),
        ("openai/gpt-4o", None, "gpt-4o"),
        ("gpt-4o", "OPENROUTER", "gpt-4o"),
    ],
)
def test_only_openrouter_is_sent_the_family(text: str, provider: str | None, sent: str) -> None:
    assert model_for_provider(text, provider) == sent


@table_test("text", ["a/", "/", "rl=5", "a/b/"])
def test_a_string_without_a_model_cannot_be_sent(text: str) -> None:
    with pytest.raises(BadModelName, match=r"^model name must include a model component\n"):
        model_for_provider(text, "OPENAI")


def test_only_a_name_of_three_parts_has_a_provider() -> None:
    assert model_provider("azure/openai/gpt-4o") == "azure"
    assert model_provider("openai/gpt-4o") is None


@table_test(
    ("text", "low", "medium", "high"),
    [
        ("gpt-4o", "gpt-4o", "gpt-4o", "gpt-4o"),
        (" gpt-4o ", "gpt-4o", "gpt-4o", "gpt-4o"),
        ("L:a,M:b,H:c", "a", "b", "c"),
        ("h:c, l:a ,m: b", "a", "b", "c"),
        ("LM:a,H:b", "a", "a", "b"),
        ("LMH:a", "a", "a", "a"),
        ("LM:qwen3:free,H:b/rl=5", "qwen3:free", "qwen3:free", "b/rl=5"),
    ],
)
def test_each_difficulty_has_its_model(text: str, low: str, medium: str, high: str) -> None:
    models = models_by_difficulty(text)
    assert [models[level] for level in TaskDifficulty] == [low, medium, high]


@table_test(
    ("text", "problem"),
    [
        ("L:a,M:b", "MODEL metadata must specify all difficulty levels when using difficulty labels"),
        ("L:a", "MODEL metadata must specify all difficulty levels when using difficulty labels"),
        ("L:a,L:b,M:c,H:d", "Duplicate MODEL metadata for difficulty low"),
        ("llama3.1:8b", "Duplicate MODEL metadata for difficulty low"),
        ("qwen/qwen3:free", "Invalid task difficulty: 'Q'"),
        ("L:a,M:b,x", "MODEL metadata must use either a single model or difficulty labels for all entries"),
        ("L:a,M:b,H:", "MODEL metadata difficulty labels and model names must be non-empty"),
        (":a", "MODEL metadata difficulty labels and model names must be non-empty"),
        (",L:a", "MODEL metadata must use either a single model or difficulty labels for all entries"),
        ("LOW:a,M:b,H:c", "Invalid task difficulty: 'O'"),
        ("L M:a,H:b", "Invalid task difficulty: ' '"),
    ],
)
def test_a_mapping_that_is_none_is_refused_in_stateks_words_with_a_note(text: str, problem: str) -> None:
    with pytest.raises(BadModelName, match=re.escape(problem)) as refused:
        models_by_difficulty(text)
    assert str(refused.value) == problem
    [note] = refused.value.__notes__
    assert note.startswith(f"MODEL {text!r}: a ':' means difficulty labels; expected one model without ':'")
