"""Google's own SDK, synchronous and not, streaming and not, against the fake server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from statek_sim.providers.script import fault, text, tool_call
from statek_sim.server.llm_server import LLMServer
from statek_sim.trajectory import trajectory

genai = pytest.importorskip("google.genai", reason="it comes with the dev extra")

MODEL = "gemini-2.5-pro"


@pytest.fixture
def client(statek_llm_server: LLMServer) -> Iterator[Any]:
    options = genai.types.HttpOptions(base_url=statek_llm_server.url, timeout=60_000)
    with genai.Client(api_key="none", http_options=options) as made:
        yield made


def test_an_answer_has_text_and_usage(statek_llm_server: LLMServer, client: Any) -> None:
    statek_llm_server.script([text("Hello there.").on("Hello?", model=MODEL)])
    answer = client.models.generate_content(model=MODEL, contents="Hello?")
    assert (answer.text, answer.usage_metadata.candidates_token_count) == ("Hello there.", 3)


def test_a_streamed_answer_is_read_piece_by_piece(statek_llm_server: LLMServer, client: Any) -> None:
    statek_llm_server.script([text("Hello there.")])
    stream = client.models.generate_content_stream(model=MODEL, contents="Hello?")
    assert [chunk.text for chunk in stream] == ["Hello", " there", "."]


# Where aiohttp is installed the SDK uses it, in a way that aiohttp discourages.
@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
def test_the_asynchronous_client_streams_too(statek_llm_server: LLMServer, client: Any) -> None:
    statek_llm_server.script([text("Hello there.")])

    async def ask() -> str:
        asynchronous = client.aio
        stream = await asynchronous.models.generate_content_stream(model=MODEL, contents="Hello?")
        pieces = [chunk.text async for chunk in stream]
        await asynchronous.aclose()
        return "".join(pieces)

    assert asyncio.run(ask()) == "Hello there."


def test_the_sdk_calls_a_python_function_and_sends_its_result(
    statek_llm_server: LLMServer, client: Any
) -> None:
    def look(where: str) -> str:
        """Look somewhere."""
        return f"nothing {where}"

    statek_llm_server.script(
        [tool_call("look", where="here"), text("Nothing.").on(tool_result="nothing here")]
    )
    config = genai.types.GenerateContentConfig(tools=[look])
    answer = client.models.generate_content(model=MODEL, contents="Look.", config=config)
    assert answer.text == "Nothing."
    # The SDK leaves out the id of the call that it answers, and wraps the text into an object.
    assert trajectory(statek_llm_server).calls[0].result == "nothing here"


def test_errors_are_the_sdks_own(statek_llm_server: LLMServer, client: Any) -> None:
    statek_llm_server.script([fault(403)])
    with pytest.raises(genai.errors.ClientError, match="PERMISSION_DENIED"):
        client.models.generate_content(model=MODEL, contents="Hello?")
