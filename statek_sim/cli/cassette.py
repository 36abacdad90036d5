"""`statek-sim cassette scan`, `diff` and `orphans`: check recordings."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from statek_sim.cli.app import SecretNameOption, SecretPatternOption, app
from statek_sim.cli.inputs import say
from statek_sim.errors import BadInput

cassette = typer.Typer(
    help="Record conversations with providers, and check recordings.\n\nExample: statek-sim cassette scan cassettes",
    no_args_is_help=True,
)
app.add_typer(cassette, name="cassette")


@cassette.command()
def scan(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", show_default=False, help="Cassettes, or folders of them.")
    ],
    secret_name: SecretNameOption = None,
    secret_pattern: SecretPatternOption = None,
) -> None:
    """Find what looks like a credential.

    In our cassettes and in others', also in the pieces of a stream. Exits 1 when something is found, of which only the
    first four characters are shown, and when a file has more in it than is looked into, or a body that cannot be
    opened. What only looks odd is a warning. Pipes, sockets and devices in a folder are skipped.
    """
    from statek_sim.cassettes.scan import Leak, Skipped, files_under, scanned
    from statek_sim.cassettes.secret_rules import OwnSecrets
    from statek_sim.reporting.text_format import plural

    own = OwnSecrets.of(secret_name or (), secret_pattern or ())
    files, skipped = files_under(paths)
    unread: list[str] = []
    unopened: list[str] = []
    leaks: list[Leak] = []
    warnings: list[Leak] = []
    for file in files:
        try:
            found = scanned(file, own)
        except Skipped as bound:
            unread.append(f"{file}: not scanned: {bound}")
            continue
        leaks += found.leaks
        warnings += found.warnings
        unopened += map(str, found.unopened)
    say(map(str, sorted([*leaks, *warnings])))
    number = plural(len(files) - len(unread), "file")
    end = f"{number} scanned, {plural(len(leaks), 'credential')} found"
    end += f", {plural(len(warnings), 'warning')}" if warnings else ""
    say([*skipped, *unread, *unopened, end], err=True)
    if leaks or unread or unopened:
        raise typer.Exit(1)


@cassette.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", show_default=False, help="The cassette of before.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", show_default=False, help="The new recording.")],
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A part of requests that does not count (repeatable)."),
    ] = None,
) -> None:
    """Show what a re-recording changed.

    Replies, tool calls, token usage, model version; ids and times, which always differ, do not count. Exits 1 when
    something differs. A body that is no answer in the format of its address is told, and compared as JSON or text.
    """
    from statek_sim.cassettes.document import read_decoded
    from statek_sim.cassettes.matching import Matching
    from statek_sim.reporting.cassette_diff import changes, unread

    before, now = read_decoded(old), read_decoded(new)
    for path, exchanges in ((old, before), (new, now)):
        say((f"{path}: {line}" for line in unread(exchanges)), err=True)
    lines = changes(before, now, Matching.ignoring(ignore or ()))
    say(lines)
    if lines:
        raise typer.Exit(1)


@cassette.command()
def orphans(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", show_default=False, help="Folders of tests; none: this one."),
    ] = None,
) -> None:
    """List the cassettes that no test uses. Asks pytest which tests there are, and runs none.

    Exits 1 when there are any.
    """
    from statek_sim.cassettes.store import cassettes_under
    from statek_sim.cassettes.store import orphans as unused

    folders = paths or [Path()]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder}: expected a folder of tests")
    found = cassettes_under(folders)
    left = unused(found, _used(folders)) if found else []
    here = Path.cwd()
    say(str(path.relative_to(here) if path.is_relative_to(here) else path) for path in left)
    say([f"{len(found)} cassettes, {len(left)} without a test"], err=True)
    if left:
        raise typer.Exit(1)


def _used(folders: list[Path]) -> list[Path]:
    """Return the cassettes of the tests that pytest collects; `BadInput` when it cannot collect them."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "cassettes"
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", f"--statek-cassette-list={target}"]
        done = subprocess.run([*command, *map(str, folders)], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 5) or not target.exists():
            raise BadInput(f"pytest could not collect the tests:\n{done.stdout}{done.stderr}")
        return [Path(line) for line in target.read_text(encoding="utf-8").splitlines()]
