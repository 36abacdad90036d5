"""Reads the `@pytest.mark.statek_cassette(...)` marker, which contains the settings for a test's cassette."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from pytest_statek.cassette_path import cassette_path
from pytest_statek.options import CASSETTE
from statek_sim.cassettes.matching import Matching
from statek_sim.cassettes.recording_lookup import Advice
from statek_sim.cassettes.secret_patterns import OwnSecrets
from statek_sim.cassettes.session import RecordMode, record_mode
from statek_sim.cassettes.store import CassetteState, Run
from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput

STATES: Final = pytest.StashKey[dict[str, CassetteState]]()
"""The key in `config.stash` for this pytest run's recordings, keyed by cassette."""
ORDER: Final = pytest.StashKey[int]()
"""The key in an item's stash for the test's position among all tests in the run."""
SHARERS: Final = pytest.StashKey[frozenset[int]]()
"""The key in an item's stash for the positions of all tests that share its cassette, if several do."""
ARGUMENTS: Final = ("name", "ignore", "mode", "allow_unplayed")


@dataclass(frozen=True, slots=True, kw_only=True)
class CassetteWishes:
    """A test's cassette settings."""

    path: Path
    mode: RecordMode
    matching: Matching
    allow_unplayed: bool
    advice: Advice
    run: Run


def wishes_of(item: pytest.Item) -> CassetteWishes:
    """Return a marked test's settings, from the nearest marker, the options and the configuration file.

    Raises `BadInput` for an invalid argument.
    """
    arguments = _arguments(item)
    config = item.config
    record = f"pytest {shlex.quote(item.nodeid)} --statek-record="
    allow = arguments.get("allow_unplayed", config.getini("statek_allow_unplayed"))
    if not isinstance(allow, bool):
        raise BadInput(f"allow_unplayed={allow!r}: expected True or False")
    return CassetteWishes(
        path=cassette_path(item, _name(arguments.get("name"))),
        mode=_mode(config.getoption("--statek-record"), arguments.get("mode")),
        matching=Matching.ignoring(
            (*config.getini("statek_cassette_ignore"), *_ignored(arguments.get("ignore", ()))),
            own=OwnSecrets.of(
                config.getini("statek_cassette_secret_names"),
                config.getini("statek_cassette_secret_patterns"),
                undecoded=config.getini("statek_cassette_allow_undecoded"),
            ),
        ),
        allow_unplayed=allow,
        advice=Advice(
            create=f"{record}once",
            record=f"{record}{_keeping(item, arguments.get('name'))}",
            ignore=f"@pytest.mark.{CASSETTE}(ignore={{fields}})",
        ),
        run=Run(
            item.stash.get(ORDER, 0),
            item.stash.get(SHARERS, frozenset()),
            config.stash.setdefault(STATES, {}),
        ),
    )


def _keeping(item: pytest.Item, name: object) -> str:
    """Return the mode that records a missing request but keeps recordings from tests that share the cassette."""
    return "rewrite" if name is None and SHARERS not in item.stash else "new_episodes"


def _arguments(item: pytest.Item) -> dict[str, object]:
    arguments: dict[str, object] = {}
    for mark in item.iter_markers(CASSETTE):
        if mark.args:
            raise BadInput(f"expected keyword arguments, such as name=..., got {mark.args[0]!r}")
        for name, value in mark.kwargs.items():
            if name not in ARGUMENTS:
                expected = ", ".join(ARGUMENTS)
                raise BadInput(
                    f"unknown argument {name!r}; expected {expected}.{suggestion(name, ARGUMENTS)}"
                )
            arguments.setdefault(name, value)
    return arguments


def _mode(option: str | None, argument: object) -> RecordMode:
    """Return the mode; the command line takes precedence over the marker."""
    return record_mode(option or str("none" if argument is None else argument))


def _name(argument: object) -> str | None:
    if argument is None:
        return None
    if (
        not isinstance(argument, str)
        or not argument.isprintable()
        or argument[:1] in ("", ".")
        or {"/", "\\"} & {*argument}
    ):
        raise BadInput(f"name={argument!r}: expected a file name in the test module's cassette folder")
    return argument


def _ignored(argument: object) -> tuple[str, ...]:
    if isinstance(argument, list | tuple) and all(isinstance(name, str) for name in argument):
        return tuple(argument)
    raise BadInput(f"ignore={argument!r}: expected a list of names, such as 'body.metadata.run'")
