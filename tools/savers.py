"""Runs third-party checkpoint store tests on our stores and our checker on theirs: `python -m tools.savers`.

LangGraph's conformance tests, its SQLite saver and agent-memory-integrity are installed from PyPI into `.savers` and
kept between runs; they are not imported here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tools.installing import install
from tools.npm import Broken, NotHere, last_line

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = (
    "langgraph-checkpoint-conformance==0.0.2",
    "langgraph-checkpoint-sqlite==3.1.2",
    "agent-memory-integrity==0.6.3",
)
CACHE: Final = ROOT / ".savers"
READY: Final = (
    CACHE / f"conformance-0.0.2-sqlite-3.1.2-agmi-0.6.3-python{sys.version_info[0]}.{sys.version_info[1]}"
)


def ensure_savers() -> Path:
    """Return the folder with the packages, installing them if missing; raises NotHere."""
    if not READY.is_dir():
        CACHE.mkdir(exist_ok=True)
        print(f"setting up {READY.relative_to(ROOT)}", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as name:
            making = Path(name) / "made"
            done = install(Path(sys.executable), "--target", str(making), *PACKAGES)
            if done.returncode:
                raise NotHere(f"pip cannot install {', '.join(PACKAGES)}: {last_line(done.stderr)}")
            try:
                making.rename(READY)
            except OSError:
                if not READY.is_dir():
                    raise
    return READY


def report() -> dict[str, Any]:
    """Return the tests' findings; raises NotHere or Broken."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ensure_savers())))}
    command = (sys.executable, "-m", "tests.store.savers_report")
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Broken(f"{' '.join(command[1:])} failed: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def tables(findings: dict[str, Any]) -> str:
    """Return the report as Markdown tables."""
    name, conformance = findings["conformance"]
    suite, tamperings = findings["tamperings"]
    lines = [f"| {name} | passed | failed |", "|---|---|---|"]
    lines += [f"| {part} | {passed} | {failed} |" for part, (passed, failed) in conformance.items()]
    lines += ["", f"| {suite} | our store |", "|---|---|"]
    lines += [f"| {edit} | {verdict} |" for edit, verdict in tamperings.items()]
    lines += ["", "| store | what `check_checkpoint_store` finds | smallest example |", "|---|---|---|"]
    for store, found in findings["findings"].items():
        lines += [f"| {store} | {kind} | {_cell(example)} |" for kind, example in found.items()]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Print the tables; return 0 even if the packages are unavailable, after printing so."""
    try:
        print(tables(report()))
    except NotHere as why:
        print(
            f"NOT TESTED WITH OTHERS' STORES: {why}. The tests that need them will be skipped.",
            file=sys.stderr,
        )
    except Broken as why:
        print(why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
