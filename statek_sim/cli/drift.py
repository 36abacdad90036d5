"""`statek-sim drift`: what an upgrade of STATEK changes."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from statek_sim.cli.app import AlsoPaths, Paths, app
from statek_sim.cli.inputs import check_outputs, loaded, say
from statek_sim.errors import BadInput

BeforeArgument = Annotated[
    str,
    typer.Argument(metavar="FROM", show_default=False, help="A release like 1.2.7, or a profile like docs."),
]
AfterArgument = Annotated[
    str, typer.Argument(metavar="TO", show_default=False, help="The same: the other side.")
]
PresetOption = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="The limits under which to say what stops a job: default, local, interactive, batch, or a .env "
        "file such as your own.",
    ),
]
PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        show_default=False,
        help="An interpreter that has one of the two releases installed: run the scenarios there too, and say "
        "where the package does not do what its profile says (repeatable).",
    ),
]
JsonFileOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON to this file.")
]
MarkdownFileOption = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write it as Markdown to this file.")
]


@app.command()
def drift(
    before: BeforeArgument,
    after: AfterArgument,
    paths: Paths = None,
    scenarios: AlsoPaths = None,
    preset: PresetOption = "default",
    python: PythonOption = None,
    json_file: JsonFileOption = None,
    markdown_file: MarkdownFileOption = None,
) -> None:
    """Report what changes between two releases or profiles.

    Exits 1 when a package that was given does not do what its profile says.
    """
    from statek_sim.drift.json import drift_json
    from statek_sim.drift.markdown import markdown_lines
    from statek_sim.drift.packages import check_packages
    from statek_sim.drift.report import drift_report
    from statek_sim.drift.side import side_named
    from statek_sim.drift.text import text_lines
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.suite.run import located_preset

    check_outputs({"--json": json_file, "--markdown": markdown_file})
    sides = side_named(before), side_named(after)
    located = located_preset(preset)
    chosen = loaded([*(paths or ()), *(scenarios or ())])
    if not any(scenario.engine == "statek" for scenario in chosen):
        raise BadInput(
            "no scenario to compare: those here are all of engine agent, which no release of STATEK changes, so they "
            "are left out; name scenarios of engine statek, or none for the built-in suites"
        )
    packages = check_packages(python or [], chosen, *sides)
    report = drift_report(*sides, chosen, located, packages)
    say(text_lines(report))
    if json_file is not None:
        write_artifact(json_file, json.dumps(drift_json(report), indent=2) + "\n")
    if markdown_file is not None:
        write_artifact(markdown_file, "\n".join(markdown_lines(report)))
    if any(check.disagreeing for check in packages):
        raise typer.Exit(1)
