"""The example applications of engine two pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_code_review_passes() -> None:
    command = (sys.executable, "-m", "pytest", "examples/code_review", "-p", "no:cacheprovider")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert "4 passed" in done.stdout, done.stdout + done.stderr


def test_the_release_assistant_passes() -> None:
    command = (sys.executable, "-m", "pytest", "examples/release_assistant", "-p", "no:cacheprovider")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert "9 passed" in done.stdout, done.stdout + done.stderr
