"""A fake server that was not written here, aimock from npm, records from ours and we record from it.

Both must agree about the wire: what aimock records of our answers it replays to the same client, and what our
cassettes record of aimock's answers our server replays.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statek_sim.backends.serving import load_playable
from statek_sim.cassettes.session import CassetteSession, RecordMode
from statek_sim.cassettes.tap import tapped
from statek_sim.providers.script import text, tool_call
from statek_sim.server.llm_server import LLMServer
from tests.server.asking import OPENAI_TOOLS

VERSION = "1.43.0"
NPM = shutil.which("npm")
NODE = shutil.which("node")
UNREACHABLE = ("failed, reason: ", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT", "code E403", "code E5")
"""What npm says when a registry does not answer, or not it: a package that is not there is another error."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NPM is None or NODE is None, reason="node and npm are not installed here"),
]
openai = pytest.importorskip("openai", reason="it comes with the dev extra")

HELLO: Any = [{"role": "user", "content": "Hello?"}]
LOOK: Any = [{"role": "user", "content": "Look."}]


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install aimock into a folder of its own and return its command line's script.

    Where npm's registry cannot be reached, which is not ours to mend, the tests are skipped and say so.
    """
    folder = tmp_path_factory.mktemp("npm")
    command = [
        str(NPM),
        "install",
        "--no-audit",
        "--no-fund",
        "--fetch-retries=0",
        "--fetch-timeout=20000",
        "--prefix",
        str(folder),
        f"@copilotkit/aimock@{VERSION}",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("npm did not answer within a minute: aimock is not here to test against")
    if any(unreachable in done.stderr for unreachable in UNREACHABLE):
        pytest.skip(f"npm's registry cannot be reached: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return folder / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"


@contextmanager
def running(script: Path, folder: Path, *options: str) -> Iterator[str]:
    """Run aimock on a free port, with fixtures in `folder`, and give its URL."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [str(NODE), str(script), "--port", str(port), "--fixtures", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait(port: int, process: subprocess.Popen[str]) -> None:
    for _ in range(200):
        assert process.poll() is None, process.stderr and process.stderr.read()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("aimock did not start within 10 seconds")


def ask(url: str, messages: Any, *, stream: bool) -> Any:
    """Return what a client of OpenAI's SDK reads: the content, and the calls as name and arguments."""
    asked: Any = {"model": "gpt-4o", "messages": messages, "tools": OPENAI_TOOLS}
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-none", max_retries=0) as client:
        if stream:
            with client.chat.completions.stream(**asked) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(**asked).choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
    return message.content or None, calls


@pytest.mark.parametrize("stream", [False, True])
def test_what_it_records_of_our_answers_it_replays(
    aimock: Path, statek_llm_server: LLMServer, tmp_path: Path, stream: bool
) -> None:
    statek_llm_server.script([text("Hello there.").on("Hello?"), tool_call("look", where="here").on("Look.")])
    recording = ("--record", "--provider-openai", statek_llm_server.url)
    with running(aimock, tmp_path, *recording) as url:
        first = [ask(url, HELLO, stream=stream), ask(url, LOOK, stream=stream)]
    assert first == [("Hello there.", []), (None, [("look", {"where": "here"})])]
    with running(aimock, tmp_path, "--strict") as url:
        assert [ask(url, HELLO, stream=stream), ask(url, LOOK, stream=stream)] == first
    assert len(statek_llm_server.requests) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_what_we_record_of_its_answers_our_server_replays(
    aimock: Path, tmp_path: Path, statek_llm_server: LLMServer, stream: bool
) -> None:
    fixtures = [
        {"match": {"userMessage": "Hello?"}, "response": {"content": "Hello there."}},
        {
            "match": {"userMessage": "Look."},
            "response": {"toolCalls": [{"name": "look", "arguments": '{"where": "here"}'}]},
        },
    ]
    (tmp_path / "fixtures.json").write_text(json.dumps({"fixtures": fixtures}), encoding="utf-8")
    cassette = tmp_path / "recorded" / "conversation.yaml"
    with running(aimock, tmp_path / "fixtures.json", "--latency", "5", "--chunk-size", "4") as url:
        session = CassetteSession(cassette, RecordMode.REWRITE)
        with tapped(session):
            first = [ask(url, HELLO, stream=stream), ask(url, LOOK, stream=stream)]
        session.close()
    assert first == [("Hello there.", []), (None, [("look", {"where": "here"})])]
    statek_llm_server.script(load_playable(cassette).script)
    assert [
        ask(statek_llm_server.url, HELLO, stream=stream),
        ask(statek_llm_server.url, LOOK, stream=stream),
    ] == first
    assert (statek_llm_server.requests[0].latency > 0.01) == stream
