"""The peer's own virtual environment: `python -m bench.setup` makes `bench/.peer` when it is missing."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from bench.workload import PEER_VERSION

PEER: Final = Path(__file__).resolve().parent / ".peer"
PEER_PYTHON: Final = PEER / "bin" / "python"
REQUIREMENT: Final = f"statek[dbzero]=={PEER_VERSION}"


def installed_version(python: Path) -> str | None:
    """Return the version of statek that `python` sees, or None when there is no such interpreter or package."""
    if not python.exists():
        return None
    question = "import importlib.metadata as m; print(m.version('statek'))"
    answer = subprocess.run([python, "-c", question], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def ensure_peer() -> Path:
    """Return the peer's interpreter, creating its environment first when it is missing or another version."""
    if installed_version(PEER_PYTHON) != PEER_VERSION:
        print(f"installing {REQUIREMENT} into {PEER}", file=sys.stderr)
        venv.create(PEER, with_pip=True, clear=True)
        subprocess.run([PEER_PYTHON, "-m", "pip", "install", "--quiet", REQUIREMENT], check=True)
    return PEER_PYTHON


if __name__ == "__main__":
    print(ensure_peer())
