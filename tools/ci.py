"""Runs every project check, up to the first failure.

`python -m tools.ci` runs `make test`: this Python, without a STATEK release. `--reduced` runs what CI adds for every
change: the newest STATEK release, a fresh clone, the oldest packages, slow tests. `--thorough` runs that with every
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
"""Random examples compared per STATEK release, always the same ones; `make conformance` uses more and new ones."""
SHARED: Final = ("--numprocesses", "2", "--dist", "loadfile")
"""Two test files at a time; tests in a file share what it builds."""
WITH_SHARES: Final = (
    "tests/property/test_nothing_secret_is_recorded.py",
    "tests/unit/test_cli_fuzz_newer.py",
    "tests/unit/test_sandbox_hostile.py",
)
"""Tests that try a fraction of their cases and do not use Hypothesis."""
OF_PATTERNS: Final = (
    "tests/rescue",
    "tests/cassettes",
    "tests/unit",
    "-k",
    "rescue or cassettes or markup or patterns",
)
"""Tests of code with long regular expressions, on which Python patch releases differ."""
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
"""The `unit` tests for the oldest allowed packages, by name prefix."""
SET_UP: Final = ("lint", "imports", "validate", "coverage", "browser", "postgres")
"""Parts for which a fresh clone must set up every tool, but that then take only seconds."""


@dataclass(frozen=True, slots=True)
class Part:
    """A check: commands that run in order, from the repository root or from `folder`."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    folder: Path = ROOT
    environment: Mapping[str, str] = field(default_factory=dict)


Stage = tuple[tuple[Part, ...], ...]
"""Lanes that run in parallel, each with parts in order. A stage starts when the previous one has ended."""


def for_people() -> Iterator[Stage]:
    """Yield the checks for `make test`: less than five minutes on two cores."""
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
    """Yield the checks that CI adds for every change; `clone` is a folder to clone this repository into."""
    release = Part("environments", (module("tools.environments", "--ci"),))
    oldest = Part("lowest-traces", (module("tools.elsewhere", "lowest"), traces(LOWEST)))
    yield tuple(cloned(clone)), (release, *peers(), oldest)
    yield alone(slow_tests())
    yield alone(Part("frameworks-of-ci", (module("tools.frameworks", "--ci"),)))
    yield alone(conformance("--ci"))


def thorough(clone: Path) -> Iterator[Stage]:
    """Yield every check not in `make test`; `clone` is a folder to clone this repository into."""
    yield tuple(cloned(clone)), (Part("environments", (module("tools.environments"),)), *peers())
    yield alone(slow_tests())
    yield alone(Part("frameworks", (module("tools.frameworks"),)))
    yield alone(Part("laws", tuple(everything()), environment={"STATEK_SIM_EXAMPLES": "all"}))
    yield alone(conformance())
    for part in elsewhere():
        yield alone(part)


def alone(part: Part) -> Stage:
    """Return a stage with one part, whose output is shown immediately."""
    return ((part,),)


def peers() -> Iterator[Part]:
    """Yield the setup of third-party programs, such as the browser, without which tests would be skipped."""
    yield Part("mcp-peers", (module("tools.mcp_peers"),))
    yield Part("savers", (module("tools.savers"),))


def slow_tests() -> Part:
    """Return the tests that `make test` leaves out."""
    return Part("slow-tests", (tool("pytest", *SHARED, "-m", "slow", "--durations", "5"),))


def conformance(*options: str) -> Part:
    """Return the part that compares every built-in scenario and random examples with STATEK releases."""
    random = ("--random", str(EXAMPLES), "--random-seed", "0")
    return Part("conformance", (module("tools.conformance", *options, *random),))


def everything() -> Iterator[tuple[str, ...]]:
    """Yield checks with every example, planted bug and hostile program; `make test` only runs a fraction of them."""
    yield tool("pytest", *SHARED, "-m", "hypothesis and not slow")
    yield tool("pytest", *SHARED, *WITH_SHARES)


