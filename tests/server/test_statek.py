"""The real statek against the fake server, through `OPENAI_API_URL` and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from statek_sim.providers.script import code, fault
from statek_sim.server.llm_server import LLMServer

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-statek-1.4.2" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="no statek 1.4.2 here; `make conformance` installs it"),
]


def run_job(server: LLMServer, folder: Path) -> Any:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("STATEK_", "PYTHON"))}
    done = subprocess.run(
        [PYTHON, ROOT / "tests" / "server" / "drive_statek.py"],
        cwd=folder,
        env=clean
        | {
            "OPENAI_API_URL": f"{server.openai_url}/chat/completions",
            "OPENAI_API_KEY": "sk-planted",
            "NO_PROXY": "*",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_job_of_the_real_statek_runs_on_the_script(statek_llm_server: LLMServer, tmp_path: Path) -> None:
    script = [code("print(start + 1)"), code("exit(str(start + 2))").when("41")]
    statek_llm_server.script(script, styles="MARKDOWN")
    facts = run_job(statek_llm_server, tmp_path)
    assert (facts["status"], facts["exit"], facts["error"]) == ("DONE", "42", None)
    first, second = statek_llm_server.requests
    assert isinstance(first.json, dict)
    assert first.json["model"] == "gpt-4o"
    assert first.headers["authorization"] == "REDACTED"
    assert facts["output"] > 0
    assert len(second.body) > len(first.body)


def test_statek_tries_again_after_a_rate_limit(statek_llm_server: LLMServer, tmp_path: Path) -> None:
    # It waits its own 3 seconds, whatever Retry-After says (behaviour 8).
    statek_llm_server.script([fault(429, retry_after=0), code("exit('done')").fenced(fence=True)])
    assert run_job(statek_llm_server, tmp_path)["exit"] == "done"
    assert [entry.status for entry in statek_llm_server.requests] == [429, 200]
