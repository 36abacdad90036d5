"""Starts measured processes one at a time: ours in this interpreter, theirs in the peer's."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Final

from bench.workload import Measurement

ROOT: Final = Path(__file__).resolve().parent.parent
TIME_LIMIT: Final = 900
"""Seconds after which a measured process counts as hung."""

_SETTING_NAMES: Final = ("STATEK_", "FULL_AGENT_TRACE", "MAX_", "LOG_", "DEFAULT_", "PYTEST_", "PYTHON")
"""Prefixes of environment variables that would change either side's behaviour or cost."""


class BenchError(Exception):
    """A measured process failed, or the two sides did different work."""


@dataclass(frozen=True, slots=True)
class Side:
    """An interpreter and the module in it that runs workloads."""

    python: Path
    module: str

    def measure(self, *arguments: str | int) -> Measurement:
        """Run the module in a new process in an empty directory, and return its measurement."""
        command = [str(self.python), "-W", "ignore", "-m", self.module, *map(str, arguments)]
        with tempfile.TemporaryDirectory(prefix="bench-") as directory:
            finished = run_clean(command, Path(directory))
        if finished.returncode:
            raise BenchError(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")
        return Measurement.from_line(finished.stdout.strip().splitlines()[-1])


def ours() -> Side:
    """Return our side, in this interpreter."""
    return Side(Path(sys.executable), "bench.ours")


def theirs(python: Path) -> Side:
    """Return the peer's side."""
    return Side(python, "bench.peer")


def run_clean(command: Sequence[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run `command` in `directory` with this repository importable and without either side's environment settings."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(_SETTING_NAMES)}
    environment["PYTHONPATH"] = str(ROOT)
    environment["TMPDIR"] = str(directory)
    return subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )


def take_turns(commands: Mapping[str, Sequence[str]], folder: Path, *, first: int) -> dict[str, float]:
    """Run every command once, starting with number `first`; return each one's CPU seconds."""
    names = list(commands)
    start = first % len(names)
    return {name: processor(commands[name], folder) for name in names[start:] + names[:start]}


def processor(command: Sequence[str], folder: Path) -> float:
    """Return a run's CPU seconds, because wall time would mostly measure the machine's other work."""
    before = _seconds_of_children()
    finished = run_clean(command, folder)
    seconds = _seconds_of_children() - before
    if finished.returncode:
        raise BenchError(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")
    return seconds


def _seconds_of_children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
