"""LangChain and litellm against the fake server, in an environment of their own: they want an older SDK of OpenAI's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from statek_sim.providers.script import text, tool_call
from statek_sim.server.embedding import vector_of
from statek_sim.server.llm_server import LLMServer
from tools.installing import install

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-frameworks"
# litellm imports mcp and does not say that it needs it.
WANTED = ("langchain-openai==1.7.3", "litellm==1.106.2", "mcp==2.3.0")
UNREACHABLE = ("No matching distribution", "Could not find a version", "ConnectionError", "Read timed out")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python() -> Path:
    """Make the environment, once for all runs, and return its interpreter; a skip where no registry answers."""
    interpreter, mark = FOLDER / "bin" / "python", FOLDER / ".ready"
    wanted = f"{' '.join(WANTED)} on Python {sys.version_info.major}.{sys.version_info.minor}"
    if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
        return interpreter
    shutil.rmtree(FOLDER, ignore_errors=True)
    venv.create(FOLDER, symlinks=True)
    done = install(interpreter, *WANTED)
    if done.returncode and any(said in done.stderr for said in UNREACHABLE):
        pytest.skip(f"LangChain and litellm cannot be installed: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    mark.write_text(wanted, encoding="utf-8")
    return interpreter


def driven(python: Path, name: str, server: LLMServer) -> Any:
    """Let a framework ask the server, and return what it made of the answers."""
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "OPENAI", "LANG"))
    }
    done = subprocess.run(
        [python, ROOT / "tests" / "server" / "drive_frameworks.py", name, server.url],
        env=clean | {"NO_PROXY": "*", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def look(server: LLMServer) -> None:
    server.script(
        [
            tool_call("look", where="here").on("Look.").forever(),
            text("Nothing.").on(tool_result="empty").forever(),
            text("A cat.").on("What is this?").forever(),
        ]
    )


LOOKED = ["look", {"where": "here"}, "Nothing.", True, "A cat."]


def test_langchain_calls_a_tool_sees_an_image_and_embeds(python: Path, statek_llm_server: LLMServer) -> None:
    look(statek_llm_server)
    told = driven(python, "langchain", statek_llm_server)
    assert (told["chat"], told["responses"]) == (LOOKED, LOOKED)
    assert told["chat tokens"] == told["responses tokens"] == [50, 50]
    wanted = [vector_of(said, "text-embedding-3-small", 8) for said in ("a cat", "a cat", "a dog")]
    assert told["embedded"] == [pytest.approx(vector, abs=1e-6) for vector in wanted]


def test_litellm_asks_in_the_format_of_each_provider(python: Path, statek_llm_server: LLMServer) -> None:
    look(statek_llm_server)
    told = driven(python, "litellm", statek_llm_server)
    for model in ("openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"):
        assert told[model] == LOOKED
    assert (told["responses"], told["responses stream"]) == ("look", "response.completed")
    assert told["embedded"] == [pytest.approx(vector_of("a cat", "m", 8), abs=1e-6)] * 2
