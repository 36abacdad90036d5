"""What git leaves out: everything generated, and no report that is kept on purpose."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("git") is None, reason="git says what is ignored")
@pytest.mark.parametrize(
    ("path", "ignored"),
    [
        ("reports/report.json", True),
        ("reports/baseline-1.json", True),
        ("reports/sample/report.json", False),
        ("reports/baselines/1.4.json", False),
    ],
)
def test_generated_reports_are_ignored_and_kept_ones_are_not(
    tmp_path: Path, path: str, *, ignored: bool
) -> None:
    shutil.copy(ROOT / ".gitignore", tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    asked = subprocess.run(["git", "-C", str(tmp_path), "check-ignore", "--quiet", path], check=False)
    assert (asked.returncode == 0) is ignored
