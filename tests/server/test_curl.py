"""curl against the fake server."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from statek_sim.providers.script import text
from statek_sim.server.llm_server import LLMServer
from tests.server.asking import openai

CURL = shutil.which("curl")
pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not installed here")


def curl(*arguments: str) -> str:
    done = subprocess.run(
        [str(CURL), "-sS", "--max-time", "10", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("version", ["--http1.0", "--http1.1"])
def test_curl_asks_and_streams(statek_llm_server: LLMServer, version: str) -> None:
    statek_llm_server.script([text("Hello."), text("Hello there.")])
    url = f"{statek_llm_server.openai_url}/chat/completions"
    answer = curl(version, url, "-d", json.dumps(openai()))
    assert json.loads(answer)["choices"][0]["message"]["content"] == "Hello."
    stream = curl(version, "-N", url, "-d", json.dumps(openai(stream=True)))
    assert stream.endswith("data: [DONE]\n\n")


def test_curl_sends_a_large_body_after_asking_whether_it_may(statek_llm_server: LLMServer) -> None:
    statek_llm_server.script([text("Long.")])
    url = f"{statek_llm_server.openai_url}/chat/completions"
    body = json.dumps(openai("word " * 400_000))
    done = subprocess.run(
        [str(CURL), "-sS", "--max-time", "20", "-H", "Expect: 100-continue", url, "-d", "@-"],
        input=body,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["choices"][0]["message"]["content"] == "Long."
    assert len(statek_llm_server.requests[0].body) == len(body)
