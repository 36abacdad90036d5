"""Lists the commands under headings, loads their modules, and accepts the words `help` and `version`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol

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

_MODULES: Final[Mapping[str, tuple[str, ...]]] = {"list": ("listing",), "evals": ("evals", "evals_run")}
"""The modules of commands whose module has another name, in the order in which help lists what they add."""


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
        for module in _MODULES.get(name, (name,)):
            importlib.import_module(f"statek_sim.cli.{module}")


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
