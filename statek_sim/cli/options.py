"""Options shared by several commands, and functions for declaring options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer


def option(metavar: str, words: str, *names: str, **settings: Any) -> Any:
    """Return a typer option with a help text and a `metavar`; `settings` are additional `typer.Option` arguments."""
    return typer.Option(*names, metavar=metavar, help=words, **settings)


def flag(words: str, *names: str, **settings: Any) -> Any:
    """Return an option without a value."""
    return typer.Option(*names, help=words, **settings)


def argument(metavar: str, words: str) -> Any:
    """Return a typer argument shown as `metavar` in the help."""
    return typer.Argument(metavar=metavar, show_default=False, help=words)


ProfileOption = Annotated[
    list[str] | None,
    option(
        "P",
        "Use only this behaviour profile: docs, 1.2.5, 1.2 or 1.4; for the agent engine, `hardened`. Can be repeated.",
        "--profile",
    ),
]
PresetOption = Annotated[
    str | None,
    option(
        "NAME|FILE",
        "Use this preset instead of the scenarios' own presets: default, local, interactive, batch, or a .env file. "
        "Limits set in a scenario still apply. Scenarios may fail, because their expectations were written for their "
        "own presets.",
    ),
]
SelectOption = Annotated[
    str | None,
    option(
        "TEXT", "Use only the scenario with this id, or all scenarios whose suite/id[profile] contains TEXT."
    ),
]
TagOption = Annotated[
    list[str] | None,
    option("T", "Use only scenarios with this tag. If repeated, scenarios with any of the tags."),
]
SeedOption = Annotated[int | None, option("N", "Use this random seed instead of the scenarios' own seeds.")]
SecretNameOption = Annotated[
    list[str] | None,
    option(
        "NAME",
        "Also treat headers, parameters and body fields with this name as secrets; can be repeated.",
        "--secret-name",
    ),
]
SecretPatternOption = Annotated[
    list[str] | None,
    option(
        "REGEX", "Also treat text that matches this pattern as a secret; can be repeated.", "--secret-pattern"
    ),
]
WatchdogOption = Annotated[
    str,
    option(
        "LIMITS|off",
        "Kill and fail a run that exceeds these limits: CPU time in seconds, wall time in seconds, memory in bytes.",
    ),
]
WATCHDOG: Final = "cpu=20,wall=60,memory=1024m"
ExecutorOption = Annotated[
    str | None,
    option(
        "serial|processes[:N]|dask:HOST:PORT",
        "Run in this process, in N processes (default: one per core), or on a Dask cluster. The result is the "
        "same.",
    ),
]
Paths = Annotated[
    list[Path] | None, argument("PATH", "Scenario files or folders. Default: the built-in suites.")
]
JsonFileOption = Annotated[Path | None, option("FILE", "Write the result as JSON to this file.", "--json")]
MarkdownFileOption = Annotated[
    Path | None, option("FILE", "Write the result as Markdown to this file.", "--markdown")
]
HtmlOption = Annotated[Path | None, option("FILE", "Write the result as one HTML page to this file.")]
JunitOption = Annotated[Path | None, option("FILE", "Write the result as JUnit XML to this file.")]
PricesOption = Annotated[
    Path | None,
    option(
        "DIR",
        "The folder that contains STATEK price files (STATEK_MODEL_INFO_DIR), for calls whose provider reports no "
        "cost.",
    ),
]
JsonOption = Annotated[
    Path | None,
    option("FILE", "Write the result as JSON to this file; with -, print JSON instead of text.", "--json"),
]
"""The --json option for commands that print one list; `statek_sim.cli.inputs.written_as_json` implements it."""
TokenizerOption = Annotated[
    list[str] | None,
    option(
        "MODEL=SOURCE",
        "Count tokens with this tokenizer.json, or with `tekken`, for models whose names start with MODEL. Can be "
        "repeated.",
        "--tokenizer",
    ),
]


class Backend(StrEnum):
    """The runtime on which a scenario runs."""

    REFERENCE = "reference"
    INSTALLED = "installed"


BackendOption = Annotated[
    Backend,
    option(
        "reference|installed",
        "Run on the reference runtime, or on the installed statek package (using the profile for its version).",
    ),
]
