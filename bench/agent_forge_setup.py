"""The environment for measuring and checking Forge, with Python 3.12 and this project installed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.server_setup import TOOLS
from bench.setup import ensure
from bench.sides import ROOT, BenchError
from tools.interpreters import NEWER, interpreter

FORGE: Final = "0.10.0"
"""The forge-guardrails release to measure."""


def forge_python() -> Path:
    """Return an interpreter with Forge and this project; raises `BenchError` without Python 3.12 or newer."""
    base = next(filter(None, map(interpreter, NEWER)), None)
    if base is None:
        raise BenchError("Forge needs Python 3.12 or newer, but none is installed")
    requirements = [f"forge-guardrails=={FORGE}", "-e", str(ROOT)]
    return ensure(TOOLS / "forge", "forge-guardrails", FORGE, requirements, base=base)
