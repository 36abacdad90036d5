"""Options shared by several commands, and functions that declare options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer


def option(metavar: str, words: str, *names: str, **settings: Any) -> Any:
    """Return a typer option with a help text and a `metavar`; `settings` are further `typer.Option` arguments."""
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
        "Use only this behaviour profile: docs, 1.2.5, 1.2 or 1.4; for the agent engine, `hardened` (repeatable).",
        "--profile",
    ),
]
PresetOption = Annotated[
    str | None,
    option(
        "NAME|FILE",
        "Use this preset instead of the scenarios' own: default, local, interactive, batch, or a .env file. "
        "Limits in a scenario still apply. Scenarios may fail, because their expectations assume their own preset.",
    ),
]
SelectOption = Annotated[
    str | None,
    option("TEXT", "Use only the scenario with this id, or those whose suite/id[profile] contains TEXT."),
]
TagOption = Annotated[
    list[str] | None,
    option("T", "Use only scenarios with this tag (repeatable; any match is enough)."),
]
SeedOption = Annotated[int | None, option("N", "Use this random seed instead of the scenarios' own.")]
SecretNameOption = Annotated[
    list[str] | None,
    option(
        "NAME",
        "Also treat the header, parameter or body field with this name as a secret (repeatable).",
        "--secret-name",
    ),
]
SecretPatternOption = Annotated[
    list[str] | None,
    option("REGEX", "Also treat text matching this pattern as a secret (repeatable).", "--secret-pattern"),
]
WatchdogOption = Annotated[
    str,
    option(
        "LIMITS|off",
        "Kill and fail a run that exceeds these limits: seconds of CPU time, seconds of wall time, bytes of "
        "memory.",
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
        "Folder with STATEK price files (STATEK_MODEL_INFO_DIR), for calls whose provider reports no cost.",
    ),
]
JsonOption = Annotated[
    Path | None,
    option("FILE", "Write the result as JSON to this file; - prints JSON instead of text.", "--json"),
]
"""For commands that print one list; implemented by `statek_sim.cli.inputs.written_as_json`."""
TokenizerOption = Annotated[
    list[str] | None,
    option(
        "MODEL=SOURCE",
        "For models whose names start with MODEL, count tokens with this tokenizer.json, or with `tekken` "
        "(repeatable).",
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
        "Run on the reference runtime, or on the installed statek package under its version's profile.",
    ),
]
