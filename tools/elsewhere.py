"""Runs the built-in suites with other interpreters and older packages: traces must be identical, byte for byte.

`python -m tools.elsewhere lowest` creates `.venv-lowest` with the oldest packages allowed by pyproject.toml, and
`python -m tools.elsewhere traces PYTHON` plays every suite with that interpreter and with this one. Exits 1 if the
environment cannot be created or traces differ.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tools.installing import install

ROOT: Final = Path(__file__).resolve().parent.parent
LOWEST: Final = ROOT / ".venv-lowest"
EXTRAS: Final = ("hypothesis", "live", "mcp", "mistral", "otel", "pii", "sql", "tokenizers")
"""Optional packages, also in their oldest releases."""
MOST_NAMED: Final = 20


def lowest(requirements: Iterable[str]) -> Iterator[str]:
    """Yield a pin for each requirement: its lowest release or a later patch of it."""
    for text in requirements:
        requirement = Requirement(text)
        floor = next((one.version for one in requirement.specifier if one.operator == ">="), None)
        if floor is None:
            raise ValueError(f"pyproject.toml: {text} names no lowest release")
        parts = Version(floor).release
        # Not every minor release begins with .0, so the first patch of one is whichever is there.
        requirement.specifier = SpecifierSet(f"=={floor}" if len(parts) > 2 else f"=={floor}.*")
        yield str(requirement)


def make_lowest() -> None:
    """Recreate the environment."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [text for name in EXTRAS for text in project["optional-dependencies"][name]]
    wanted = [*lowest(project["dependencies"]), *lowest(extras), "pytest-xdist"]
    venv.create(LOWEST, clear=True, symlinks=True)
    done = install(LOWEST / "bin" / "python", *wanted, "--editable", str(ROOT))
    if done.returncode:
        raise ValueError(f"{LOWEST.name} cannot be made:\n{done.stderr}")


def traces(python: str, folder: Path) -> Mapping[str, str]:
    """Return the digest of every scenario and profile played by `python`, by name."""
    file = folder / "report.json"
    command = [python, "-m", "statek_sim", "run", "--quiet", "--json", str(file)]
    subprocess.run(command, cwd=ROOT, check=True)
    return digests(json.loads(file.read_text(encoding="utf-8")))


def digests(report: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of every scenario and profile in a report, by name."""
    return {f"{entry['id']}[{entry['profile']}]": entry["digest"] for entry in report["scenarios"]}


def main(arguments: list[str]) -> int:
    """Run the requested command; return 0, 1 if it failed, or 2 for an unknown command."""
    try:
        match arguments:
            case ["lowest"]:
                make_lowest()
                return 0
            case ["traces", python]:
                with tempfile.TemporaryDirectory() as folder:
                    here, there = (traces(one, Path(folder)) for one in (sys.executable, python))
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (subprocess.CalledProcessError, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    differ = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
    for name in differ[:MOST_NAMED]:
        print(f"another trace: {name}")
    print(f"{len(here) - len(differ):,} of {len(here):,} traces are the same with {python}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
