"""Cassettes under requests and aiohttp, and under our own live transport, over real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import pytest
import requests
import vcr

from statek_sim.cassettes.document import read
from statek_sim.cassettes.scan import scan
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.tap import UnrecordedRequest, tapped
from statek_sim.errors import BadInput, ProviderUnreachable
from statek_sim.providers.http_provider import HttpRequest
from statek_sim.providers.live import LiveTransport
from tests.cassettes.provider import REPLY, Provider, provider

KEY = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
COOKIE = "verysecretsession"
QUESTION = "capital?"

Ask = Callable[..., list[str]]
"""Asks a provider at an address, in one piece and streamed, and returns what was heard."""


def body_of(question: str, *, stream: bool) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": question}], "stream": stream}


def place(url: str) -> str:
    return f"{url}/v1/chat/completions?api_key={KEY}"


def heard_in(lines: Iterator[str]) -> str:
    """The text of a stream of events."""
    events = (line[6:] for line in lines if line.startswith("data: {"))
    return "".join(json.loads(event)["choices"][0]["delta"].get("content", "") for event in events)


def with_requests(url: str, question: str = QUESTION) -> list[str]:
    with requests.Session() as client:
        client.headers["authorization"] = f"Bearer {KEY}"
        whole = client.post(place(url), json=body_of(question, stream=False))
        assert whole.status_code == 200
        with client.post(place(url), json=body_of(question, stream=True), stream=True) as pieces:
            lines = pieces.iter_lines(decode_unicode=True)
            return [whole.json()["choices"][0]["message"]["content"], heard_in(map(str, lines))]


async def ask_with_aiohttp(url: str, question: str) -> list[str]:
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {KEY}"}) as client:
        async with client.post(place(url), json=body_of(question, stream=False)) as whole:
            heard = [(await whole.json())["choices"][0]["message"]["content"]]
        async with client.post(place(url), json=body_of(question, stream=True)) as pieces:
            lines = [line.decode().rstrip("\n") async for line in pieces.content]
        return [*heard, heard_in(iter(lines))]


def with_aiohttp(url: str, question: str = QUESTION) -> list[str]:
    return asyncio.run(ask_with_aiohttp(url, question))


@pytest.fixture(params=[with_requests, with_aiohttp], ids=["requests", "aiohttp"])
def ask(request: pytest.FixtureRequest) -> Ask:
    client: Ask = request.param
    return client


def record(path: Path, ask: Ask, *, times: int = 1) -> Provider:
    """Record what `ask` does, each answer with a number; the provider is gone afterwards."""
    counter = iter(range(100))
    with provider(lambda body: f"{REPLY} {next(counter)}") as live:
        session = CassetteSession(path, RecordMode.ONCE)
        with tapped(session):
            for number in range(times):
                assert ask(live.url) == [f"{REPLY} {2 * number}", f"{REPLY} {2 * number + 1}"]
        assert session.close().recorded == 2 * times
    return live


def test_a_client_hears_the_recording_as_it_heard_the_provider_streams_too(tmp_path: Path, ask: Ask) -> None:
    gone = record(tmp_path / "it.yaml", ask)
    session = CassetteSession(tmp_path / "it.yaml", RecordMode.NONE)
    with tapped(session):
        assert ask(gone.url) == [f"{REPLY} 0", f"{REPLY} 1"]
    assert not session.unplayed()
    assert len(gone.requests) == 2


def test_what_was_recorded_of_them_holds_no_secret_and_is_readable(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "it.yaml"
    record(path, ask)
    text = path.read_text("utf-8")
    assert KEY not in text
    assert COOKIE not in text
    assert "api_key=REDACTED" in text
    assert f'"content": "{REPLY} 0"' in text
    assert not scan(path).leaks
    assert [one.response.is_stream for one in read(path)] == [False, True]


def test_recordings_are_found_by_their_request_whatever_their_place_in_the_file(
    tmp_path: Path, ask: Ask
) -> None:
    path = tmp_path / "it.yaml"
    with provider(lambda body: f"to {body['messages'][0]['content']}") as live:
        session = CassetteSession(path, RecordMode.ONCE)
        with tapped(session):
            for question in ("one", "two"):
                ask(live.url, question)
        session.close()
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session):
        assert ask(live.url, "two") == ["to two"] * 2
        assert ask(live.url, "one") == ["to one"] * 2
    assert not session.unplayed()


def test_the_same_request_plays_in_the_order_of_recording_and_once_more_is_a_miss(
    tmp_path: Path, ask: Ask
) -> None:
    gone = record(tmp_path / "it.yaml", ask, times=3)
    session = CassetteSession(tmp_path / "it.yaml", RecordMode.NONE)
    with tapped(session):
        assert [ask(gone.url)[0] for _ in range(3)] == [f"{REPLY} {number}" for number in (0, 2, 4)]
        with pytest.raises(
            UnrecordedRequest, match=r"is recorded 3 times with this body, but was requested once more"
        ):
            ask(gone.url)


def test_a_miss_goes_through_the_client_with_what_differs(tmp_path: Path, ask: Ask) -> None:
    gone = record(tmp_path / "it.yaml", ask)
    session = CassetteSession(tmp_path / "it.yaml", RecordMode.NONE)
    with (
        tapped(session),
        pytest.raises(UnrecordedRequest, match=r'recorded: "capital\?"\n +now: +"currency\?"'),
    ):
        ask(gone.url, "currency?")
    assert len(session.misses) == 1
    assert len(gone.requests) == 2


def test_vcrpy_alone_replays_what_was_recorded_of_them(tmp_path: Path, ask: Ask) -> None:
    gone = record(tmp_path / "it.yaml", ask)
    # The body of a request of aiohttp is no text there, but what JSON is made of: it cannot be compared.
    ways = ["method", "scheme", "host", "port", "path"]
    with vcr.use_cassette(str(tmp_path / "it.yaml"), record_mode="none", match_on=ways) as cassette:
        assert ask(gone.url) == [f"{REPLY} 0", f"{REPLY} 1"]
        assert cassette.all_played


def test_what_vcrpy_recorded_of_them_plays_here(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "vcrpy.yaml"
    with provider() as live, vcr.use_cassette(str(path)):
        assert ask(live.url) == [REPLY] * 2
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session):
        assert ask(live.url) == [REPLY] * 2
    assert not session.unplayed()


async def send_forms(url: str) -> list[int]:
    several = aiohttp.FormData()
    several.add_field("purpose", "batch")
    several.add_field("file", b"one line", filename="it.jsonl")
    async with aiohttp.ClientSession() as client:
        sent = []
        for form in ({"grant": "code", "client_secret": "plumtreeorchard"}, several):
            async with client.post(url, data=form) as answer:
                sent.append(answer.status)
        return sent


def test_forms_of_aiohttp_are_recorded_as_they_are_sent_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "forms.yaml"
    with forms() as (url, bodies):
        session = CassetteSession(path, RecordMode.ONCE)
        with tapped(session):
            assert asyncio.run(send_forms(url)) == [200, 200]
        session.close()
    assert bodies[0] == b"grant=code&client_secret=plumtreeorchard"
    assert b"one line" in bodies[1]
    assert "plumtreeorchard" not in path.read_text("utf-8")
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session):
        assert asyncio.run(send_forms(url)) == [200, 200]
    assert not session.unplayed()


async def moved(url: str) -> tuple[str, list[int]]:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/moved") as answer:
        return str(answer.url), [answer.status, *(past.status for past in answer.history)]


def test_aiohttp_follows_a_recorded_redirect_as_it_followed_the_real_one(tmp_path: Path) -> None:
    path = tmp_path / "moved.yaml"
    with forms() as (url, _):
        session = CassetteSession(path, RecordMode.ONCE)
        with tapped(session):
            live = asyncio.run(moved(url))
        assert session.close().recorded == 2
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session):
        assert asyncio.run(moved(url)) == live == (f"{url}/here", [200, 307])
    assert not session.unplayed()


@contextmanager
def forms() -> Iterator[tuple[str, list[bytes]]]:
    """A server that takes anything and keeps it; what is `/moved` is to be asked for at `/here`."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self._answer(200)

        def do_GET(self) -> None:
            self._answer(307 if self.path.endswith("/moved") else 200)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("content-length", "0")
            if status != 200:
                self.send_header("location", self.path.replace("/moved", "/here"))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# -- our own transport -------------------------------------------------------------------------------------------------


