"""A fake provider on this machine that scenarios are recorded from, and the scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from statek_sim.providers.http_provider import HttpRequest, HttpResponse
from statek_sim.providers.live import LiveTransport
from statek_sim.providers.network import permit_network
from statek_sim.providers.script import Reply, ScriptEntry, code, tool_call
from statek_sim.providers.wire import anthropic
from statek_sim.providers.wire.reply import ReportedUsage
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.server.llm_server import LLMServer

SCENARIO: Final = """\
suite: books
scenarios:
  - id: invoice
    title: An invoice is noted and read again.
    agents:
      clerk:
        prompt: You keep the books.
        model: a-model
        chat_style: MARKDOWN
        tools: [note, echo]
        tools_scope: APPLICATION
        temperature: 0.5
    jobs: {main: {message: Note invoice 7.}}
    expect:
      llm_calls: 3
      jobs: {main: {status: DONE, exit: noted, usage: {reported_tokens: 66}}}
"""

FORMAT_OF: Final = {"GROQ": "openai", "ANTHROPIC": "anthropic", "VERTEXAI": "gemini"}
"""A provider of each format."""


def scenario_in(folder: Path, text: str = SCENARIO) -> Scenario:
    """Return the scenario, written to a file."""
    path = folder / "books.yaml"
    path.write_text(text, encoding="utf-8")
    (scenario,) = load_or_fail([path])
    return scenario


def conversation() -> list[Reply]:
    """Return what the provider answers: a tool call, code, the end; 22 tokens each."""
    usage = ReportedUsage(prompt=20, completion=2, cached=5)
    replies: list[Reply] = [
        tool_call("note", text="żółw 7"),
        code("print(echo('seven'))").fenced(fence=True),
        code("exit('noted')").fenced(fence=True),
    ]
    return [replace(reply, usage=usage) for reply in replies]


def environment_for(server: LLMServer, provider: str) -> dict[str, str]:
    """Return STATEK's variables for a provider at the server."""
    urls = {
        "GROQ": f"{server.openai_url}/chat/completions",
        "ANTHROPIC": "https://ignored.invalid",
        "VERTEXAI": f"{server.url}/v1beta/models",
    }
    return {f"{provider}_API_URL": urls[provider], f"{provider}_API_KEY": "sk-live-secret-0123456789abcdef"}


class Redirected:
    """A live transport for which Anthropic is at the server: STATEK's client knows one address only."""

    def __init__(self, server: LLMServer) -> None:
        self._address = f"{server.url}/v1/messages"
        self._live = LiveTransport(permit=permit_network)
        self.requests: list[HttpRequest] = []

    def send(self, request: HttpRequest) -> HttpResponse:
        self.requests.append(request)
        url = self._address if request.url == anthropic.request_url("", "") else request.url
        return self._live.send(replace(request, url=url))


@contextmanager
def provider_with(*replies: ScriptEntry) -> Iterator[LLMServer]:
    """Serve a provider that gives these replies."""
    with LLMServer() as server:
        server.script(list(replies))
        yield server
