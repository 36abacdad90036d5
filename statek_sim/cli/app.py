"""The command line's root with its list of commands, and the options that several commands share."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

import typer
from typer.core import TyperGroup

from statek_sim.did_you_mean import suggestion

HEADINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "Scenarios": ("init", "run", "validate", "list", "trace"),
    "Limits, tokens and costs": ("usage", "limits", "gate"),
    "What else could happen": ("explore", "compare", "jobs"),
    "Agents that call tools": (
        "evals",
        "guards",
        "rescue",
        "metrics",
    ),
    "Models and clients": ("cassette", "serve"),
}
"""The headings of `statek-sim --help`, each with its commands."""

_MODULES: Final[Mapping[str, str]] = {"list": "listing"}
"""The modules of commands whose module has another name."""


class HelpText(Protocol):
    """Receives the help of a command: click's formatter."""

    width: int

    def section(self, name: str) -> AbstractContextManager[None]:
        """Begin a section under a heading."""

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write a list of names, each with its description."""


class Commands(TyperGroup):
    """A group that lists its commands under headings; commands without a heading come last."""

    def format_commands(self, ctx: object, formatter: HelpText) -> None:
        """Write the list of commands into the help."""
        listed = {name for names in HEADINGS.values() for name in names}
        rest = tuple(name for name in self.commands if name not in listed)
        widest = max(map(len, self.commands))
        for heading, names in (*HEADINGS.items(), *([("More", rest)] if rest else [])):
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(widest), self._summary(name, widest, formatter)) for name in names]
                )

    def _summary(self, name: str, widest: int, formatter: HelpText) -> str:
        return self.commands[name].get_short_help_str(formatter.width - widest - 6)


def load_commands(arguments: Sequence[str] = ()) -> None:
    """Import the module of the command that `arguments` begin with, or every command's where they begin with none."""
    names = [name for listed in HEADINGS.values() for name in listed]
    for name in arguments[:1] if arguments and arguments[0] in names else names:
        importlib.import_module(f"statek_sim.cli.{_MODULES.get(name, name)}")


def as_options(arguments: Sequence[str], commands: Mapping[str, object]) -> list[str]:
    """Return arguments with the words `help` and `version` replaced by `--help` and `--version`."""
    match arguments:
        case ["help", *words]:
            return [*words, "--help"]
        case [group, "help", *words] if _inside(commands.get(group)):
            return [group, *words, "--help"]
        case ["version"] | ["-V"]:
            return ["--version"]
        case _:
            return list(arguments)


def unknown(words: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """Return the error for a word that is not a command, or not a command of its group; None without one."""
    group = ""
    for word in words:
        if word.startswith("-") or not commands:
            return None
        if word not in commands:
            meant = suggestion(word, commands) if group else _meant(word, commands)
            listing = f"statek-sim help {group}".strip()
            return f"No such command {group + word!r}.{meant} `{listing}` lists them all"
        group, commands = f"{group}{word} ", _inside(commands[word])
    return None


def _inside(command: object) -> Mapping[str, Any]:
    """Return the commands of a group; none for a command that is not a group."""
    return getattr(command, "commands", {})


def _meant(word: str, commands: Mapping[str, object]) -> str:
    if Path(word).exists():
        return f" To run it: `statek-sim run {word}`."
    return suggestion(word, commands)


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
        help="Also treat the header, parameter or body field with this name as a secret (repeatable).",
    ),
]
SecretPatternOption = Annotated[
    list[str] | None,
    typer.Option(
        "--secret-pattern",
        metavar="REGEX",
        help="Also treat text that matches this pattern as a secret (repeatable).",
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
