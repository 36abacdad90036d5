"""Writes the committed sample reports: `python -m tools.sample_report`, or `make report`.

`report.html` covers suites that together show everything a page can show, under one profile; it stays below 3 MB.
`report.md` covers all suites and profiles. `evals.html` is an experiment with a weak model.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from statek_sim.cli import main as statek_sim

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = ROOT / "reports" / "sample"

SUITES: Final = ("claims", "delegation", "suspension", "workloads")
"""The page's suites: claims and handlers, several jobs, waits, and the gate's workloads."""

GATED: Final = ("default", "local", "interactive", "batch")


def write(folder: Path) -> int:
    """Write the samples to `folder`; return the failed command's exit code, or 0."""
    suites = [f"scenarios/{suite}" for suite in SUITES]
    presets = [f"--gate={preset}" for preset in GATED]
    with tempfile.TemporaryDirectory() as everything:
        written = ("--policy=tools/sample_policy.toml", f"--html={folder / 'report.html'}")
        page = _run("run", *suites, "--quiet", "--profile=docs", *presets, *written)
        text = _run("run", "--quiet", "--report", everything)
        shutil.copy(Path(everything) / "report.md", folder / "report.md")
    evals = _run("evals", "run", "scenarios/evals/easy.yaml", "--seeds=8", f"--html={folder / 'evals.html'}")
    return page or text or evals


def _run(*arguments: str) -> int:
    try:
        statek_sim(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


def main() -> int:
    """Write the committed samples."""
    # Paths in reports begin where the command is run.
    with contextlib.chdir(ROOT):
        return write(FOLDER)


if __name__ == "__main__":
    sys.exit(main())
