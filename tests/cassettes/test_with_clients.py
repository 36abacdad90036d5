"""Cassettes of ours in the hands of vcrpy, and vcrpy's in ours, over real sockets."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anthropic
import httpx2
import openai
import pytest
import vcr

from statek_sim.cassettes.document import read
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.scan import scan
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.tap import UnrecordedRequest, tapped
from tests.cassettes.provider import REPLY, Provider, provider

KEY = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
COOKIE = "verysecretsession"


def talk(url: str) -> list[str]:
    """Ask both official clients, in one piece and streamed; return what they heard."""
    heard = []
    with openai.OpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as client:
        ask = client.chat.completions.create
        whole = ask(model="gpt-4o", messages=[{"role": "user", "content": "capital?"}])
        heard.append(whole.choices[0].message.content or "")
        pieces = ask(model="gpt-4o", messages=[{"role": "user", "content": "capital?"}], stream=True)
        heard.append("".join(piece.choices[0].delta.content or "" for piece in pieces))
    with anthropic.Anthropic(api_key=KEY, base_url=url, max_retries=0) as claude:
        message = claude.messages.create(
            model="claude-sonnet-4", max_tokens=9, messages=[{"role": "user", "content": "capital?"}]
        )
        heard += [block.text for block in message.content if block.type == "text"]
        with claude.messages.stream(
            model="claude-sonnet-4", max_tokens=9, messages=[{"role": "user", "content": "capital?"}]
        ) as stream:
            heard.append("".join(stream.text_stream))
    return heard


async def talk_async(url: str) -> list[str]:
    """The same with the asynchronous clients."""
    heard = []
    async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0) as client:
        pieces = await client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": "async?"}], stream=True
        )
        heard.append("".join([piece.choices[0].delta.content or "" async for piece in pieces]))
    async with anthropic.AsyncAnthropic(api_key=KEY, base_url=url, max_retries=0) as claude:
        message = await claude.messages.create(
            model="claude-sonnet-4", max_tokens=9, messages=[{"role": "user", "content": "async?"}]
        )
        heard += [block.text for block in message.content if block.type == "text"]
    return heard


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Provider]:
    """A cassette of `talk`; its provider is gone."""
    path = tmp_path / "talk.yaml"
    with provider() as live:
        session = CassetteSession(path, RecordMode.ONCE)
        with tapped(session):
            assert talk(live.url) == [REPLY] * 4
        session.close()
    return path, live


def test_the_official_clients_hear_the_recording_as_they_heard_the_provider(
    recorded: tuple[Path, Provider],
) -> None:
    path, gone = recorded
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session):
        assert talk(gone.url) == [REPLY] * 4
    assert not session.unplayed()
    assert len(gone.requests) == 4


def test_vcrpy_alone_replays_what_we_recorded(recorded: tuple[Path, Provider]) -> None:
    path, gone = recorded
    ways = ["method", "scheme", "host", "port", "path", "query", "body"]
    with vcr.use_cassette(str(path), record_mode="none", match_on=ways) as cassette:
        assert talk(gone.url) == [REPLY] * 4
        assert cassette.all_played


def test_we_replay_what_vcrpy_recorded(tmp_path: Path) -> None:
    path = tmp_path / "vcrpy.yaml"
    with provider() as live, vcr.use_cassette(str(path)):
        assert talk(live.url) == [REPLY] * 4
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session):
        assert talk(live.url) == [REPLY] * 4
    assert not session.unplayed()


async def check_async(path: Path, url: str, mode: RecordMode) -> CassetteSession:
    session = CassetteSession(path, mode)
    with tapped(session):
        assert await talk_async(url) == [REPLY] * 2
    return session


def test_the_asynchronous_clients_are_recorded_and_played_too(tmp_path: Path) -> None:

    path = tmp_path / "async.yaml"
    with provider() as live:
        asyncio.run(check_async(path, live.url, RecordMode.ONCE)).close()
    assert not asyncio.run(check_async(path, live.url, RecordMode.NONE)).unplayed()
    assert len(live.requests) == 2


def test_the_timing_of_a_stream_is_kept_and_vcrpy_does_not_mind(recorded: tuple[Path, Provider]) -> None:
    path, _ = recorded
    streams = [one.response for one in read(path) if one.response.is_stream]
    assert len(streams) == 2
    for response in streams:
        assert len(response.chunks) > 3
        assert sum(chunk.size for chunk in response.chunks) == len(response.body)
        assert list(response.chunks) == sorted(response.chunks, key=lambda chunk: chunk.at)


def test_no_key_and_no_cookie_is_in_the_file(recorded: tuple[Path, Provider]) -> None:
    path, _ = recorded
    text = path.read_text("utf-8")
    assert KEY not in text
    assert COOKIE not in text
    assert text.count("REDACTED") >= 4
    assert not scan(path).leaks


def test_two_recordings_of_the_same_talk_differ_in_nothing_but_the_port_and_the_timing(
    tmp_path: Path,
) -> None:
    texts = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.yaml"
        with provider() as live:
            session = CassetteSession(path, RecordMode.ONCE)
            with tapped(session):
                talk(live.url)
            session.close()
        lines = path.read_text("utf-8").replace(live.url, "URL").split("\n")
        texts.append([line for line in lines if "chunks:" not in line])
    assert texts[0] == texts[1]


def test_another_port_is_another_provider_unless_it_is_ignored(recorded: tuple[Path, Provider]) -> None:
    path, _ = recorded
    with (
        pytest.raises(
            UnrecordedRequest, match=r"differences:\n    port\n      recorded: \d+\n      now:      1\n"
        ),
        tapped(CassetteSession(path, RecordMode.NONE)),
    ):
        talk("http://127.0.0.1:1")
    with tapped(CassetteSession(path, RecordMode.NONE, Matching.ignoring(["port"]))):
        assert talk("http://127.0.0.1:1") == [REPLY] * 4


def test_scan_finds_what_vcrpy_let_through(tmp_path: Path) -> None:
    path = tmp_path / "vcrpy.yaml"
    in_reply = "AIzaSyA0123456789abcdefghijklmnopqrstuv"
    with provider(lambda _: f"the key is {in_reply}") as live, vcr.use_cassette(str(path)):
        talk(live.url)
        with httpx2.Client() as client:
            client.get(f"{live.url}/v1/models?key=0123456789abcdef")
            client.post(f"{live.url}/v1/messages", json={"password": "hunter2hunter2"})
            client.post(f"{live.url}/v1/messages", json={"note": "xoxb-1234567890-abcdefghij"})
    kinds = {leak.kind for leak in scan(path).leaks}
    assert kinds >= {
        "a value named 'authorization'",
        "a value named 'set-cookie'",
        "a value named 'password'",
        "a Google API key",
        "a Google API key, in pieces of a stream",
        "a Slack token",
        "the parameter 'key'",
    }
    lines = path.read_text("utf-8").split("\n")
    slack = next(leak for leak in scan(path).leaks if leak.kind == "a Slack token")
    assert "xoxb-" in "".join(lines[slack.line - 1 : slack.line + 1])


def test_threads_share_the_recordings_and_none_plays_twice(tmp_path: Path) -> None:

    path = tmp_path / "threads.yaml"
    counter = iter(range(100))
    body = {"messages": [{"role": "user", "content": "same"}]}

    def ask(client: httpx2.Client, url: str) -> str:
        answer = client.post(f"{url}/v1/chat/completions", json=body).json()
        return str(answer["choices"][0]["message"]["content"])

    with provider(lambda _: f"answer {next(counter)}") as live:
        session = CassetteSession(path, RecordMode.ONCE)
        with tapped(session), httpx2.Client() as client:
            for _ in range(40):
                ask(client, live.url)
        session.close()
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session), httpx2.Client() as client, ThreadPoolExecutor(8) as pool:
        heard = list(pool.map(lambda _: ask(client, live.url), range(40)))
    assert sorted(heard) == sorted(f"answer {number}" for number in range(40))
    assert not session.unplayed()


def test_a_client_of_the_standard_library_is_recorded_and_played_too(tmp_path: Path) -> None:
    path = tmp_path / "urllib.yaml"

    def ask(url: str, question: str) -> str:
        body = json.dumps({"messages": [{"role": "user", "content": question}]}).encode()
        headers = {"content-type": "application/json", "x-api-key": KEY}
        with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/messages", body, headers)) as answer:
            return str(json.load(answer)["content"][0]["text"])

    with provider() as live:
        session = CassetteSession(path, RecordMode.ONCE)
        with tapped(session):
            assert ask(live.url, "capital?") == REPLY
        session.close()
    assert KEY not in path.read_text("utf-8")
    session = CassetteSession(path, RecordMode.NONE)
    with tapped(session):
        assert ask(live.url, "capital?") == REPLY
        with pytest.raises(UnrecordedRequest, match=r'now:      "other\?"'):
            ask(live.url, "other?")
    assert len(live.requests) == 1


def test_while_recording_a_provider_may_only_send_what_can_be_searched(tmp_path: Path) -> None:
    with provider() as live:
        session = CassetteSession(tmp_path / "it.yaml", RecordMode.ONCE)
        with tapped(session), httpx2.Client() as client:
            client.post(f"{live.url}/v1/messages", json={}, headers={"accept-encoding": "zstd, br"})
        session.close()
    assert live.encodings == ["gzip, deflate"]
    assert '"text": "Paris' in (tmp_path / "it.yaml").read_text("utf-8")
