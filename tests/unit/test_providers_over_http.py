from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest

from statek_sim.errors import ProviderHTTPError
from statek_sim.providers.contract import check_provider, example_requests
from statek_sim.providers.http_provider import Access, HttpLLM, HttpRequest, HttpResponse, http_request
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.wire import openai
from statek_sim.providers.wire.format import FAKE_URLS, FORMATS
from statek_sim.providers.wire.reply import WireReply
from statek_sim.providers.wire.request import ClientOptions, FormatName
from tests.tables import table_test

REQUEST: ChatRequest = example_requests(turns=1)[0]
ACCESS = Access("https://llm.invalid/v1/chat/completions", "a-key")


@dataclass
class OneAnswer:
    """A transport that always answers the same."""

    response: HttpResponse
    requests: list[HttpRequest] = field(default_factory=list)

    def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        return self.response


def llm(response: HttpResponse) -> HttpLLM:
    return HttpLLM(OneAnswer(response), lambda provider: ACCESS)


def test_an_answer_is_given_on_with_the_time_it_took() -> None:
    reply = llm(HttpResponse(status=200, body=b"{}", latency=2.5)).complete(REQUEST)
    assert (reply.body, reply.latency) == (b"{}", 2.5)


def test_it_keeps_the_contract_of_providers() -> None:
    body = openai.reply_body(WireReply(id="1", model="m", created=0, text="hi"))
    check_provider(lambda: llm(HttpResponse(status=200, body=body)))


def test_the_provider_is_asked_for_in_upper_case() -> None:
    asked: list[str] = []

    def accesses(provider: str) -> Access:
        asked.append(provider)
        return ACCESS

    HttpLLM(OneAnswer(HttpResponse(status=200, body=b"")), accesses).complete(
        replace(REQUEST, provider="groq")
    )
    assert asked == ["GROQ"]


def test_a_body_is_compact_json_in_utf8_as_httpx_writes_it() -> None:
    messages = ({"role": "user", "content": "żółw"},)
    sent = http_request(replace(REQUEST, messages=messages, tools=()), ACCESS)
    assert sent.body == '{"model":"gpt-4o","messages":[{"role":"user","content":"żółw"}]}'.encode()
    assert sent.headers == {"Authorization": "Bearer a-key", "Content-Type": "application/json"}
    assert (sent.method, sent.url) == ("POST", "https://llm.invalid/v1/chat/completions")


def test_the_options_decide_over_headers_and_body() -> None:
    options = ClientOptions(prompt_caching=True)
    sent = http_request(replace(REQUEST, wire="anthropic", options=options), ACCESS)
    assert sent.headers["anthropic-beta"] == "prompt-caching-2024-07-31"
    assert json.loads(sent.body)["system"][0]["cache_control"] == {"type": "ephemeral"}


@table_test("wire", FORMATS)
def test_a_bound_of_the_answer_is_sent_as_every_format_writes_it_and_its_server_reads_it(
    wire: FormatName,
) -> None:
    options = ClientOptions(max_tokens=17)
    sent = http_request(replace(REQUEST, wire=wire, options=options), ACCESS)
    read = FORMATS[wire].read_request(
        json.loads(sent.body), FORMATS[wire].request_url(FAKE_URLS[wire], "gpt-4o")
    )
    assert read.max_tokens == 17


@pytest.mark.parametrize(
    ("wire", "url"),
    [
        ("openai", "https://llm.invalid/v1/chat/completions"),
        ("anthropic", "https://api.anthropic.com/v1/messages"),
        ("gemini", "https://llm.invalid/v1/chat/completions/gpt-4o:generateContent"),
    ],
)
def test_a_refusal_names_the_address_that_was_asked(wire: FormatName, url: str) -> None:
    with pytest.raises(ProviderHTTPError) as caught:
        llm(HttpResponse(status=404, body=b"nothing", latency=1.0)).complete(replace(REQUEST, wire=wire))
    assert str(caught.value).startswith(f"Client error '404 Not Found' for url '{url}'\n")
    assert (caught.value.status, caught.value.latency) == (404, 1.0)


def test_a_redirect_is_a_failure_that_tells_where_to() -> None:
    response = HttpResponse(status=307, body=b"", headers={"Location": "https://new.invalid/"})
    with pytest.raises(ProviderHTTPError, match=r"\nRedirect location: 'https://new\.invalid/'\n"):
        llm(response).complete(REQUEST)
