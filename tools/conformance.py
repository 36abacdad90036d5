"""Runs the built-in scenarios on every listed STATEK release: `python -m tools.conformance [--ci] [ARGUMENT...]`.

Sets up missing environments and runs `statek-sim compare` once per Python, with the reference runtime on the same
Python as the package, because error texts differ between versions. Further arguments are passed to that command, except
`--random COUNT` and `--random-seed NUMBER`, which are passed to `tools.random_programs`. Writes `conformance.json`, and
reports if PyPI has an unlisted release. Exits 1 on any difference, and 2 if the run was not possible.
"""

from __future__ import annotations

import argparse
import json
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from statek_sim.compare.upgrade import SCHEMA
from statek_sim.semantics import RELEASES
from tools.environments import ROOT, CannotMake, Environment, ensure, environments
from tools.interpreters import interpreter, this_python

REPORT: Final = ROOT / "conformance.json"
FEWER: Final = 10
"""On other Pythons, there is one random example for this many on this Python."""
SEEDS: Final = 1_000_000
"""The number of different seeds for runs outside CI."""
NOTHING_DRAWN: Final = {"random_examples": 0, "random_differ": 0}
Numbers = dict[str, Any]
"""A release's numbers, as written by `statek-sim compare` and `tools.random_programs`."""


def main(arguments: list[str]) -> int:
    """Run everything; return 0, 1 if something differs, or 2 if the run was not possible."""
    options, further = words().parse_known_args(arguments)
    ci = bool(options.ci)
    passed_on = seeded(further, ci=ci)
    wanted = tuple(environments(ci=ci))
    try:
        ensure(wanted)
        pythons = dict.fromkeys(environment.python for environment in wanted)
        commands = {python: _statek_sim(python) for python in pythons}
    except CannotMake as problem:
        print(problem, file=sys.stderr)
        return 2
    with ThreadPoolExecutor() as pool:
        running = [
            pool.submit(
                _compare,
                command,
                [environment for environment in wanted if environment.python == python],
                passed_on,
            )
            for python, command in commands.items()
        ]
        results = [future.result() for future in running]
    REPORT.write_text(json.dumps(merged([found for _, found in results]), indent=2) + "\n", encoding="utf-8")
    if not ci:
        print(news(), flush=True)
    return max(code for code, _ in results)


def words() -> argparse.ArgumentParser:
    """Return the command-line parser; unknown arguments are passed to `statek-sim compare`."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.conformance",
        usage="%(prog)s [-h] [--ci] [ARGUMENT...]",
        description=__doc__,
        epilog="ARGUMENT: any of `statek-sim compare --help`, such as PATH, and --random N. With "
        "--random but no --random-seed, each run uses new examples and prints their seed.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--ci",
        action="store_true",
        help="newest release on this Python only, with the same random examples each time and without querying PyPI",
    )
    return parser


def _statek_sim(python: str) -> Path:
    """Return this project's command on a Python version, creating an environment if needed."""
    if python == this_python():
        return Path(sys.executable).parent / "statek-sim"
    venv = f".venv-{python}"
    make = ("make", "--no-print-directory", f"VENV={venv}", f"PYTHON={interpreter(python)}", f"{venv}/.ready")
    if subprocess.run(make, cwd=ROOT, check=False).returncode:
        raise CannotMake(f"{venv}: the project cannot be installed on Python {python}")
    return ROOT / venv / "bin" / "statek-sim"


