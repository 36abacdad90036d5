"""Every check of the project, one after the other, up to the first that fails.

`python -m tools.ci` runs those for people, as `make test`: on this Python, without a release of STATEK. `--thorough`
runs what CI runs after them: every release and Python, packaging, long explorations. `PART...` runs these parts.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.elsewhere import LOWEST
from tools.interpreters import NEWER, interpreter, older_patch, this_python

ROOT: Final = Path(__file__).resolve().parent.parent
BIN: Final = Path(sys.executable).parent
EXAMPLES: Final = 200
"""Random examples compared per release of STATEK, always the same; `make conformance` takes new ones, and more."""
SHARED: Final = ("--numprocesses", "2", "--dist", "loadfile")
"""Two test files at a time; those of a file share what it builds."""
WITH_SHARES: Final = (
    "tests/property/test_nothing_secret_is_recorded.py",
    "tests/unit/test_cli_fuzz_newer.py",
    "tests/unit/test_sandbox_hostile.py",
)
"""Tests that try a share of what they have, and are no laws of Hypothesis."""
OF_PATTERNS: Final = (
    "tests/rescue",
    "tests/cassettes",
    "tests/unit",
    "-k",
    "rescue or cassettes or markup or patterns",
)
"""Tests of what is read with long regular expressions, in which patch releases of Python differ."""
OF_PACKAGES: Final = (
    "sandbox",
    "page",
    "cassettes",
    "reporting",
    "cli",
    "rescue",
    "harness",
    "tools_ordered",
)
"""Tests of the folder `unit` for the oldest packages that are allowed: what their subjects begin with."""
SET_UP: Final = ("lint", "imports", "validate", "coverage", "browser", "postgres")
"""Parts for which a fresh clone has to set up every tool, and that take seconds then."""


@dataclass(frozen=True, slots=True)
class Part:
    """One check: commands that run in order, from the root of the repository or from `folder`."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    folder: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict)


def for_people() -> Iterator[Part]:
    """Yield the checks of `make test`: less than ten minutes on two cores."""
    yield Part("lint", (tool("ruff", "check", "."),))
    yield Part("format", (tool("ruff", "format", "--check", "."),))
    yield Part("types", (tool("mypy"),))
    yield Part("imports", (tool("lint-imports"),))
    yield Part("validate", (tool("statek-sim", "validate", "scenarios"),))
    yield Part("coverage", (tool("statek-sim", "list", "suites", "--coverage"),))
    # Before the tests: those of the page, and of containers, would be skipped without them.
    yield Part("browser", (module("tools.browser"),))
    yield Part("postgres", (module("tools.postgres"),))
    yield Part("containers", (module("tools.containers"),))
    yield Part("tests", (tool("pytest", *SHARED, "-m", "not slow", "--durations", "5"),))
    yield Part("scenarios", (tool("statek-sim", "run"),))


def thorough(clone: Path) -> Iterator[Part]:
    """Yield the checks that CI runs beside those; `clone` is a folder to clone this repository into."""
    if (ROOT / ".git").exists():
        yield from cloned(clone)
    yield Part("environments", (module("tools.environments"),))
    # As with the browser: the tests that need them would be skipped without.
    yield Part("mcp-peers", (module("tools.mcp_peers"),))
    yield Part("savers", (module("tools.savers"),))
    yield Part("slow-tests", (tool("pytest", *SHARED, "-m", "slow", "--durations", "5"),))
    yield Part("laws", tuple(everything()), environment={"STATEK_SIM_EXAMPLES": "all"})
    yield Part("conformance", (module("tools.conformance", "--random", str(EXAMPLES), "--random-seed", "0"),))
    yield from elsewhere()


def everything() -> Iterator[tuple[str, ...]]:
    """Yield what tries every example and plant and hostile program, of which `make test` tries a share."""
    yield tool("pytest", *SHARED, "-m", "hypothesis and not slow")
    yield tool("pytest", *SHARED, *WITH_SHARES)


