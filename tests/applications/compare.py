"""Compare random days of `random_shop` on the real package and on the reference runtime.

    python -m tests.applications.compare .venv-statek-1.4.2/bin/python FIRST:COUNT

Exits 1 when one differs. A day on which dbzero ends the process has to be stopped for that here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.applications.facts import compared
from tests.applications.record import HERE, ROOT, command

SHOP: Final = HERE / "random_shop.py"
KILLED: Final = "killed"
_AT_ONCE: Final = 20
_ENDS: Final = "dbzero ends STATEK's process here"

Facts = dict[str, Any]


def main() -> int:
    """Compare."""
    python, (first, count) = sys.argv[1], (int(part) for part in sys.argv[2].split(":"))
    differing = 0
    for seed, lines in differences(python, first, count):
        differing += 1
        print(f"seed {seed}:", *lines, sep="\n")
    print(f"{count} random days from seed {first}: {differing} differ")
    return 1 if differing else 0


def differences(python: str, first: int, count: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the seeds that differ, with what does."""
    for start in range(first, first + count, _AT_ONCE):
        many = min(_AT_ONCE, first + count - start)
        here, there = _facts(None, start, many), _facts(python, start, many)
        for seed in range(start, start + many):
            lines = list(_differing(there[seed], here[seed]))
            if lines:
                yield seed, lines


def _differing(there: Facts | str, here: Facts | str) -> Iterator[str]:
    if there == KILLED:
        if _ENDS not in json.dumps(here):
            yield f"  dbzero ends the process there, and here: {json.dumps(here)[:2000]}"
    elif isinstance(there, str) or isinstance(here, str):
        yield f"  here {here!r}, there {there!r}"
    elif _ENDS in json.dumps(here):
        yield "  the process goes on there, and is ended here"
    else:
        yield from compared(there, here)  # type: ignore[no-untyped-call]  # a plugin for applications


def _facts(python: str | None, first: int, count: int) -> dict[int, Facts | str]:
    """Return the facts of some days on the real package of `python`, on the reference runtime without one."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "facts.json"
        options = [f"--write-facts={file}", f"--seeds={first}:{count}", "--no-header", "--tb=no"]
        _run(python, options)
        if not file.exists():
            if count == 1:
                return {first: KILLED}
            return {seed: _facts(python, seed, 1)[seed] for seed in range(first, first + count)}
        found = json.loads(file.read_text(encoding="utf-8"))
    days = {seed: f"random_shop::test_a_random_day[{seed}]" for seed in range(first, first + count)}
    return {seed: found.get(day, "nothing was found out") for seed, day in days.items()}


def _run(python: str | None, options: list[str]) -> None:
    if python is not None:
        run = command(python, *options, applications=[SHOP])
    else:
        plugin = ["-p", "no:cacheprovider", "-p", "tests.applications.facts", "-W", "ignore"]
        run = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *plugin,
            "--statek-backend=reference",
            *options,
            str(SHOP),
        ]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if python is not None else dict(os.environ)
    subprocess.run(run, cwd=ROOT, env=environment, check=False, capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
