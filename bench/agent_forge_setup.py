"""The environment in which Forge is measured and checked: it wants Python 3.12, and ours is beside it there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.server_setup import TOOLS
from bench.setup import ensure
from bench.sides import ROOT, BenchError
from tools.interpreters import NEWER, interpreter

FORGE: Final = "0.10.0"
"""The release of forge-guardrails that is looked at."""


def forge_python() -> Path:
    """Return an interpreter that has Forge and this project; `BenchError` where no Python 3.12 or newer is there."""
    base = next(filter(None, map(interpreter, NEWER)), None)
    if base is None:
        raise BenchError("Forge wants Python 3.12 or newer, and none is installed here")
    requirements = [f"forge-guardrails=={FORGE}", "-e", str(ROOT)]
    return ensure(TOOLS / "forge", "forge-guardrails", FORGE, requirements, base=base)
