"""`statek-sim rescue`: find tool calls in a model's raw text."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for JSON Schema

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import app
from statek_sim.cli.options import argument, flag, option
from statek_sim.errors import BadInput
from statek_sim.input_files import why_unreadable

if TYPE_CHECKING:
    from statek_sim.agent.rescue.offered_tools import Tools

_STANDARD_INPUT = Path("-")


@app.command()
def rescue(
    file: Annotated[
        Path,
        argument("FILE|-", "The model's reply. Default: standard input (-)."),
    ] = _STANDARD_INPUT,
    tools: Annotated[
        Path | None,
        option(
            "FILE",
            "A JSON file that lists the offered tools as names or as specs (name and parameters, or OpenAI's format). "
            "Default: accept any name.",
        ),
    ] = None,
    jsonl: Annotated[
        bool,
        flag(
            'Read {"id", "text", "tools"} lines, and print one result line with the same id for each.',
            "--jsonl",
        ),
    ] = False,
    dialect: Annotated[
        str | None,
        option(
            "NAME",
            "The model's own call format, such as hermes or mistral. With it, text may precede a call.",
        ),
    ] = None,
    coerce: Annotated[
        bool,
        flag(
            'Convert string arguments to the type in the schema, for example "3" to 3. Without this option, such '
            "calls are rejected.",
            "--coerce",
        ),
    ] = False,
) -> None:
    """Find tool calls in a model's raw text.

    Text is accepted as a call only if it contains nothing else. Text that merely resembles a call is rejected, and the
    reason is shown. Exits 0 for any text, and 2 for an invalid file. Invalid --jsonl lines are reported on stderr with
    their line numbers; the other lines are still processed.

    Example: statek-sim rescue reply.txt --tools tools.json
    """
    from statek_sim.agent.rescue.formats import dialect_called

    dialect_called(dialect)
    reading = _Reading(dialect, coerce)
    offered = None if tools is None else _offered(tools)
    if jsonl:
        raise typer.Exit(_answered(file, offered, reading))
    typer.echo(json.dumps(_record(_text(file), offered, reading), ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class _Reading:
    """Options for reading replies."""

    dialect: str | None
    coerce: bool


def _answered(file: Path, offered: Tools | None, reading: _Reading) -> int:
    """Print the result for each line in a file as soon as the line is read; return the exit code."""
    code = 0
    for number, line in enumerate(_lines(file), 1):
        try:
            answer = _line(line, f"{file}:{number}", offered, reading)
        except BadInput as error:
            typer.echo(str(error), err=True)
            code = 2
            continue
        if answer:
            typer.echo(answer)
            sys.stdout.flush()
    return code


def _lines(file: Path) -> Iterator[bytes]:
    """Yield the lines, without a leading byte order mark."""
    try:
        opened = sys.stdin.buffer if file == _STANDARD_INPUT else file.open("rb")
    except OSError as error:
        raise BadInput(f"{file}: {why_unreadable(error, file)}") from None
    with opened:
        for number, line in enumerate(iter(opened.readline, b"")):
            yield line if number else line.removeprefix(codecs.BOM_UTF8)


def _line(read: bytes, where: str, offered: Tools | None, reading: _Reading) -> str:
    """Return a line's result as JSON, or an empty string for an empty line."""
    try:
        line = read.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: byte {error.start} is not UTF-8") from None
    if not line.strip():
        return ""
    given = json_in(where, line)
    if not isinstance(given, dict) or not isinstance(given.get("text"), str):
        raise BadInput(f'{where}: expected an object with "id", "text" and "tools", where "text" is a string')
    tools = (
        offered if "tools" not in given else None if given["tools"] is None else _tools(given["tools"], where)
    )
    try:
        record = _record(given["text"], tools, reading)
    except BadInput as error:
        raise BadInput(f"{where}: {error}") from None
    return json.dumps({"id": given.get("id"), **record})


def _record(text: str, offered: Tools | None, reading: _Reading) -> dict[str, object]:
    from statek_sim.agent.rescue.parser import rescue as rescued

    read = rescued(text, offered, dialect=reading.dialect, coerce=reading.coerce)
    return dict(read.record())


def _text(file: Path) -> str:
    name = "standard input" if file == _STANDARD_INPUT else str(file)
    try:
        content = sys.stdin.buffer.read() if file == _STANDARD_INPUT else file.read_bytes()
    except OSError as error:
        raise BadInput(f"{name}: {why_unreadable(error, file)}") from None
    try:
        return content.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: byte {error.start} is not UTF-8") from None


def json_in(where: Path | str, text: str) -> object:
    """Parse `text` as JSON; raises BadInput with a message that starts with `where`."""
    try:
        made: object = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{where}:{error.lineno}" if isinstance(where, Path) else where
        raise BadInput(f"{place}: invalid JSON: {error.msg} (column {error.colno})") from None
    except RecursionError:
        raise BadInput(f"{where}: invalid JSON: nested too deeply") from None
    except ValueError:
        # Python 3.11 and later parse no integers of more than 4,300 digits.
        raise BadInput(f"{where}: invalid JSON: number with too many digits") from None
    return made


def _offered(file: Path) -> Tools:
    """Return the tools in a file; raises `BadInput` with the file name for invalid JSON or an invalid tool."""
    from statek_sim.agent.rescue.offered_tools import Offered

    tools = _tools(json_in(file, _text(file)), str(file))
    try:
        Offered(tools)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    return tools


def _tools(given: object, where: str) -> Tools:
    tools = given.get("tools") if isinstance(given, dict) and "tools" in given else given
    if not isinstance(tools, list):
        raise BadInput(f"{where}: expected a list of tool names or specs, found {type(tools).__name__}")
    return tools
