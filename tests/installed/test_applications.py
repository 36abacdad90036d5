"""The facts that hold the reference runtime are still what the real STATEK 1.4.2 does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.applications.compare import differences
from tests.applications.record import APPLICATIONS, RECORDED, ROOT, command

PYTHON = ROOT / ".venv-statek-1.4.2" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="no real STATEK 1.4.2 here; `make thorough` installs it"),
]


MOST_BY_CHANCE = 5
"""How many tests may end otherwise in a process that ran all of them, as long as they do not in one of their own."""


def test_the_small_applications_find_out_what_was_recorded(tmp_path: Path) -> None:
    # dbzero leaves some errors for Python to come upon (an integer beyond 64 bits), and once a process of all of these
    # came upon none. What differs is asked again in a process of its own, where a real difference stays one.
    failed = tmp_path / "failed"
    done = _applications(f"--write-failed={failed}")
    tests = failed.read_text(encoding="utf-8").splitlines()
    if 0 < len(tests) <= MOST_BY_CHANCE:
        done = _applications(applications=tests)
    assert done.returncode == 0, done.stdout[-6000:]


def _applications(
    *arguments: str, applications: Sequence[Path | str] = APPLICATIONS
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(str(PYTHON), f"--held-facts={RECORDED}", *arguments, applications=applications),
        cwd=ROOT,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_random_days_of_a_shop_are_the_same_on_both_sides() -> None:
    assert list(differences(str(PYTHON), first=405, count=20)) == []


LOSES = """
from statek.agents import SupervisedAgent
from statek.prompt_config import make_system_prompt

def test_a_total_is_kept(statek_app):
    clerk = SupervisedAgent(
        role="clerk",
        _system_prompt=make_system_prompt("You count."),
        _tools=[],
        _metadata={"MODEL": "openai/gpt-4o"},
    )
    statek_app.script(
        clerk=[
            "from collections import Counter\\nfirst = 1\\ntotal = Counter('aab')\\nlast = 2",
            "text = 'a\\\\0b'\\nbig = 2 ** 65\\nmore = 3",
            "exit(1)",
        ]
    )
    statek_app.create_job(clerk)
    statek_app.run()
"""
LOST = (
    "`total` was lost: Counter cannot be stored by dbzero; `last` was lost: STATEK writes it after `total`, which "
    "dbzero rejected, so it was never written; `text` was changed: dbzero truncates strings at the first NUL; `big` "
    "was changed: dbzero stores integers in 64 bits; a larger one is read back as -1; `more` was lost: STATEK writes "
    "it after `big`, which dbzero rejected, so it was never written. Store only values that dbzero keeps"
)


@pytest.mark.parametrize("backend", ["installed", "reference"])
def test_what_the_store_loses_fails_a_test_in_the_same_words(backend: str, tmp_path: Path) -> None:
    (tmp_path / "test_loses.py").write_text(LOSES)
    python = str(PYTHON) if backend == "installed" else sys.executable
    done = subprocess.run(
        command(python, f"--statek-backend={backend}", applications=[tmp_path / "test_loses.py"]),
        cwd=ROOT,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout[-6000:]
    assert LOST in done.stdout
