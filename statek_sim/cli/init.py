"""`statek-sim init`: write a starter project."""

from __future__ import annotations

import json
import shlex
from importlib import metadata, resources
from pathlib import Path
from typing import Annotated, Final

import typer

from statek_sim.cli.app import app
from statek_sim.cli.options import argument
from statek_sim.errors import BadInput

FILES: Final = {
    "scenarios/orders.yaml": "orders.yaml",
    "tests/test_claims.py": "test_claims.py.txt",
    "presets/orders.env": "orders.env",
    "policy.toml": "policy.toml",
    "pytest.ini": "pytest.ini",
    ".github/workflows/statek.yml": "statek.yml",
}
"""Maps the project's files to their sources in this package."""

_REPLACED: Final = {"pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}
"""Files whose pytest section is ignored if there is a `pytest.ini`, with the section's header."""

_PACKAGE: Final = "pytest-statek"
"""The requirement that the workflow in this package installs."""

_NEXT: Final = """\
try:
  pytest
  statek-sim run scenarios
  statek-sim gate presets/orders.env scenarios --policy policy.toml"""


@app.command()
def init(
    folder: Annotated[
        Path,
        argument("FOLDER", "The project folder. Default: the current folder."),
    ] = Path(),
) -> None:
    """Write a starter project whose tests all pass.

    The project has scenarios, a test, a preset, a policy and a CI workflow. `pytest` runs the test, the scenarios and
    the gate. Existing files are kept.

    Example: statek-sim init mine
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: expected a folder, found a file")
    for name, source in FILES.items():
        target = folder / name
        text = (resources.files("statek_sim.cli") / "starter" / source).read_text("utf-8")
        if source.endswith(".yml"):
            text = text.replace(f"pip install {_PACKAGE}\n", f"pip install {shlex.quote(_requirement())}\n")
        written = _written(target, text)
        typer.echo(f"{'wrote' if written else 'kept '} {target}")
        if written and name == "pytest.ini":
            _note_replaced(folder)
    if folder != Path():
        typer.echo(f"cd {folder}")
    typer.echo(_NEXT)


def _requirement() -> str:
    """Return what CI must install: the git repository and commit that this package was installed from, if any."""
    try:
        origin = json.loads(metadata.distribution(_PACKAGE).read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        return _PACKAGE
    if "vcs_info" not in origin:
        return _PACKAGE
    vcs = origin["vcs_info"]
    return f"{_PACKAGE} @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"


def _note_replaced(folder: Path) -> None:
    for name, section in _REPLACED.items():
        path = folder / name
        if path.is_file() and section in path.read_text("utf-8", "replace"):
            typer.echo(
                f"note: because of pytest.ini, pytest no longer reads {path}; move the pytest settings to pytest.ini"
            )


def _written(target: Path, text: str) -> bool:
    """Write a file unless it exists, and return whether it was written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        if not target.parent.is_dir():
            raise
        return False
    return True
