from __future__ import annotations

import pytest

from statek_sim.errors import BadSetting
from statek_sim.providers.http_provider import Access, access_from, client_options
from tests.tables import table_test

GROQ = {"GROQ_API_URL": "https://api.groq.com/openai/v1/chat/completions", "GROQ_API_KEY": "gsk-1"}


def test_a_provider_is_reached_as_the_environment_says() -> None:
    assert access_from(GROQ, "groq") == Access(GROQ["GROQ_API_URL"], "gsk-1")


def test_the_key_is_not_in_the_text_of_an_access() -> None:
    assert "gsk-1" not in repr(access_from(GROQ, "GROQ"))


@table_test(
    ("environment", "missing"),
    [
        ({}, "GROQ_API_URL and GROQ_API_KEY"),
        ({"GROQ_API_URL": "http://x"}, "GROQ_API_KEY"),
        ({"GROQ_API_URL": "", "GROQ_API_KEY": "k"}, "GROQ_API_URL"),
        ({"groq_API_URL": "http://x", "GROQ_API_KEY": "k"}, "GROQ_API_URL"),
    ],
)
def test_what_is_missing_is_named(environment: dict[str, str], missing: str) -> None:
    message = (
        rf"^cannot send a request to GROQ: set {missing}, just as you would for STATEK itself "
        r"\(the URL must include the chat endpoint path\)$"
    )
    with pytest.raises(BadSetting, match=message):
        access_from(environment, "GROQ")


def test_a_response_format_file_is_refused() -> None:
    with pytest.raises(BadSetting, match=r"^GROQ_RESPONSE_FORMAT_FILE is not supported; unset it$"):
        access_from({**GROQ, "GROQ_RESPONSE_FORMAT_FILE": "schema.json"}, "GROQ")


@table_test(("said", "caching"), [("true", True), ("1", True), ("YES", True), ("no", False), ("", False)])
def test_prompt_caching_is_asked_for_as_in_statek(said: str, *, caching: bool) -> None:
    assert client_options({"CLAUDE_USE_PROMPT_CACHING": said}).prompt_caching is caching


def test_prompt_caching_of_others_is_nothing_that_statek_knows() -> None:
    assert client_options({"GROQ_USE_PROMPT_CACHING": "true"}).prompt_caching is False
