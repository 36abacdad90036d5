"""Every check of the project, up to the first that fails.

`python -m tools.ci` runs `make test`: this Python, without a release of STATEK. `--reduced` runs what CI adds for every
change: the newest release of STATEK, a fresh clone, the oldest packages, slow tests. `--thorough` runs that with every
release and Python, and every random example. `PART...` runs only these parts.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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


Stage = tuple[tuple[Part, ...], ...]
"""Lanes that run side by side, each with parts in order. A stage begins when the one before has ended."""


def for_people() -> Iterator[Stage]:
    """Yield the checks of `make test`: less than five minutes on two cores."""
    quick = (
        Part("lint", (tool("ruff", "check", "."),)),
        Part("format", (tool("ruff", "format", "--check", "."),)),
        Part("imports", (tool("lint-imports"),)),
        Part("validate", (tool("statek-sim", "validate", "scenarios"),)),
        Part("coverage", (module("tools.statements"),)),
        Part("site", (module("tools.build_site"),)),
        # Before the tests: those of the page, and of containers, would be skipped without them.
        Part("browser", (module("tools.browser"),)),
        Part("postgres", (module("tools.postgres"),)),
        Part("containers", (module("tools.containers"),)),
    )
    yield (Part("types", (tool("mypy"),)),), quick
    # These use both cores.
    yield alone(Part("tests", (tool("pytest", *SHARED, "-m", "not slow", "--durations", "5"),)))
    yield alone(Part("scenarios", (tool("statek-sim", "run"),)))


def reduced(clone: Path) -> Iterator[Stage]:
    """Yield what CI runs beside those for every change; `clone` is a folder to clone this repository into."""
    release = Part("environments", (module("tools.environments", "--ci"),))
    oldest = Part("lowest-traces", (module("tools.elsewhere", "lowest"), traces(LOWEST)))
    yield tuple(cloned(clone)), (release, *peers(), oldest)
    yield alone(slow_tests())
    yield alone(Part("frameworks-of-ci", (module("tools.frameworks", "--ci"),)))
    yield alone(conformance("--ci"))


def thorough(clone: Path) -> Iterator[Stage]:
    """Yield every check beside those of `make test`; `clone` is a folder to clone this repository into."""
    yield tuple(cloned(clone)), (Part("environments", (module("tools.environments"),)), *peers())
    yield alone(slow_tests())
    yield alone(Part("frameworks", (module("tools.frameworks"),)))
    yield alone(Part("laws", tuple(everything()), environment={"STATEK_SIM_EXAMPLES": "all"}))
    yield alone(conformance())
    for part in elsewhere():
        yield alone(part)


def alone(part: Part) -> Stage:
    """Return the stage of one part, whose output is shown as it comes."""
    return ((part,),)


def peers() -> Iterator[Part]:
    """Yield what sets up programs of others: as with the browser, the tests that need them would be skipped without."""
    yield Part("mcp-peers", (module("tools.mcp_peers"),))
    yield Part("savers", (module("tools.savers"),))


def slow_tests() -> Part:
    """Return the tests that `make test` leaves out."""
    return Part("slow-tests", (tool("pytest", *SHARED, "-m", "slow", "--durations", "5"),))


def conformance(*options: str) -> Part:
    """Return the comparison of every built-in scenario and of random examples with releases of STATEK."""
    random = ("--random", str(EXAMPLES), "--random-seed", "0")
    return Part("conformance", (module("tools.conformance", *options, *random),))


def everything() -> Iterator[tuple[str, ...]]:
    """Yield what tries every example and plant and hostile program, of which `make test` tries a share."""
    yield tool("pytest", *SHARED, "-m", "hypothesis and not slow")
    yield tool("pytest", *SHARED, *WITH_SHARES)


def cloned(folder: Path) -> Iterator[Part]:
    """Yield the two commands of the README in a clone of what is committed, without anything that is cached."""
    if not (ROOT / ".git").exists():
        return
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
    yield module("tools.elsewhere", "lowest")
    files = sorted(str(file) for name in OF_PACKAGES for file in ROOT.glob(f"tests/unit/test_{name}*.py"))
    # The oldest typer calls what the newest click has marked as old, and does not print what an argument is.
    left_out = ("-W", "ignore::DeprecationWarning", "-k", "not called_by_their_metavar")
    python = str(LOWEST / "bin" / "python")
    yield (python, "-m", "pytest", *SHARED, "-q", "-m", "not slow", *left_out, *files)
    yield traces(LOWEST)


def repeated(version: str, python: str, tests: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the commands that repeat checks on another Python, in an environment of its own; `tests`: for pytest."""
    venv = f".venv-{version}"
    yield ("make", "--no-print-directory", f"VENV={venv}", f"PYTHON={python}", f"{venv}/.ready")
    if tests:
        yield (f"{venv}/bin/pytest", *SHARED, *tests)
    yield traces(Path(venv))


