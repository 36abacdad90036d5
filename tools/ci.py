"""Every check of the project, one after the other, up to the first that fails: `python -m tools.ci [PART...]`."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.interpreters import NEWER, interpreter, this_python

ROOT: Final = Path(__file__).resolve().parent.parent
BIN: Final = Path(sys.executable).parent
EXAMPLES: Final = 200
"""Random examples compared per release of STATEK; `make conformance` compares ten times as many."""
SHARED: Final = ("--numprocesses", "2", "--dist", "loadfile")
"""Two test files at a time; those of a file share what it builds."""


@dataclass(frozen=True, slots=True)
class Part:
    """One check: commands that run in order, from the root of the repository."""

    name: str
    commands: tuple[tuple[str, ...], ...]


def here() -> Iterator[Part]:
    """Yield the checks that run on this Python."""
    yield Part("lint", (tool("ruff", "check", "."),))
    yield Part("format", (tool("ruff", "format", "--check", "."),))
    yield Part("types", (tool("mypy"),))
    yield Part("imports", (tool("lint-imports"),))
    yield Part("validate", (tool("statek-sim", "validate", "scenarios"),))
    yield Part("coverage", (tool("statek-sim", "suites", "--coverage"),))
    # Before the tests: some of them run on the real STATEK or in a browser, and would be skipped without them.
    yield Part("environments", (module("tools.environments", "--ci"),))
    yield Part("browser", (module("tools.browser"),))
    yield Part("tests", (tool("pytest", *SHARED, "--durations", "5"),))
    yield Part("scenarios", (tool("statek-sim", "run"),))
    yield Part("conformance", (module("tools.conformance", "--ci", "--random", str(EXAMPLES)),))


def elsewhere() -> Iterator[Part]:
    """Yield the checks that repeat on another Python; one that is not installed has no commands.

    The newest runs the tests and the scenarios, those between it and this one the scenarios.
    """
    found = {version: interpreter(version) for version in NEWER}
    newest = next((version for version in reversed(NEWER) if found[version]), None)
    for version, python in found.items():
        name = f"python{version}"
        if python is None:
            yield Part(name, ())
        elif version != this_python():
            yield Part(name, tuple(repeated(version, python, tests=version == newest)))


def repeated(version: str, python: str, *, tests: bool) -> Iterator[tuple[str, ...]]:
    """Yield the commands that repeat checks on another Python, in an environment of its own."""
    venv = f".venv-{version}"
    yield ("make", "--no-print-directory", f"VENV={venv}", f"PYTHON={python}", f"{venv}/.ready")
    if tests:
        yield (f"{venv}/bin/pytest", *SHARED, "-m", "not slow")
    yield (f"{venv}/bin/statek-sim", "run", "--quiet")


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command for a module of this repository."""
    return (sys.executable, "-m", name, *arguments)


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command for a program of this environment."""
    return (str(BIN / name), *arguments)


def run(part: Part) -> bool:
    """Run a check, show what it does and how long it took in seconds, and return whether it passed."""
    started = time.monotonic()
    for command in part.commands:
        say(f"{part.name}: {shlex.join((Path(command[0]).name, *command[1:]))}")
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code != 0:
            say(f"{part.name}: FAILED with exit code {code} after {time.monotonic() - started:.1f} s")
            return False
    seconds = time.monotonic() - started
    say(f"{part.name}: passed in {seconds:.1f} s\n" if part.commands else f"{part.name}: not here, skipped\n")
    return True


def say(text: str) -> None:
    """Print a line that stands out, before what the next command prints."""
    print(f"--- {text}", flush=True)


def main(names: list[str]) -> int:
    """Run the checks with these names, or all; return 0, 1 when one failed, or 2 for a name that is none."""
    parts = {part.name: part for part in (*here(), *elsewhere())}
    unknown = [name for name in names if name not in parts]
    if unknown:
        print(f"no such part: {', '.join(unknown)}; expected {', '.join(parts)}", file=sys.stderr)
        return 2
    started = time.monotonic()
    for name in names or parts:
        if not run(parts[name]):
            return 1
    say(f"all passed in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
