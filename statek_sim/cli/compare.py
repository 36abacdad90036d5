"""`statek-sim compare`: show the differences between two profiles, releases or installed packages."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_outputs, loaded, say
from statek_sim.cli.options import argument, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.compare.changes import Side
    from statek_sim.scenario.schema import Scenario

REFERENCE: Final = "reference"
"""The name of the reference runtime, which runs under the other side's profile."""

_SIDE: Final = (
    "a profile like 1.4, a release like 1.2.7, the path to a Python interpreter that has statek installed, or "
    "`reference`"
)

BeforeArgument = Annotated[str, argument("A", f"One side: {_SIDE}.")]
AfterArgument = Annotated[str, argument("B", "The other side, in any form accepted for A.")]
PresetOption = Annotated[
    str,
    option("NAME|FILE", "Use this preset's limits: default, local, interactive, batch, or a .env file."),
]
PythonOption = Annotated[
    list[str] | None,
    option(
        "PATH",
        "Also compare the package installed for this interpreter with the profile for its version; can be repeated. "
        "Unless one side is `reference`, A or B must be the package's release.",
    ),
]


@app.command()
def compare(
    before: BeforeArgument,
    after: AfterArgument,
    paths: options.Paths = None,
    preset: PresetOption = "default",
    python: PythonOption = None,
    json_file: options.JsonFileOption = None,
    markdown_file: options.MarkdownFileOption = None,
) -> None:
    """Compare two profiles, releases or installed packages.

    For two profiles or releases, every scenario runs under both, and each difference is shown with the rules that cause
    it. For an interpreter, its statek package runs the scenarios, and the results are compared with those of the
    reference runtime under the package's profile. Exits 1 if a package differs from its profile.

    Example: statek-sim compare 1.2.7 1.4.2
    """
    from statek_sim.compare.matrix import run_matrix
    from statek_sim.compare.upgrade import comparison_json, upgrade_between
    from statek_sim.harness.preset import located_preset
    from statek_sim.reporting.artifact import json_text, write_artifact
    from statek_sim.reporting.comparison import (
        markdown_lines,
        matrix_lines,
        table_lines,
        text_lines,
        upgrade_blocks,
    )

    check_outputs({"--json": json_file, "--markdown": markdown_file})
    located = located_preset(preset)
    pythons, sides = _sides(before, after, python or ())
    chosen = _comparable(loaded(paths))
    packages = run_matrix(pythons, chosen) if pythons else ()
    upgrade = None if sides is None else upgrade_between(*sides, chosen, located)
    package_lines = [*table_lines(packages), *matrix_lines(packages)] if packages else []
    if upgrade is not None:
        say(text_lines(upgrade_blocks(upgrade, packages, full=False)))
        say([""] if packages else [])
    say(package_lines)
    if json_file is not None:
        write_artifact(json_file, json_text(comparison_json(upgrade, packages)))
    if markdown_file is not None:
        lines = [] if upgrade is None else [*markdown_lines(upgrade_blocks(upgrade, packages, full=True))]
        if packages:
            lines += ["## The real packages", "", "```text", *package_lines, "```", ""]
        write_artifact(markdown_file, "\n".join(lines))
    if any(matrix.failed for matrix in packages):
        raise typer.Exit(1)


def _sides(before: str, after: str, more: Sequence[str]) -> tuple[list[str], tuple[Side, Side] | None]:
    """Return the interpreters to compare with their profiles, and the two sides, or None instead of the sides."""
    from statek_sim.compare.changes import check_interpreter, is_interpreter, side_named, side_of

    pythons = [word for word in (before, after) if is_interpreter(word)]
    if REFERENCE in (before, after):
        if len(pythons) != 1:
            raise BadInput(
                f"{before} {after}: expected `{REFERENCE}` and the path to a Python interpreter that has statek "
                "installed"
            )
        return [*pythons, *more], None
    first, second = [side_of(word) if word in pythons else side_named(word) for word in (before, after)]
    for python in more:
        check_interpreter(python, first, second)
    alike = bool(pythons) and first.profile == second.profile
    return [*pythons, *more], None if alike else (first, second)


def _comparable(scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    """Return the scenarios; raises BadInput if none uses the statek engine."""
    if not any(scenario.engine == "statek" for scenario in scenarios):
        raise BadInput(
            "no scenario to compare: all of these scenarios use the agent engine, which does not depend on STATEK's "
            "release; pass scenarios that use the statek engine, or no path to use the built-in suites"
        )
    return scenarios
