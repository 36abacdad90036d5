"""Runs random examples with many seeds on one state of the code.

`python -m tools.random_examples --seeds 3001:12 --examples 560` runs that many examples per seed on every release
listed for this Python, like `make conformance` but without the scenarios. Each seed's numbers are
printed when it finishes and stored in `random-examples.json` with the state of the code that the examples use; another
call on the same state continues where the first one ended. Exits 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from tools.environments import ROOT, CannotMake, Environment, ensure, environments
from tools.interpreters import this_python
from tools.random_programs.compare import RandomRun, run_random
from tools.random_programs.report import random_lines

NUMBERS: Final = ROOT / "random-examples.json"
Numbers = dict[str, Any]
"""`state` and `seeds` (`examples` and `differ` by seed and release)."""


def main(arguments: list[str]) -> int:
    """Run the remaining seeds; return 0, 1 if something differs, or 2 if the run was not possible."""
    options = _options(arguments)
    wanted = [environment for environment in environments() if environment.python == this_python()]
    known = [environment.release for environment in wanted]
    if unknown := [release for release in options.release or () if release not in known]:
        print(
            f"--release {unknown[0]}: expected a listed release of Python {this_python()}: "
            + (", ".join(known) or "none is listed for it"),
            file=sys.stderr,
        )
        return 2
    if options.release:
        wanted = [environment for environment in wanted if environment.release in options.release]
    try:
        ensure(wanted)
    except CannotMake as problem:
        print(problem, file=sys.stderr)
        return 2
    numbers = begun(options.numbers, state())
    for seed in options.seeds:
        _seed(numbers, seed, options.examples, wanted)
        options.numbers.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    print(*total(numbers), sep="\n", flush=True)
    return 1 if any(row["differ"] for seed in numbers["seeds"].values() for row in seed.values()) else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.random_examples", allow_abbrev=False)
    parser.add_argument(
        "--seeds",
        type=seeds_of,
        default="0:1",
        metavar="FIRST:COUNT",
        help="which seeds, one without a COUNT",
    )
    parser.add_argument("--examples", type=int, default=560, metavar="N", help="examples of each seed")
    parser.add_argument("--release", action="append", metavar="VERSION", help="only this release; repeatable")
    parser.add_argument(
        "--numbers", type=Path, default=NUMBERS, metavar="FILE", help="where the numbers are kept"
    )
    return parser.parse_args(arguments)


def seeds_of(text: str) -> range:
    """Return the seeds in `FIRST:COUNT`, or just `FIRST`."""
    first, _, count = text.partition(":")
    try:
        found = range(int(first), int(first) + int(count or 1))
    except ValueError:
        found = range(0)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r}: expected FIRST:COUNT, such as 3001:12")
    return found


PACKAGE: Final = "statek_sim"
GENERATOR: Final = "tools/random_programs"

APART: Final = (
    "agent",
    "analysis",
    "cli",
    "evals",
    "explore",
    "gate",
    "guests",
    "mcp",
    "reporting",
    "server",
    "shim",
    "strategies",
)
"""Package folders that examples do not use: the other engine's, and those that process finished runs."""


def state() -> str:
    """Return a name for the state of the package's and the generator's files in git, without those in APART.

    The name shows whether any of these files have uncommitted changes.
    """
    apart = tuple(f"{PACKAGE}/{folder}/" for folder in APART)
    tracked = _git("ls-tree", "-r", "HEAD", PACKAGE, GENERATOR)
    files = [line for line in tracked if not _path(line).startswith(apart)]
    changes = _git(
        "status", "--porcelain", "--", PACKAGE, GENERATOR, *(f":(exclude){folder}" for folder in apart)
    )
    name = sha256("\n".join(files).encode()).hexdigest()[:12]
    return f"{name}{' with changes' if changes else ''}"


def _path(line: str) -> str:
    return line.partition("\t")[2]


def _git(*words: str) -> list[str]:
    """Return git's output lines; raises CalledProcessError outside a checkout."""
    done = subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def begun(file: Path, now: str) -> Numbers:
    """Return the numbers in `file` for the state `now`, or new ones if the file is for another state."""
    found: Numbers = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return found if found.get("state") == now else {"state": now, "seeds": {}}


def _seed(numbers: Numbers, seed: int, examples: int, wanted: list[Environment]) -> None:
    """Run a seed on the releases it has not run on yet."""
    done: dict[str, Any] = numbers["seeds"].setdefault(str(seed), {})
    left = [
        environment
        for environment in wanted
        if done.get(environment.release, {}).get("examples", 0) < examples
    ]
    if not left:
        return
    runs = run_random([str(environment.interpreter) for environment in left], examples, seed)
    done.update({run.version: _numbers(run) for run in runs})
    print(f"--- seed {seed}", *random_lines(runs), sep="\n", flush=True)


def _numbers(run: RandomRun) -> Numbers:
    return {"examples": run.examples, "differ": len(run.differing)}


def total(numbers: Numbers) -> Iterator[str]:
    """Yield a line per release and a total."""
    seeds: Mapping[str, Mapping[str, Numbers]] = numbers["seeds"]
    releases = sorted({release for found in seeds.values() for release in found})
    for release in releases:
        yield _line(release, [found[release] for found in seeds.values() if release in found])
    everything = [numbers for found in seeds.values() for numbers in found.values()]
    yield f"{_line('all', everything)}, {len(seeds)} seeds, state {numbers['state']}"


def _line(name: str, found: list[Numbers]) -> str:
    examples, differing = (sum(numbers[key] for numbers in found) for key in ("examples", "differ"))
    return f"{name}: {examples} random examples, {differing} differ"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
