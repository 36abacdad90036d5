"""Small applications, as strangers write them: on the reference runtime they find out what they do on STATEK 1.4.2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.applications.record import APPLICATIONS, RECORDED, ROOT


@pytest.mark.slow
@pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="documentation of builtins is that of Python 3.11"
)
def test_applications_find_out_what_they_do_on_the_real_package() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.applications.facts",
    ]
    options = ["--statek-backend=reference", f"--held-facts={RECORDED}", *map(str, APPLICATIONS)]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    assert len(APPLICATIONS) >= 12


def test_there_are_facts_for_every_application() -> None:
    recorded = RECORDED.read_text(encoding="utf-8")
    assert all(f'"{path.stem}::' in recorded for path in APPLICATIONS)