def request_to(url: str, question: str = QUESTION, *, stream: bool = False) -> HttpRequest:
    return HttpRequest(
        method="POST",
        url=place(url),
        headers={"authorization": f"Bearer {KEY}", "content-type": "application/json"},
        body=json.dumps(body_of(question, stream=stream)).encode(),
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_live_transport_is_recorded_and_played_under_a_tap(tmp_path: Path, *, stream: bool) -> None:
    path = tmp_path / "live.yaml"
    with provider() as live:
        session = CassetteSession(path, RecordMode.ONCE)
        with tapped(session):
            sent = LiveTransport().send(request_to(live.url, stream=stream))
        assert session.close().recorded == 1
    assert KEY not in path.read_text("utf-8")
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session):
        heard = LiveTransport().send(request_to(live.url, stream=stream))
    assert (heard.status, heard.body) == (200, sent.body)
    assert not session.unplayed()
    assert len(live.requests) == 1


def test_a_provider_that_is_gone_is_told_by_the_live_transport_and_not_recorded(tmp_path: Path) -> None:
    with provider() as live:
        pass
    session = CassetteSession(tmp_path / "live.yaml", RecordMode.ONCE)
    with tapped(session), pytest.raises(ProviderUnreachable):
        LiveTransport().send(request_to(live.url))
    assert session.close().recorded == 0
    assert not (tmp_path / "live.yaml").exists()


