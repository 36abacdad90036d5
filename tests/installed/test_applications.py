"""The facts that hold the reference runtime are still what the real STATEK 1.4.2 does."""

from __future__ import annotations

import subprocess

import pytest

from tests.applications.record import RECORDED, ROOT, command

PYTHON = ROOT / ".venv-statek-1.4.2" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="no real STATEK 1.4.2 here; `make test` installs it"),
]


def test_the_small_applications_find_out_what_was_recorded() -> None:
    done = subprocess.run(
        command(str(PYTHON), f"--held-facts={RECORDED}"),
        cwd=ROOT,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
