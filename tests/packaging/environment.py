"""A virtual environment to install things into."""

from __future__ import annotations

import os
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.installing import install

ROOT: Final = Path(__file__).resolve().parents[2]
OURS: Final = ("PYTHON", "PYTEST_", "STATEK_", "VIRTUAL_ENV")
"""Beginnings of the environment variables that commands do not see: those that could stand in for what is missing."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment in `folder`, used from an empty working folder and without the settings of this one."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Environment:
        """Make an environment with nothing but pip."""
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        (folder / "empty").mkdir()
        return cls(folder)

    def run(self, program: str, *arguments: str | Path) -> str:
        """Return what one of its programs prints; fail the test unless it exits with 0."""
        return output_of(self.folder / "venv" / "bin" / program, *arguments, cwd=self.folder / "empty")

    def install(self, *requirements: str | Path) -> None:
        """Install packages into it with its own pip, as users do."""
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)

    def add(self, *requirements: str | Path) -> None:
        """Install packages into it in the fastest way."""
        done = install(self.folder / "venv" / "bin" / "python", *map(str, requirements))
        assert done.returncode == 0, done.stderr


def output_of(*command: str | Path, cwd: Path) -> str:
    """Return what a command prints, errors last; fail the test unless it exits with 0."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
