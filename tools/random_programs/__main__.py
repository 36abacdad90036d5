"""Compares random programs with real STATEK versions: `python -m tools.random_programs --python PATH --random 2000`.

The reference runtime runs on this Python. `--python` is repeatable, `--random-seed` selects the examples, `--json FILE`
receives `random_examples` and `random_differ` per version. Exits 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.random_programs.compare import run_random
from tools.random_programs.report import random_lines


def main(arguments: Sequence[str]) -> int:
    """Compare the programs, print differences and write the numbers."""
    parser = argparse.ArgumentParser(prog="python -m tools.random_programs", allow_abbrev=False)
    parser.add_argument("--python", action="append", required=True, metavar="PATH")
    parser.add_argument("--random", type=int, required=True, metavar="COUNT")
    parser.add_argument("--random-seed", type=int, default=0, metavar="NUMBER")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    runs = run_random(options.python, options.random, options.random_seed)
    print(*random_lines(runs), sep="\n", flush=True)
    if options.json is not None:
        numbers = {
            run.version: {"random_examples": run.examples, "random_differ": len(run.differing)}
            for run in runs
        }
        options.json.write_text(json.dumps(numbers) + "\n", encoding="utf-8")
    return 1 if any(run.differing for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
