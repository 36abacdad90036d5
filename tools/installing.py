"""Installs packages into an environment: `python -m tools.installing PYTHON ARGUMENT...`, with pip's arguments.

uv installs ten times as fast as pip. It is installed from PyPI into the environment of `sys.executable` and used if pip
gets its packages from PyPI. If uv fails, pip runs instead and reports the problem.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check")
OTHER_INDEX: Final = (".index-url=", ".no-index=")
"""pip settings that select another index than PyPI, or none: uv ignores them and would use PyPI."""


def install(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Install into the environment of `python`, which does not need pip; return the last command's result."""
    uv = uv_program()
    if uv is not None:
        done = _run(uv, "pip", "install", "--quiet", "--python", str(python), *arguments)
        if done.returncode == 0:
            return done
    return _run(*PIP, "--python", str(python), "install", "--quiet", *arguments)


def uv_program() -> str | None:
    """Return this environment's uv, installing it if missing; None if pip uses another index or uv is unavailable."""
    settings = _run(*PIP, "config", "list").stdout
    if any(name in settings for name in OTHER_INDEX):
        return None
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists() and _in_an_environment():
        _run(*PIP, "install", "--quiet", "uv")
    return str(uv) if uv.exists() else None


def _in_an_environment() -> bool:
    return sys.prefix != sys.base_prefix


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main(arguments: list[str]) -> int:
    """Install; return 0, or the failed installer's exit status after printing its errors."""
    done = install(Path(arguments[0]).absolute(), *arguments[1:])
    if done.returncode:
        print(done.stderr, end="", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
