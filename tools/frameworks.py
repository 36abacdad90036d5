"""Runs the framework examples, each in its own environment: `python -m tools.frameworks [--ci | NAME...]`.

The environments are in `.venv-examples` and are kept until the requirements change. `--ci` runs two of them. `--evals`
prints the eval results of four frameworks' agents next to the built-in harness.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.installing import install
from tools.interpreters import this_python
from tools.npm import last_line

ROOT: Final = Path(__file__).resolve().parent.parent
EXAMPLES: Final = ROOT / "examples" / "frameworks"
CACHE: Final = ROOT / ".venv-examples"
OF_CI: Final = ("langgraph", "openai_agents")
OF_EVALS: Final = ("langgraph", "openai_agents", "pydantic_ai", "anthropic")
"""The frameworks that `statek_sim.evals` has an agent for."""
UNREACHABLE: Final = (
    "No matching distribution",
    "Could not find a version",
    "ConnectionError",
    "Read timed out",
)
OWN: Final = ("PYTHON", "OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "LANG", "CLAUDE", "STATEK")
"""Prefixes of environment variables that would change an example's behaviour."""


def names() -> list[str]:
    """Return the example names."""
    return sorted(file.parent.name for file in EXAMPLES.glob("*/requirements.txt"))


def environment(name: str) -> Path | None:
    """Return an example's interpreter, creating the environment if missing; None if no registry answers."""
    requirements = EXAMPLES / name / "requirements.txt"
    wanted = "\n".join(
        (this_python(), requirements.read_text("utf-8"), (ROOT / "pyproject.toml").read_text("utf-8"))
    )
    folder = CACHE / name
    python, mark = folder / "bin" / "python", folder / ".ready"
    if mark.is_file() and mark.read_text("utf-8") == wanted:
        return python
    print(f"setting up {folder.relative_to(ROOT)}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, symlinks=True)
    packages = [line for line in requirements.read_text("utf-8").splitlines() if line != "pytest-statek"]
    done = install(python, "--editable", str(ROOT), *packages)
    if done.returncode and any(said in done.stderr for said in UNREACHABLE):
        print(f"NOT TESTED WITH {name}: {last_line(done.stderr)}", file=sys.stderr)
        return None
    if done.returncode:
        raise SystemExit(f"{name}: its requirements cannot be installed:\n{done.stderr}")
    mark.write_text(wanted, encoding="utf-8")
    return python


def run(name: str, python: Path) -> bool:
    """Run an example's tests with a separate home directory; return whether they passed."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(OWN)}
    command = (str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider")
    with tempfile.TemporaryDirectory(prefix="statek-home-") as home:
        print(f"--- {name}", flush=True)
        return not subprocess.run(
            command, cwd=EXAMPLES / name, env=clean | {"HOME": home}, check=False
        ).returncode


def print_evals() -> None:
    """Print a table of agents with a simulated weak model and with one that never fails."""
    rows: dict[str, dict[str, str]] = {}
    for name in OF_EVALS:
        python = environment(name)
        if python is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "evals.json"
            words = ("evals", "run", "--agent", f"statek_sim.evals:{name}", "--seeds", "1")
            command = (str(python), "-m", "statek_sim", *words, "--json", str(file))
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            arms = json.loads(file.read_text("utf-8"))["arms"]
        for arm in arms:
            own, _, ideal = arm["name"].partition(", ")
            row = rows.setdefault(name if own == "agent" else own, {})
            low, high = arm["interval"]
            right = sum(tier["passed"] for tier in arm["tiers"].values())
            row[ideal] = f"{right} of {arm['runs']} ({low:.0%} - {high:.0%})"
    print("| agent | right, weak model | right, model that never fails |\n|---|---|---|")
    for name, row in sorted(rows.items(), key=lambda item: item[0] in ("bare", "full")):
        print(f"| {name} | {row['']} | {row['ideal']} |")


def main(arguments: Sequence[str]) -> int:
    """Run the requested examples, or all; return 0, 1 if one failed, or 2 for an unknown name."""
    if arguments == ["--evals"]:
        print_evals()
        return 0
    wanted = OF_CI if arguments == ["--ci"] else arguments or names()
    unknown = [name for name in wanted if name not in names()]
    if unknown:
        print(f"no such example: {', '.join(unknown)}; expected {', '.join(names())}", file=sys.stderr)
        return 2
    passed = True
    for name in wanted:
        python = environment(name)
        if python is not None:
            passed = run(name, python) and passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
