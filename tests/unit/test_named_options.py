"""An option that a message, a docstring or a help text names is one of ours, or of the program that it is said of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from statek_sim.cli.app import _command

ROOT: Final = Path(__file__).resolve().parents[2]
OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]+\b(?!-)")
OF_PYTEST: Final = {"--collect-only", "--help", "--markers"}
OF_OTHER_PROGRAMS: Final = (
    "agent/containers/",
    "agent/context/vram.py",
    "agent/permissions/landlock.py",
    "cassettes/commands.py",
    "cassettes/secrets.py",
    "executors/dask_cluster.py",
)
"""Files of `statek_sim` that write command lines of others, or read them."""


def test_every_option_that_is_named_exists() -> None:
    known = {*_options(_command()), *_of_the_plugin(), *OF_PYTEST}
    assert len(known) > 80, "options are not found any more"
    named = {option: place for place, option in _named()}
    assert len(named) > 40, "options in texts are not found any more"
    assert {option: place for option, place in named.items() if option not in known} == {}


def _options(command: Any) -> Iterator[str]:
    for parameter in getattr(command, "params", ()):
        yield from (*parameter.opts, *parameter.secondary_opts)
    for subcommand in getattr(command, "commands", {}).values():
        yield from _options(subcommand)


def _of_the_plugin() -> Iterator[str]:
    for file in (ROOT / "pytest_statek").rglob("*.py"):
        yield from re.findall(r'addoption\(\s*"(--[\w-]+)"', file.read_text(encoding="utf-8"))


def _named() -> Iterator[tuple[str, str]]:
    for package in ("statek_sim", "pytest_statek"):
        for file in sorted((ROOT / package).rglob("*.py")):
            if str(file.relative_to(ROOT / package)).startswith(OF_OTHER_PROGRAMS):
                continue
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield from ((f"{file}:{node.lineno}", option) for option in OPTION.findall(node.value))
