"""Every HTTP request of the scenarios on wire formats: as the reference runtime writes them, and as STATEK did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from statek_sim.backends.setup import script_of
from statek_sim.errors import ProviderHTTPError
from statek_sim.providers.http_provider import HttpRequest, HttpResponse
from statek_sim.providers.protocol import ChatRequest
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.providers.wire.format import FAKE_URLS, PROVIDERS, format_of, format_of_url
from statek_sim.scenario.load import load_or_fail
from statek_sim.scenario.schema import Scenario
from statek_sim.suite.run import builtin_suites

Told = list[dict[str, str]]
"""Requests as a record has them: URL, the headers that STATEK sets, the body's exact text."""

_DIRECTORY: Final = Path(__file__).resolve().parent / "recorded_requests"

KEY: Final = "a-key"
_HEADERS: Final = ("authorization", "x-api-key", "anthropic-version", "anthropic-beta", "content-type")
_CACHING: Final = {"ANTHROPIC_USE_PROMPT_CACHING": "true"}


@cache
def cases() -> dict[str, tuple[Scenario, Mapping[str, str]]]:
    """Return the scenarios by id with the variables they run with: Anthropic's also with prompt caching."""
    found = load_or_fail([builtin_suites() / "wire-formats"])
    alone = {scenario.id: scenario for scenario in found if len(scenario.jobs) == 1}
    cached = {name: scenario for name, scenario in alone.items() if name.startswith("anthropic")}
    return {
        **{name: (scenario, {}) for name, scenario in alone.items()},
        **{f"{name} with caching": (scenario, _CACHING) for name, scenario in cached.items()},
    }


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return STATEK's variables for every provider."""
    known = {
        f"{provider}_API_{part}": value
        for provider in PROVIDERS
        for part, value in (("URL", FAKE_URLS[format_of(provider).NAME]), ("KEY", KEY))
    }
    return {**known, **extra}


class Played:
    """A scenario's script, asked over HTTP by either backend. Keeps the requests."""

    def __init__(self, scenario: Scenario, extra: Mapping[str, str]) -> None:
        self.environment = environment(extra)
        self.requests: list[HttpRequest] = []
        ((self._role, agent),) = scenario.agents.items()
        self._style = agent.chat_style or ("MD_DIALOG" if agent.dialog else None)
        self._llm = ScriptedLLM(script_of(scenario))

    @property
    def transport(self) -> Played:
        return self

    def send(self, request: HttpRequest) -> HttpResponse:
        """Answer as the script says. All of it happens at one moment: only the request's body and its turn count."""
        self.requests.append(request)
        wire = format_of_url(request.url)
        read = wire.read_request(json.loads(request.body), request.url)
        asked = ChatRequest(
            job_id="main",
            role=self._role,
            turn=len(self.requests),
            attempt=1,
            at=0.0,
            model=read.model,
            messages=read.messages,
            tools=read.tools,
            temperature=read.temperature,
            bytes_sent=0,
            chat_style=self._style,
            wire=wire.NAME,
        )
        try:
            reply = self._llm.complete(asked)
        except ProviderHTTPError as failure:
            return HttpResponse(status=failure.status, body=b"")
        return HttpResponse(status=200, body=reply.body, latency=reply.latency)

    def check_finished(self) -> None:
        """Every reply was asked for."""
        self._llm.check_finished()

    def told(self) -> Told:
        """Return the requests as a record has them."""
        return [
            {
                "url": request.url,
                **{name: value for name, value in _lower(request.headers).items() if name in _HEADERS},
                "body": request.body.decode(),
            }
            for request in self.requests
        ]


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in sorted(headers.items())}


@cache
def recorded(version: str) -> dict[str, Told]:
    """Return the requests of every case on the real package of `version`."""
    record: dict[str, Any] = json.loads(_path(version).read_text(encoding="utf-8"))
    assert record["statek"] == version
    requests: dict[str, Told] = record["requests"]
    return requests


def write(version: str, requests: Mapping[str, Told]) -> Path:
    """Write a record and return where it is."""
    path = _path(version)
    text = json.dumps({"statek": version, "requests": requests}, ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _path(version: str) -> Path:
    return _DIRECTORY / f"{version}.json"
