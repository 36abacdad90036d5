"""Forge as a guest, in an environment of its own: it wants Python 3.12."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.agent_forge_setup import forge_python
from bench.sides import ROOT, BenchError
from tests.docs.page import DOCS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def forge() -> Path:
    try:
        return forge_python()
    except BenchError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def played(forge: Path) -> dict[str, Any]:
    command = [str(forge), "-W", "ignore", "-m", "tests.guests.drive_forge"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("case", "requests"),
    [("good", 2), ("text", 3), ("too early", 3), ("no such tool", 3), ("bad arguments", 3)],
)
def test_forge_mends_what_its_guardrails_are_for(played: dict[str, Any], case: str, requests: int) -> None:
    assert played[case] == {
        "said": "22 C.",
        "calls": ["get_weather", "answer"],
        "requests": requests,
        "at": 0.0,
    }


@pytest.mark.parametrize(
    ("case", "said", "at"),
    [
        ("rate limit", "BackendError: Backend returned 429", 0.0),
        ("server error", "BackendError: Backend returned 500", 0.0),
        ("timeout", "BackendError: Backend returned 408: Read timeout", 120.0),
        ("no json", "JSONDecodeError", 0.0),
        ("no choices", "BackendError: Backend returned 500: response has no choices", 0.0),
    ],
)
def test_forge_asks_nothing_again_that_the_provider_did_not_answer(
    played: dict[str, Any], case: str, said: str, at: float
) -> None:
    told = played[case]
    assert (told["said"].startswith(said), told["requests"], told["at"]) == (True, 1, at)


def test_forge_gives_up_on_a_model_that_does_not_mend(played: dict[str, Any]) -> None:
    assert played["text without end"]["said"].startswith("_ToolCallExhausted")
    assert played["early without end"]["said"].startswith("StepEnforcementError")


def test_the_pages_code_for_forge_runs(forge: Path, tmp_path: Path) -> None:
    page = (DOCS / "bring-your-own-harness.md").read_text("utf-8")
    block = re.search(r"^```python\n(from forge.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    file = tmp_path / "weather.py"
    file.write_text(block[1], encoding="utf-8")
    told = subprocess.run([str(forge), file], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")