def traces(venv: Path) -> tuple[str, ...]:
    """Return the command that compares every trace with those of another environment."""
    return module("tools.elsewhere", "traces", str(venv / "bin" / "python"))


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command for a module of this repository."""
    return (sys.executable, "-m", name, *arguments)


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command for a program of this environment."""
    return (str(BIN / name), *arguments)


@dataclass(slots=True)
class Runner:
    """Runs parts; after the first failure no further part starts, in either lane."""

    failed: bool = False
    _printing: threading.Lock = field(default_factory=threading.Lock)

    def run_stage(self, stage: Stage) -> bool:
        """Run the lanes of a stage side by side; return whether all passed."""
        lanes = [lane for lane in stage if lane]
        with ThreadPoolExecutor(max_workers=max(1, len(lanes))) as pool:
            list(pool.map(lambda lane: self._run_lane(lane, captured=len(lanes) > 1), lanes))
        return not self.failed

    def _run_lane(self, lane: Sequence[Part], *, captured: bool) -> None:
        for part in lane:
            if not self.failed and not self._run(part, captured=captured):
                self.failed = True

    def _run(self, part: Part, *, captured: bool) -> bool:
        """Run a check, show what it printed and how many seconds it took, and return whether it passed.

        The output of a captured part is printed when it has ended, in one piece.
        """
        started = time.monotonic()
        shown: list[str] = []
        code = 0
        for command in part.commands:
            title = f"--- {part.name}: {shlex.join((Path(command[0]).name, *command[1:]))}\n"
            if captured:
                shown.append(title)
            else:
                print(title, end="", flush=True)
            done = subprocess.run(
                command,
                cwd=part.folder,
                env={**os.environ, **part.environment},
                check=False,
                stdout=subprocess.PIPE if captured else None,
                stderr=subprocess.STDOUT if captured else None,
                text=True,
                errors="replace",
            )
            shown.append(done.stdout or "")
            code = done.returncode
            if code:
                break
        shown.append(f"--- {part.name}: {verdict(part, code, time.monotonic() - started)}\n\n")
        with self._printing:
            print("".join(shown), end="", flush=True)
        return code == 0


def verdict(part: Part, code: int, seconds: float) -> str:
    """Return how a part ended, in words."""
    if code:
        return f"FAILED with exit code {code} after {seconds:.1f} s"
    return f"passed in {seconds:.1f} s" if part.commands else "not here, skipped"


def main(arguments: list[str]) -> int:
    """Run what was asked for; return 0, 1 when a part failed, or 2 for a name that does not exist."""
    with tempfile.TemporaryDirectory(prefix="statek-clone-") as folder:
        clone = Path(folder) / "clone"
        plans = {"": for_people(), "--reduced": reduced(clone), "--thorough": thorough(clone)}
        asked = " ".join(arguments)
        if asked in plans:
            return run_all(list(plans[asked]))
        stages = [stage for plan in plans.values() for stage in plan]
        parts = {part.name: part for stage in stages for lane in stage for part in lane}
        unknown = [name for name in arguments if name not in parts]
        if unknown:
            print(f"no such part: {', '.join(unknown)}; expected {', '.join(parts)}", file=sys.stderr)
            return 2
        return run_all([alone(parts[name]) for name in arguments])


def run_all(stages: Sequence[Stage]) -> int:
    """Run stages up to the first that fails; return 0, or 1 when a part failed."""
    started = time.monotonic()
    runner = Runner()
    if not all(runner.run_stage(stage) for stage in stages):
        return 1
    print(f"--- all passed in {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