def cloned(folder: Path) -> Iterator[Part]:
    """Yield the README's two commands in a clone of the committed files, without caches."""
    if not (ROOT / ".git").exists():
        return
    caches = str(folder.parent / "caches")
    bare = {"PIP_NO_CACHE_DIR": "1", "XDG_CACHE_HOME": caches, "npm_config_cache": caches, "MAKEFLAGS": ""}
    yield Part("clone", (("git", "clone", "--quiet", "--no-local", str(ROOT), str(folder)),))
    yield Part("clone-scenarios", (("make", "scenarios"),), folder, bare)
    yield Part("clone-test", (("make", "test", f"PARTS={' '.join(SET_UP)}"),), folder, bare)


def elsewhere() -> Iterator[Part]:
    """Yield the checks to repeat on other Pythons; a version that is not installed has no commands.

    The newest version runs the tests and scenarios, those between it and this one run the scenarios, and an older patch
    release of this one runs the scenarios and the pattern tests.
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
    """Yield the commands that repeat checks with the oldest packages allowed by pyproject.toml."""
    yield module("tools.elsewhere", "lowest")
    files = sorted(str(file) for name in OF_PACKAGES for file in ROOT.glob(f"tests/unit/test_{name}*.py"))
    # The oldest typer calls what the newest click has marked as old, and does not print what an argument is.
    left_out = ("-W", "ignore::DeprecationWarning", "-k", "not called_by_their_metavar")
    python = str(LOWEST / "bin" / "python")
    yield (python, "-m", "pytest", *SHARED, "-q", "-m", "not slow", *left_out, *files)
    yield traces(LOWEST)


def repeated(version: str, python: str, tests: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the commands that repeat checks on another Python, in a separate environment; `tests` is for pytest."""
    venv = f".venv-{version}"
    yield ("make", "--no-print-directory", f"VENV={venv}", f"PYTHON={python}", f"{venv}/.ready")
    if tests:
        yield (f"{venv}/bin/pytest", *SHARED, *tests)
    yield traces(Path(venv))


def traces(venv: Path) -> tuple[str, ...]:
    """Return the command that compares every trace with another environment's."""
    return module("tools.elsewhere", "traces", str(venv / "bin" / "python"))


def module(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command for a module in this repository."""
    return (sys.executable, "-m", name, *arguments)


def tool(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the command for a program in this environment."""
    return (str(BIN / name), *arguments)


@dataclass(slots=True)
class Runner:
    """Runs parts; after the first failure, no further part starts in either lane."""

    failed: bool = False
    _printing: threading.Lock = field(default_factory=threading.Lock)

    def run_stage(self, stage: Stage) -> bool:
        """Run a stage's lanes in parallel; return whether all passed."""
        lanes = [lane for lane in stage if lane]
        with ThreadPoolExecutor(max_workers=max(1, len(lanes))) as pool:
            list(pool.map(lambda lane: self._run_lane(lane, captured=len(lanes) > 1), lanes))
        return not self.failed

    def _run_lane(self, lane: Sequence[Part], *, captured: bool) -> None:
        for part in lane:
            if not self.failed and not self._run(part, captured=captured):
                self.failed = True

    def _run(self, part: Part, *, captured: bool) -> bool:
        """Run a check, show its output and duration in seconds, and return whether it passed.

        A captured part's output is printed as a whole when it ends.
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
    """Describe how a part ended."""
    if code:
        return f"FAILED with exit code {code} after {seconds:.1f} s"
    return f"passed in {seconds:.1f} s" if part.commands else "not here, skipped"


def main(arguments: list[str]) -> int:
    """Run the requested checks; return 0, 1 if a part failed, or 2 for an unknown name."""
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
    """Run stages up to the first failure; return 0, or 1 if a part failed."""
    started = time.monotonic()
    runner = Runner()
    if not all(runner.run_stage(stage) for stage in stages):
        return 1
    print(f"--- all passed in {time.monotonic() - started:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
