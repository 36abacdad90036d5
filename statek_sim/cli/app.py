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
    epilog="`statek-sim help COMMAND` shows the options of a command. Exit codes: 0 success, 1 a check failed, "
    "2 bad input.",
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
        help="Use only this behaviour profile: docs, 1.2.5, 1.2 or 1.4; hardened for engine agent (repeatable).",
    ),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Use this preset instead of the scenarios' own: default, local, interactive, batch, or a .env file. "
        "Limits in a scenario still apply. Scenarios may fail, because their expectations assume their own preset.",
    ),
]
SelectOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Use only the scenario with this id, or those whose suite/id[profile] contains TEXT.",
    ),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="T", help="Use only scenarios with this tag (repeatable; one matching tag is enough)."
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(metavar="N", help="Use this random seed instead of the scenarios' own.")
]
SecretNameOption = Annotated[
    list[str] | None,
    typer.Option(
        "--secret-name",
        metavar="NAME",
        help="Also redact the header, parameter or body field with this name (repeatable).",
    ),
]
SecretPatternOption = Annotated[
    list[str] | None,
    typer.Option(
        "--secret-pattern",
        metavar="REGEX",
        help="Also redact text that matches this pattern, in addition to known kinds of keys (repeatable).",
    ),
]
WatchdogOption = Annotated[
    str,
    typer.Option(
        metavar="LIMITS|off",
        help="Kill and fail a run that exceeds these limits: seconds of CPU time, seconds of wall time, bytes of "
        "memory.",
    ),
]
WATCHDOG: Final = "cpu=20,wall=60,memory=1024m"
ExecutorOption = Annotated[
    str | None,
    typer.Option(
        metavar="serial|processes[:N]|dask:HOST:PORT",
        help="Run in this process, in N processes (default: one per core), or on a Dask cluster. The result is the "
        "same.",
    ),
]
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", show_default=False, help="Scenario files or folders. Default: the built-in suites."
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
        help="Folder of STATEK price files (STATEK_MODEL_INFO_DIR), for calls whose provider reports no cost.",
    ),
]
JsonOption = Annotated[
    Path | None,
    typer.Option(
        "--json", metavar="FILE", help="Write the result as JSON to this file; - prints JSON instead of text."
    ),
]
"""For commands that print one list; `statek_sim.cli.inputs.written_as_json` implements it."""

TokenizerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tokenizer",
        metavar="MODEL=SOURCE",
        help="Count tokens of models whose name starts with MODEL with this tokenizer.json, or with `tekken` "
        "(repeatable).",
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
    """The runtime that runs a scenario."""

    REFERENCE = "reference"
    INSTALLED = "installed"


BackendOption = Annotated[
    Backend,
    typer.Option(
        metavar="reference|installed",
        help="Run on the reference runtime, or on the installed statek package, which follows the profile of its "
        "version.",
    ),
]
