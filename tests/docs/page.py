"""Pages of documentation whose code is run.

A block whose first line is `# name.py` (or `.ini`, `.yaml`, `.toml`, `.env`) is a file. A `console` block is commands
after `$ `, run in order in the folder of those files, and what they print: `...` stands for anything, in a line or
as lines. A command that is to fail is followed by `# exits 1`. `cd FOLDER` and `export NAME=VALUE` hold for what comes
after them. Blocks of other languages, and blocks that start with neither, are not looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tests.docs.warm import arguments_of, run_in_a_copy

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"

_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# ([\w./-]+\.(?:py|ini|yaml|toml|env))\n")
_CD: Final = re.compile(r"cd (\S+)")
_EXPORT: Final = re.compile(r"export (\w+)=(\S+)")
_COMMAND: Final = re.compile(r"\$ (.*?)(?:\s+# exits (\d))?")


@dataclass(frozen=True, slots=True)
class File:
    """A file that the reader has."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """What the reader types, and what they see: lines with `...` for what may be anything."""

    line: str
    exit_code: int
    shown: str


def steps(page: Path) -> Iterator[File | Command]:
    """Yield the files and commands of a page, in order."""
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        named = _FILE.match(text)
        if language == "console":
            yield from _commands(text)
        elif named:
            yield File(named[1], text)


def _commands(text: str) -> Iterator[Command]:
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        found = _COMMAND.fullmatch(lines[start])
        assert found, f"not a command: {lines[start]}"
        yield Command(found[1], int(found[2] or 0), "\n".join(lines[start + 1 : end]).strip("\n"))


def follow(page: Path, folder: Path, environment: Mapping[str, str]) -> int:
    """Do what a page says in an empty folder, and return how many commands that were; a difference is an error."""
    done = 0
    for step in steps(page):
        if isinstance(step, File):
            place = folder / step.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(step.text, encoding="utf-8")
            continue
        done += 1
        if moved := _CD.fullmatch(step.line):
            folder = (folder / moved[1]).resolve(strict=True)
        elif exported := _EXPORT.fullmatch(step.line):
            environment = {**environment, exported[1]: exported[2]}
        else:
            _check(step, folder, environment)
    return done


def _check(command: Command, folder: Path, environment: Mapping[str, str]) -> None:
    arguments = arguments_of(command.line)
    around = {"COLUMNS": "120", **environment}
    if arguments is None:
        code, printed = _in_a_shell(command.line, folder, around)
    else:
        code, printed = run_in_a_copy(arguments, folder, around)
    assert code == command.exit_code, f"$ {command.line}\nexited {code}:\n{printed}"
    assert matches(printed, command.shown), f"$ {command.line}\nprinted:\n{printed}\nnot:\n{command.shown}"


def _in_a_shell(line: str, folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    programs = Path(sys.executable).parent
    ran = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=folder,
        env={**os.environ, **environment, "PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return ran.returncode, ran.stdout


def matches(printed: str, shown: str) -> bool:
    """Whether a text is what a page shows of it; a page that shows nothing shows nothing of it."""
    if not shown:
        return True
    pattern = shown.replace("[", "[[]").replace("?", "[?]").replace("*", "[*]").replace("...", "*")
    return fnmatchcase(printed.strip("\n"), pattern)
