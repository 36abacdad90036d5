"""Virtual environments for the peers: `python -m bench.setup` creates `bench/.peer` if needed."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.workload import PEER_VERSION

PEER: Final = Path(__file__).resolve().parent / ".peer"
REQUIREMENT: Final = f"statek[dbzero]=={PEER_VERSION}"


def installed_version(python: Path, distribution: str) -> str | None:
    """Return the version of a package installed for `python`, or None if the interpreter or package is missing."""
    if not python.exists():
        return None
    question = f"import importlib.metadata as m; print(m.version({distribution!r}))"
    answer = subprocess.run([python, "-c", question], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def ensure(
    folder: Path, distribution: str, version: str, requirements: Sequence[str], *, base: str | None = None
) -> Path:
    """Return an environment's interpreter, creating the environment if it is missing or has another version.

    `base` is the Python to create it with, or None for this one.
    """
    python = folder / "bin" / "python"
    if installed_version(python, distribution) != version:
        print(f"installing {', '.join(requirements)} into {folder}", file=sys.stderr)
        if base is None:
            venv.create(folder, with_pip=True, clear=True)
        else:
            subprocess.run([base, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True)
    return python


def ensure_peer() -> Path:
    """Return the interpreter with the peer."""
    return ensure(PEER, "statek", PEER_VERSION, [REQUIREMENT])


if __name__ == "__main__":
    print(ensure_peer())
