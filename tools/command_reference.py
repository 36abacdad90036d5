"""Describes the commands, pytest options and settings for `docs/commands.md`; `tools.reference` writes the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import typer

from pytest_statek.options import CASSETTE_MARKER, INI_KEYS, MARKER, REPEAT_MARKER, add_options
from statek_sim.cli.app import HEADINGS, app, load_commands


def command_sections() -> Iterator[str]:
    """Yield a section for each command, in the order of `statek-sim --help`."""
    load_commands()
    every: Any = typer.main.get_command(app)
    top = [name for names in HEADINGS.values() for name in names]
    for name, command in (
        found for word in top for found in _commands(f"statek-sim {word}", every.commands[word])
    ):
        yield f"## `{name}`"
        yield re.sub(r"(?m)^Example: (.+)$", r"Example: `\1`", _plain(command.help))
        options = [
            (_usage(each), _meaning(each.help, each.default if each.show_default else None))
            for each in command.params
        ]
        yield _table("argument or option", options)


def pytest_sections() -> Iterator[str]:
    """Yield the sections on the plugin's options, configuration keys and markers."""
    recorder: Any = _Options()
    add_options(recorder)
    yield "## pytest options"
    yield _table("option", recorder.rows)
    yield "## pytest settings"
    yield "Set these keys under `[pytest]` in `pytest.ini`, or under `[tool.pytest.ini_options]` in `pyproject.toml`."
    yield _table("key", [(name, f"{kind}: {meaning}") for name, (kind, meaning) in INI_KEYS.items()])
    yield "## Markers"
    yield _table("marker", [_marker(text) for text in (MARKER, CASSETTE_MARKER, REPEAT_MARKER)])


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inside = getattr(command, "commands", None)
    if inside is None:
        yield name, command
        return
    for word, each in inside.items():
        yield from _commands(f"{name} {word}", each)


def _usage(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"{parameter.metavar}"
    return " ".join(filter(None, (", ".join(parameter.opts), parameter.metavar)))


def _meaning(text: str, default: Any) -> str:
    value = default.value if isinstance(default, Enum) else default
    shown = isinstance(value, str | int | float) and not isinstance(value, bool)
    return f"{text} Default: `{value}`." if shown else text


def _marker(text: str) -> tuple[str, str]:
    signature, _, meaning = text.partition("): ")
    return f"{signature})", meaning


def _plain(text: str) -> str:
    """Return a text in which Markdown finds no HTML."""
    return text.replace("<", "&lt;")


def _table(first: str, rows: Iterable[tuple[str, str]]) -> str:
    cells = [
        (name.replace("|", "\\|"), _plain(" ".join(text.split())).replace("|", "\\|")) for name, text in rows
    ]
    return "\n".join(
        [f"| {first} | meaning |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in cells)]
    )


class _Options:
    """Stands in for pytest's parser, and collects the options that a plugin adds."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    def getgroup(self, *_names: str) -> _Options:
        """Return this object, which is also the only group."""
        return self

    def addoption(self, name: str, **settings: Any) -> None:
        """Collect an option."""
        value = settings.get("metavar") or "|".join(settings.get("choices", ()))
        shown = f"[={value}]" if "nargs" in settings else f"={value}"
        self.rows.append((name + shown if value else name, settings["help"]))

    def addini(self, *_arguments: Any, **_settings: Any) -> None:
        """Ignore a configuration key; `INI_KEYS` has them all."""