def with_httpx(url: str, question: str = QUESTION) -> list[str]:
    with httpx2.Client() as client:
        client.post(place(url), json=body_of(question, stream=True))
    return []


async def stream_with_aiohttp(url: str) -> None:
    async with (
        aiohttp.ClientSession() as client,
        client.post(place(url), json=body_of("a", stream=True)) as pieces,
    ):
        await pieces.read()


@pytest.mark.parametrize(
    "asked",
    [
        with_httpx,
        with_requests,
        lambda url: asyncio.run(stream_with_aiohttp(url)),
    ],
    ids=["httpx", "requests", "aiohttp"],
)
def test_an_answer_that_breaks_off_is_not_recorded_and_told(tmp_path: Path, asked: Ask) -> None:
    path = tmp_path / "live.yaml"
    session = CassetteSession(path, RecordMode.ONCE)
    with provider() as live:
        live.breaks_off = True
        with (
            tapped(session),
            suppress(httpx2.HTTPError, requests.RequestException, aiohttp.ClientError, OSError),
        ):
            asked(live.url)
    with pytest.raises(BadInput, match=r"live\.yaml: not recorded: .*response broke off.*: ") as told:
        session.close()
    assert KEY not in str(told.value)
    assert not path.exists() or b"true" not in path.read_bytes()


async def cancelled_httpx(url: str) -> None:
    async with httpx2.AsyncClient() as client:
        await asyncio.wait_for(client.post(place(url), json=body_of("a", stream=True)), 0.3)


async def impatient_aiohttp(url: str, **timeout: float) -> None:
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(**timeout)) as client,
        client.post(place(url), json=body_of("a", stream=True)) as pieces,
    ):
        await pieces.read()


@pytest.mark.parametrize(
    "asked",
    [
        lambda url: asyncio.run(cancelled_httpx(url)),
        lambda url: asyncio.run(asyncio.wait_for(stream_with_aiohttp(url), 0.3)),
        lambda url: asyncio.run(impatient_aiohttp(url, total=0.3)),
        lambda url: asyncio.run(impatient_aiohttp(url, sock_read=0.3)),
    ],
    ids=["httpx cancelled", "aiohttp cancelled", "aiohttp total", "aiohttp sock_read"],
)
def test_an_answer_that_nobody_waits_for_is_not_recorded_and_told(
    tmp_path: Path, asked: Callable[[str], None]
) -> None:
    path = tmp_path / "live.yaml"
    session = CassetteSession(path, RecordMode.ONCE)
    with provider() as live:
        live.stalls = 0.6
        with tapped(session), pytest.raises(TimeoutError):
            asked(live.url)
    with pytest.raises(BadInput, match=r"live\.yaml: not recorded: POST .*response broke off.*: \w+"):
        session.close()
    assert not path.exists()


def test_a_miss_is_no_failure_of_the_provider_that_the_live_transport_would_tell(tmp_path: Path) -> None:
    session = CassetteSession(tmp_path / "live.yaml", RecordMode.NONE)
    with tapped(session), pytest.raises(UnrecordedRequest, match="the cassette does not exist"):
        LiveTransport().send(request_to("http://127.0.0.1:1"))
    assert len(session.misses) == 1


def test_gzip_is_undone_once_whoever_records(tmp_path: Path, ask: Ask) -> None:
    path = tmp_path / "it.yaml"
    live = record(path, ask)
    bodies = [one.response.body for one in read(path)]
    assert all("gzip" in encoding for encoding in live.encodings)
    assert not [body for body in bodies if body.startswith(gzip.compress(b"")[:2])]
