"""Records this release's visible behaviour, so that a redesign can be compared with it.

`python -m tools.freeze traces` and `python -m tools.freeze surface` write the files in `tests/frozen`. Run them once,
before a redesign. During the redesign, list intended differences in `tests/frozen/changes` instead of rewriting.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from statek_sim.cli import main as command_line
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import builtin_suites, run_suite

ROOT: Final = Path(__file__).resolve().parent.parent
FROZEN: Final = ROOT / "tests" / "frozen"
COMMANDS: Final = (
    "run scenarios/claims --quiet",
    "run scenarios/missing.yaml",
    "run examples/support_desk --quiet",
    "validate scenarios",
    "validate README.md",
    "trace scenarios/claims/claim-a-work-item.yaml",
    "trace missing",
    "usage scenarios/usage",
    "gate",
    "gate missing.env",
    "explore missing.yaml",
    "jobs list missing.db",
    "cassette scan README.md",
    "cassette diff missing.yaml missing.yaml",
    "rescue missing.txt",
    "metrics missing.jsonl",
    "guards missing.jsonl",
    "serve missing.yaml",
    "evals run --help",
    "nonsense",
)
"""Command lines with valid and invalid input, run from the repository root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    exit_code: int | str
    stdout: str
    stderr: str


def traces() -> dict[str, str]:
    """Return the trace digest of every run in the built-in suites, by `id[profile]`."""
    results = run_suite(load_or_fail([builtin_suites()]))
    return {f"{result.scenario.id}[{result.profile}]": result.record.digest for result in results}


def surface() -> dict[str, Any]:
    """Return what commands print and write: exit codes with first lines, JSON Schemas, the starter folder."""
    with tempfile.TemporaryDirectory() as folder:
        said = _run(f"init {folder}/new")
        starter = {
            str(path.relative_to(f"{folder}/new")): _digest(path.read_text(encoding="utf-8"))
            for path in sorted(Path(folder, "new").rglob("*"))
            if path.is_file()
        }
    schemas = {
        f"schema {option}".strip(): _digest(_run(f"list schema {option}").stdout)
        for option in ("", "--policy", "--baseline", "--evals")
    }
    commands = {command: _first_line(_run(command)) for command in COMMANDS}
    return {"commands": commands, "schemas": schemas, "starter": starter, "init": said.exit_code}


def _run(command: str) -> _Answer:
    """Run a command line in this process, from the repository root."""
    out, err = io.StringIO(), io.StringIO()
    environment = dict(os.environ)
    os.environ.clear()
    os.environ.update({"COLUMNS": "120", "NO_COLOR": "1", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    try:
        with chdir(ROOT), redirect_stdout(out), redirect_stderr(err):
            command_line(command.split())
    except SystemExit as done:
        return _Answer(exit_code=done.code or 0, stdout=out.getvalue(), stderr=err.getvalue())
    finally:
        os.environ.clear()
        os.environ.update(environment)


def _first_line(answer: _Answer) -> str:
    lines = (answer.stdout + answer.stderr).strip().splitlines()
    return f"exit {answer.exit_code}: {lines[0].strip() if lines else ''}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(name: str, found: Mapping[str, Any]) -> None:
    """Write a frozen file, sorted, so that each difference is one line."""
    text = json.dumps(found, indent=0, sort_keys=True, ensure_ascii=False) + "\n"
    (FROZEN / f"{name}.json").write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Write the requested file; return 2 for an unknown name."""
    match arguments:
        case ["traces"]:
            write("traces", traces())
        case ["surface"]:
            write("surface", surface())
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
