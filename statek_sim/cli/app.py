"""The command line's root, and the options that several commands share."""

from __future__ import annotations

import importlib.metadata
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from statek_sim.cli.commands import Commands

_DISTRIBUTION: Final = "pytest-statek"

app = typer.Typer(
    name="statek-sim",
    cls=Commands,
    help="Test LLM agents with a scripted LLM and a deterministic runtime.",
    epilog="`statek-sim help COMMAND` says what a command takes. Exit codes: 0 all is well, 1 a scenario failed or "
    "a statement is not proven, 2 bad input.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="P",
        help="Only this behaviour profile: docs, 1.2.5, 1.2 or 1.4; hardened for engine agent (repeatable).",
    ),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Run under this preset instead of the scenarios' own: default, local, interactive, batch, or a .env "
        "file. Limits that a scenario states itself stay. Expectations are written for the scenario's own preset, "
        "so scenarios may fail under another one.",
    ),
]
SelectOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="Only the scenario with this id, or else those whose suite/id[profile] has TEXT."
    ),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(metavar="T", help="Only scenarios with this tag (repeatable: any of them)."),
]
SeedOption = Annotated[
    int | None, typer.Option(metavar="N", help="Seed of everything random, instead of the scenarios' own.")
]
SecretNameOption = Annotated[
    list[str] | None,
    typer.Option(
        "--secret-name",
        metavar="NAME",
        help="What you call a secret: a header, a parameter or a member of bodies, beside the usual ones (repeatable).",
    ),
]
SecretPatternOption = Annotated[
    list[str] | None,
    typer.Option(
        "--secret-pattern",
        metavar="REGEX",
        help="What a secret of yours looks like, beside the known kinds of keys (repeatable).",
    ),
]
WatchdogOption = Annotated[
    str,
    typer.Option(
        metavar="LIMITS|off",
        help="What one run may use of this machine: seconds of processor time, seconds that pass, bytes of memory. "
        "One that uses more is killed and fails.",
    ),
]
WATCHDOG: Final = "cpu=20,wall=60,memory=1024m"
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        metavar="serial|processes[:N]|dask:HOST:PORT",
        help="Who does the work: this process, N processes of this machine (default: one per core), or a Dask cluster. "
        "The result is the same.",
    ),
]
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", show_default=False, help="Scenario files or folders; none: the built-in suites."
    ),
]

JsonFileOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
]
MarkdownFileOption = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write the result as Markdown to this file.")
]
HtmlOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the result as one HTML page to this file.")
]
JunitOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the result as JUnit XML to this file.")
]
PricesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of STATEK's price files (STATEK_MODEL_INFO_DIR), for calls whose provider reports no cost.",
    ),
]
JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Write it as JSON to this file; - prints JSON instead of text."
    ),
]
"""Of commands that print one list: `statek_sim.cli.inputs.written_as_json` does it."""

TokenizerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tokenizer",
        metavar="MODEL=SOURCE",
        help="Measure models whose name starts with MODEL by a tokenizer.json, or by `tekken` (repeatable).",
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        try:
            version = importlib.metadata.version(_DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed)"
        typer.echo(f"{_DISTRIBUTION} {version}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Test LLM agents with a scripted LLM and a deterministic runtime."""


class Backend(StrEnum):
    """Who runs a scenario."""

    REFERENCE = "reference"
    INSTALLED = "installed"


BackendOption = Annotated[
    Backend,
    typer.Option(
        metavar="reference|installed",
        help="Who runs it: the reference runtime, or the statek package that is installed here, which follows the "
        "profile of its version.",
    ),
]
