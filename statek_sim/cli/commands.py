"""The list of commands under headings, and words that lead to one: `help`, `version`, what others call a command."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol

from typer.core import TyperGroup

from statek_sim.did_you_mean import stands_for, suggestion

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
"""Every command under the heading by which somebody who does not know its name finds it."""

ELSEWHERE: Final[Mapping[str, str]] = {
    "calibrate": "limits --budget-tokens N",
    "check": "validate",
    "conformance": "compare",
    "diff": "compare",
    "docs": "help",
    "drift": "compare",
    "lint": "validate",
    "ls": "list",
    "mcp": "serve mcp",
    "new": "init",
    "play": "run",
    "presets": "list presets",
    "profiles": "list profiles",
    "record": "cassette record",
    "report": "run --html FILE",
    "scan": "cassette",
    "scenarios": "list suites",
    "schema": "list schema",
    "sensitivity": "limits",
    "server": "serve",
    "start": "init",
    "stops": "limits --stops",
    "suites": "list suites",
    "test": "run",
    "tools": "list tools",
}
"""What other tools call such a command."""

OPTIONS_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "--accept": ("--fix", "--snapshot-update", "--update", "--write", "-u"),
    "--json": ("--format", "--json-report", "--out", "--output", "-o"),
    "--processes": ("--concurrency", "--jobs", "--numprocesses", "--parallel", "--workers", "-j", "-n"),
    "--quiet": ("--silent", "-s"),
    "--seed": ("--random-seed",),
    "--select": ("--filter", "--grep", "--match", "--name", "--only", "--scenario", "--suite", "-k"),
    "--tag": ("--label", "--mark", "--marker", "--tags", "-m", "-t"),
    "--watchdog": ("--limit", "--timeout"),
}
"""What other tools call such an option, by ours."""

OTHER_WAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "`pytest --statek-scenarios -x` stops at the first failure": (
        "--exitfirst",
        "--fail-fast",
        "--maxfail",
        "-x",
    ),
    "`pytest --statek-scenarios --junitxml FILE` writes that": ("--junit", "--junit-xml", "--junitxml"),
    "`pytest --statek-scenarios --lf` runs what failed": ("--last-failed", "--lf"),
    "`statek-sim list suites` lists scenarios": ("--collect-only", "--dry-run", "--list", "-l"),
    "`statek-sim trace PATH|ID` prints everything that happens": ("--debug", "--verbose", "-v", "-vv"),
    "Scenarios run on every core as it is": OPTIONS_ELSEWHERE["--processes"],
}
"""What to do instead of options that other tools have, and `run` has not."""


class HelpText(Protocol):
    """What a command's help is written to."""

    width: int

    def section(self, name: str) -> AbstractContextManager[None]:
        """Begin a section under a heading."""

    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write a list of names, each with what it means."""


class Commands(TyperGroup):
    """A group that lists its commands under headings; one that has none comes last."""

    def format_commands(self, ctx: object, formatter: HelpText) -> None:
        """Write the list of commands into the help."""
        listed = {name for names in HEADINGS.values() for name in names}
        rest = tuple(name for name in self.commands if name not in listed)
        widest = max(map(len, self.commands))
        for heading, names in (*HEADINGS.items(), *([("More", rest)] if rest else [])):
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(widest), self._told(name, widest, formatter)) for name in names]
                )

    def _told(self, name: str, widest: int, formatter: HelpText) -> str:
        return self.commands[name].get_short_help_str(formatter.width - widest - 6)


def as_options(arguments: Sequence[str], commands: Mapping[str, object]) -> list[str]:
    """Return arguments with `help` and `version`, which newcomers type, as the options that say the same."""
    match arguments:
        case ["help", *words]:
            return [*words, "--help"]
        case [group, "help", *words] if _inside(commands.get(group)):
            return [group, *words, "--help"]
        case ["version"] | ["-V"]:
            return ["--version"]
        case _:
            return list(arguments)


def unknown(arguments: Sequence[str], commands: Mapping[str, Any]) -> str | None:
    """Return the line to say about a word that is no command, or no command of a group, and about others' options.

    None where there is nothing to say: what else is wrong says the command itself.
    """
    group = ""
    for place, word in enumerate(arguments):
        if word.startswith("-"):
            return None
        if word not in commands:
            meant = suggestion(word, commands) if group else _meant(word, commands)
            listing = f"statek-sim help {group}".strip()
            return f"No such command {group + word!r}.{meant} `{listing}` lists them all"
        command = commands[word]
        group, commands = f"{group}{word} ", _inside(command)
        if not commands:
            return _unknown_option(arguments[place + 1 :], command)
    return None


def _unknown_option(arguments: Sequence[str], command: Any) -> str | None:
    """Return the line to say when an option is one that other tools have, and this command has by another name."""
    known = {
        name: parameter
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    words = iter(arguments)
    for word in words:
        if word == "--":
            break
        name, equals, _ = word.partition("=")
        if name in known:
            if not equals and not getattr(known[name], "is_flag", True):
                next(words, None)  # its value, whatever it looks like
        elif name.startswith("-") and (instead := _instead(name, known, command.name)):
            return f"No such option {name!r}. {instead}"
    return None


def _instead(option: str, known: Collection[str], command: str) -> str | None:
    """Return what to write in place of an option of other tools, None for one that is none."""
    ours = stands_for(option, known, OPTIONS_ELSEWHERE)
    if ours is not None:
        return f"Did you mean {ours!r}?"
    return next((way for way, others in OTHER_WAYS.items() if option in others and command == "run"), None)


def _inside(command: object) -> Mapping[str, object]:
    """Return the commands of a group; a command that is none has none."""
    return getattr(command, "commands", {})


def _meant(word: str, commands: Mapping[str, object]) -> str:
    if Path(word).exists():
        return f" To run it: `statek-sim run {word}`."
    if word in ELSEWHERE:
        return f" Did you mean {ELSEWHERE[word]!r}?"
    return suggestion(word, commands)