def cloned(folder: Path) -> Iterator[Part]:
    """Yield the two commands of the README in a clone of what is committed, without anything that is cached."""
    caches = str(folder.parent / "caches")
    bare = {"PIP_NO_CACHE_DIR": "1", "XDG_CACHE_HOME": caches, "npm_config_cache": caches, "MAKEFLAGS": ""}
    yield Part("clone", (("git", "clone", "--quiet", "--no-local", str(ROOT), str(folder)),))
    yield Part("clone-scenarios", (("make", "scenarios"),), folder, bare)
    yield Part("clone-test", (("make", "test", f"PARTS={' '.join(SET_UP)}"),), folder, bare)


def elsewhere() -> Iterator[Part]:
    """Yield the checks that repeat on another Python; one that is not installed has no commands.

    The newest runs the tests and the scenarios, those between it and this one the scenarios, and an older patch release
    of this one the scenarios and the tests of patterns.
    """
    found = {version: interpreter(version) for version in NEWER}
    newest = next((version for version in reversed(NEWER) if found[version]), None)
    for version, python in found.items():
        name = f"python{version}"
        if python is None:
            yield Part(name, ())
        elif version != this_python():
            tests = ("-m", "not slow and not browser") if version == newest else ()
            yield Part(name, tuple(repeated(version, python, tests)))
    yield Part("lowest", tuple(lowest()))
    older = older_patch()
    yield Part("older-python", tuple(repeated(*older, (*OF_PATTERNS, "-m", "not slow"))) if older else ())


def lowest() -> Iterator[tuple[str, ...]]:
    """Yield the commands that repeat checks with the oldest packages that pyproject.toml allows."""
    python = str(LOWEST / "bin" / "python")
    yield module("tools.elsewhere", "lowest")
    files = sorted(str(file) for name in OF_PACKAGES for file in ROOT.glob(f"tests/unit/test_{name}*.py"))
    # The oldest typer calls what the newest click has marked as old, and does not print what an argument is.
    left_out = ("-W", "ignore::DeprecationWarning", "-k", "not called_by_their_metavar")
    yield (python, "-m", "pytest", *SHARED, "-q", "-m", "not slow", *left_out, *files)
    yield module("tools.elsewhere", "traces", python)


def repeated(version: str, python: str, tests: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the commands that repeat checks on another Python, in an environment of its own; `tests`: for pytest."""
    venv = f".venv-{version}"
    yield ("make", "--no-print-directory", f"VENV={venv}", f"PYTHON={python}", f"{venv}/.ready")
    if tests:
        yield (f"{venv}/bin/pytest", *SHARED, *tests)
    yield module("tools.elsewhere", "traces", f"{venv}/bin/python")


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
        environment = {**os.environ, **part.environment}
        code = subprocess.run(command, cwd=part.folder, env=environment, check=False).returncode
        if code != 0:
            say(f"{part.name}: FAILED with exit code {code} after {time.monotonic() - started:.1f} s")
            return False
    seconds = time.monotonic() - started
    say(f"{part.name}: passed in {seconds:.1f} s\n" if part.commands else f"{part.name}: not here, skipped\n")
    return True


def say(text: str) -> None:
    """Print a line that stands out, before what the next command prints."""
    print(f"--- {text}", flush=True)


def main(arguments: list[str]) -> int:
    """Run what was asked for; return 0, 1 when one failed, or 2 for a name that is none."""
    with tempfile.TemporaryDirectory(prefix="statek-clone-") as folder:
        people, long = list(for_people()), list(thorough(Path(folder) / "clone"))
        parts = {part.name: part for part in (*people, *long)}
        unknown = [name for name in arguments if name not in parts]
        if arguments == ["--thorough"]:
            chosen = long
        elif unknown:
            print(f"no such part: {', '.join(unknown)}; expected {', '.join(parts)}", file=sys.stderr)
            return 2
        else:
            chosen = [parts[name] for name in arguments] or people
        return run_all(chosen)


def run_all(parts: list[Part]) -> int:
    """Run parts up to the first that fails; return 0, or 1 when one failed."""
    started = time.monotonic()
    for part in parts:
        if not run(part):
            return 1
    say(f"all passed in {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
