"""Creates environments with the real STATEK, one per listed release and Python: `python -m tools.environments [--ci]`.

With `--ci`, there is only one: the newest release on this Python. Environments are created in parallel, kept between
runs, and recreated when the list changes. Prints their interpreters, and exits 1 if an environment cannot be created.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statek_sim.semantics import NEWER, RELEASES, Release
from tools.installing import install
from tools.interpreters import interpreter, newer_python, this_python

ROOT: Final = Path(__file__).resolve().parent.parent
AT_ONCE: Final = 2
"""The number of environments created at a time."""


class CannotMake(Exception):
    """An environment cannot be created; the message contains its name and the output of pip or venv."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A release on a Python version."""

    release: str
    python: str
    folder: Path

    @property
    def interpreter(self) -> Path:
        """The Python where the release is installed."""
        return self.folder / "bin" / "python"

    @property
    def requirement(self) -> str:
        """The installed requirement."""
        return f"statek[dbzero]=={self.release}"

    @property
    def ready(self) -> bool:
        """Whether the environment exists and is up to date."""
        mark = self.folder / ".ready"
        return mark.is_file() and mark.read_text(encoding="utf-8") == self._mark

    @property
    def _mark(self) -> str:
        return f"{self.requirement} on Python {self.python}\n"

    def make(self) -> None:
        """Create it, replacing any existing environment; raises CannotMake."""
        python = sys.executable if self.python == this_python() else interpreter(self.python)
        if python is None:
            raise CannotMake(f"{self.folder.name}: Python {self.python} is not installed")
        shutil.rmtree(self.folder, ignore_errors=True)
        self._check(
            subprocess.run(
                [python, "-m", "venv", "--without-pip", self.folder],
                capture_output=True,
                text=True,
                check=False,
            )
        )
        self._check(install(self.interpreter, self.requirement))
        (self.folder / ".ready").write_text(self._mark, encoding="utf-8")

    def _check(self, done: subprocess.CompletedProcess[str]) -> None:
        if done.returncode:
            command = " ".join(map(str, done.args))
            raise CannotMake(f"{self.folder.name}: {command} failed:\n{done.stdout}{done.stderr}")


def environments(*, ci: bool = False) -> Iterator[Environment]:
    """Yield an environment per listed release and Python; for CI, only the newest release on this Python."""
    if ci:
        yield _environment(RELEASES[-1], this_python())
        return
    for release in RELEASES:
        for python in dict.fromkeys(_pythons(release)):
            yield _environment(release, python)


def on_this_python() -> list[Environment]:
    """Return this Python's ready environments, oldest release first; tests use whatever exists."""
    every = (_environment(release, this_python()) for release in RELEASES)
    return [environment for environment in every if environment.ready]


def _pythons(release: Release) -> Iterator[str]:
    """Yield the Python versions to run a release on. This one replaces an older one that is not installed."""
    for listed in release.pythons:
        if listed == NEWER:
            found = newer_python()
            if found is None:
                print(f"statek {release.version}: no newer Python is installed; left out", file=sys.stderr)
            else:
                yield found
        else:
            yield listed if listed == this_python() or interpreter(listed) else this_python()


def _environment(release: Release, python: str) -> Environment:
    # Those of this Python have the short name, which tests look for.
    name = f".venv-statek-{release.version}"
    return Environment(
        release.version, python, ROOT / (name if python == this_python() else f"{name}-python{python}")
    )


def ensure(wanted: Sequence[Environment]) -> None:
    """Create environments that are not ready, in parallel; raises CannotMake for the first failure."""
    missing = [environment for environment in wanted if not environment.ready]
    for environment in missing:
        print(f"setting up {environment.folder.name}", file=sys.stderr)
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        list(pool.map(Environment.make, missing))


def main(arguments: list[str]) -> int:
    """Create the environments and print their interpreters; return 0, or 1 if one cannot be created."""
    wanted = tuple(environments(ci="--ci" in arguments))
    try:
        ensure(wanted)
    except CannotMake as problem:
        print(problem, file=sys.stderr)
        return 1
    for environment in wanted:
        print(environment.interpreter)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