def _compare(
    statek_sim: Path, wanted: Sequence[Environment], arguments: Sequence[str]
) -> tuple[int, dict[str, Numbers]]:
    """Return the exit status and the numbers per release on one Python; print the output as a whole."""
    python = wanted[0].python
    first, *others = [str(environment.interpreter) for environment in wanted]
    pythons = [first, *(part for other in others for part in ("--python", other))]
    given = arguments if python == this_python() else fewer(arguments)
    scenarios, random = parted(given)
    code, said, numbers = _said([str(statek_sim), "compare", "reference", *pythons, *scenarios])
    found: dict[str, Numbers] = numbers.get("versions", {})
    drawn: dict[str, Numbers] = {}
    if random:
        module = [str(statek_sim.parent / "python"), "-m", "tools.random_programs"]
        second, more, drawn = _said([*module, "--python", *pythons, *random])
        code, said = max(code, second), said + more
    print(f"--- Python {python}\n{said}", end="", flush=True)
    return code, {
        version: {"python": python, **row, **drawn.get(version, NOTHING_DRAWN)}
        for version, row in found.items()
    }


def _said(command: Sequence[str]) -> tuple[int, str, dict[str, Any]]:
    """Run a command with `--json`; return its exit status, its output and the JSON, {} if it wrote none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "numbers.json"
        done = subprocess.run(
            [*command, "--json", str(file)],
            cwd=ROOT,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        written = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return done.returncode, done.stdout, written


def parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into those for `statek-sim compare` and those for random examples."""
    given, random = list(arguments), []
    for option in ("--random", "--random-seed"):
        if option in given:
            place = given.index(option)
            random += given[place : place + 2]
            del given[place : place + 2]
    return given, random if "--random" in random and random[1] != "0" else []


def seeded(arguments: Sequence[str], *, ci: bool) -> list[str]:
    """Return the arguments with a seed for random examples: a new one each time, which is printed, or 0 in CI."""
    given = list(arguments)
    if "--random" not in given or "--random-seed" in given:
        return given
    seed = 0 if ci else secrets.randbelow(SEEDS)
    print(f"random examples with seed {seed}; to repeat: --random-seed {seed}", flush=True)
    return [*given, "--random-seed", str(seed)]


def fewer(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with fewer random examples, for Pythons where only error texts can differ."""
    given = list(arguments)
    if "--random" in given:
        place = given.index("--random") + 1
        given[place] = str(-(-int(given[place]) // FEWER))
    return given


def merged(runs: Sequence[dict[str, Numbers]]) -> dict[str, Any]:
    """Merge the reports: for each release, the numbers for its worst Python, and those for every Python."""
    versions: dict[str, list[Numbers]] = {}
    for run in runs:
        for version, numbers in run.items():
            versions.setdefault(version, []).append(numbers)
    return {
        "schema": SCHEMA,
        "versions": {
            version: {**found[_worst(found)], "pythons": {numbers["python"]: numbers for numbers in found}}
            for version, found in versions.items()
        },
    }


def _worst(found: Sequence[Numbers]) -> int:
    """Return the index of the numbers with the most differences; on a tie, the first."""
    differing = [int(numbers["differ"]) + int(numbers.get("random_differ", 0)) for numbers in found]
    return differing.index(max(differing))


def news() -> str:
    """Describe unlisted releases on PyPI; neither these nor a missing network is a failure."""
    listed = RELEASES[-1].version
    command = (sys.executable, "-m", "pip", "index", "versions", "statek", "--disable-pip-version-check")
    try:
        done = subprocess.run(
            (*command, "--timeout", "5", "--retries", "0"),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        return "PyPI was not asked for newer releases of STATEK: no answer"
    known = re.search(r"^Available versions: (.+)$", done.stdout, re.MULTILINE)
    if done.returncode or known is None:
        return "PyPI was not asked for newer releases of STATEK: no answer"
    return beyond(listed, [version.strip() for version in known.group(1).split(",")])


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def beyond(listed: str, available: Sequence[str]) -> str:
    """Return a sentence about final releases newer than `listed`."""
    final = [version for version in available if re.fullmatch(r"\d+(\.\d+)*", version)]
    newer = [version for version in final if _number(version) > _number(listed)]
    if not newer:
        return f"PyPI has no release of STATEK above {listed}, the newest that is listed"
    return (
        f"PyPI has releases of STATEK above {listed}, the newest that is listed in "
        f"statek_sim/semantics.py: {', '.join(newer)}. Try: statek-sim compare reference with one of them"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
