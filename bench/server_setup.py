"""Tools for the server benchmark: wrk, and aimock from npm, in `bench/.tools`.

Nothing is installed on the system: wrk comes from PATH or is unpacked from Debian's package.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.sides import BenchError

TOOLS: Final = Path(__file__).resolve().parent / ".tools"
AIMOCK_VERSION: Final = "1.43.0"
_DEBIAN: Final = ("wrk", "libluajit2-5.1-2", "libluajit2-5.1-common")


@dataclass(frozen=True, slots=True)
class Wrk:
    """A load generator: its command, and the environment it needs."""

    command: str
    environment: dict[str, str]


def ensure_wrk() -> Wrk:
    """Return wrk; raises `BenchError` if it is missing and cannot be downloaded."""
    found = shutil.which("wrk")
    if found:
        return Wrk(found, dict(os.environ))
    folder = TOOLS / "wrk"
    if not (folder / "usr" / "bin" / "wrk").exists():
        if not (shutil.which("apt-get") and shutil.which("dpkg")):
            raise BenchError("wrk is not on PATH and there is no apt-get to download it; install wrk")
        folder.mkdir(parents=True, exist_ok=True)
        _run(["apt-get", "download", *_DEBIAN], folder)
        for package in sorted(folder.glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(folder)], folder)
    libraries = sorted({str(path.parent) for path in folder.rglob("libluajit*.so*")})
    return Wrk(
        str(folder / "usr" / "bin" / "wrk"), {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries)}
    )


def ensure_aimock() -> list[str]:
    """Return aimock's command; raises `BenchError` if node or npm is missing."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not (node and npm):
        raise BenchError("the comparison with aimock needs node and npm")
    package = TOOLS / "npm" / "node_modules" / "@copilotkit" / "aimock"
    described = package / "package.json"
    if not described.exists() or json.loads(described.read_text("utf-8"))["version"] != AIMOCK_VERSION:
        place = TOOLS / "npm"
        place.mkdir(parents=True, exist_ok=True)
        wanted = f"@copilotkit/aimock@{AIMOCK_VERSION}"
        _run([npm, "install", "--no-audit", "--no-fund", "--prefix", str(place), wanted], place)
    return [node, str(package / "dist" / "cli.js")]


def _run(command: Sequence[str], folder: Path) -> None:
    print(f"running {' '.join(command)}", file=sys.stderr)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
