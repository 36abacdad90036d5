"""`statek-sim cassette record`, `scan`, `diff` and `orphans`: record conversations, and check recordings."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import loaded, say
from statek_sim.cli.options import argument, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.cassettes.session import RecordMode
    from statek_sim.providers.http_provider import Exchanges
    from statek_sim.providers.live import LiveTransport
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.suite.recorded import Cassettes, Play, Recording
    from statek_sim.suite.result import ScenarioResult


cassette = typer.Typer(
    help="Record LLM conversations, and check the recordings.\n\nExample: statek-sim cassette scan cassettes",
    no_args_is_help=True,
)
app.add_typer(cassette, name="cassette")


@cassette.command()
def scan(
    paths: Annotated[list[Path], argument("PATH", "Cassette files or folders.")],
    secret_name: options.SecretNameOption = None,
    secret_pattern: options.SecretPatternOption = None,
) -> None:
    """Find credentials in cassettes.

    Scans cassettes from this and other tools, including streamed bodies. Shows the first four characters of each
    finding. Exits 1 if there is a finding, or if a file or body cannot be scanned completely. Suspicious text only
    causes a warning.

    Example: statek-sim cassette scan cassettes
    """
    from statek_sim.cassettes.scan import Leak, Skipped, files_under
    from statek_sim.cassettes.scan import scan as scan_file
    from statek_sim.cassettes.secret_patterns import OwnSecrets
    from statek_sim.reporting.text_format import plural

    own = OwnSecrets.of(secret_name or (), secret_pattern or ())
    files, skipped = files_under(paths)
    unread: list[str] = []
    unopened: list[str] = []
    leaks: list[Leak] = []
    warnings: list[Leak] = []
    for file in files:
        try:
            found = scan_file(file, own)
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
    old: Annotated[Path, argument("OLD", "The old cassette.")],
    new: Annotated[Path, argument("NEW", "The new recording.")],
    ignore: Annotated[
        list[str] | None,
        option(
            "NAME",
            "Ignore this part of requests, such as body.metadata, when matching them; can be repeated.",
        ),
    ] = None,
) -> None:
    """Show what a new recording changed.

    Compares replies, tool calls, token usage and model versions; ignores ids and times. Bodies in an unknown format are
    reported, and compared as JSON or text. Exits 1 if the cassettes differ.

    Example: statek-sim cassette diff old.yaml new.yaml
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
        argument("PATH", "Test folders. Default: the current folder."),
    ] = None,
) -> None:
    """List cassettes that no test uses.

    Collects the tests with pytest, without running them. Exits 1 if a cassette is unused.

    Example: statek-sim cassette orphans tests
    """
    from statek_sim.cassettes.store import cassettes_under
    from statek_sim.cassettes.store import orphans as unused

    folders = paths or [Path()]
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder}: expected a test folder")
    found = cassettes_under(folders)
    left = unused(found, _used(folders)) if found else []
    here = Path.cwd()
    say(str(path.relative_to(here) if path.is_relative_to(here) else path) for path in left)
    say([f"{len(found)} cassettes, {len(left)} not used by any test"], err=True)
    if left:
        raise typer.Exit(1)


def _used(folders: list[Path]) -> list[Path]:
    """Return the cassettes used by the tests that pytest collects; raises `BadInput` if collection fails."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "cassettes"
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", f"--statek-cassette-list={target}"]
        done = subprocess.run([*command, *map(str, folders)], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 5) or not target.exists():
            raise BadInput(f"pytest could not collect the tests:\n{done.stdout}{done.stderr}")
        return [Path(line) for line in target.read_text(encoding="utf-8").splitlines()]


CASSETTES: Final = Path("cassettes")


PathsArgument = Annotated[list[Path], argument("SCENARIO", "Scenario files or folders.")]
ProviderOption = Annotated[
    str,
    option("NAME", "The STATEK name of the provider to call; NAME_API_URL and NAME_API_KEY configure it."),
]
ModelOption = Annotated[
    str | None, option("NAME", "Use this model for all agents, instead of each agent's own model.")
]
CassettesOption = Annotated[Path, option("DIR", "Cassette folder.")]
ModeOption = Annotated[
    str,
    option(
        "once|new_episodes|all|rewrite",
        "once: keep existing cassettes; new_episodes: add missing recordings; all: record every request again and keep "
        "the other recordings; rewrite: start each cassette empty.",
    ),
]
SelectOption = Annotated[
    str | None,
    option("TEXT", "Use only the scenario with this id, or all scenarios whose names contain TEXT."),
]
ProfileOption = Annotated[
    str | None, option("P", "Behaviour profile. Default: the newest release's profile.")
]
PythonOption = Annotated[
    str | None, option("PATH", "Run on the installed statek package instead of the reference runtime.")
]


@cassette.command()
def record(
    paths: PathsArgument,
    provider: ProviderOption,
    model: ModelOption = None,
    cassettes: CassettesOption = CASSETTES,
    mode: ModeOption = "rewrite",
    select: SelectOption = None,
    profile: ProfileOption = None,
    python: PythonOption = None,
    secret_name: options.SecretNameOption = None,
    secret_pattern: options.SecretPatternOption = None,
) -> None:
    """Run scenarios with a real provider and record cassettes.

    The scenarios' scripts are not used. `statek-sim run --cassettes DIR` replays the cassettes without an API key.

    Example: statek-sim cassette record tests/scenarios --provider OPENAI
    """
    from statek_sim.cassettes.secret_patterns import OwnSecrets
    from statek_sim.cassettes.session import RecordMode, record_mode
    from statek_sim.suite.recorded import Cassettes

    chosen_mode = record_mode(mode)
    if chosen_mode is RecordMode.NONE:
        raise BadInput("--mode none: records nothing; to replay, use statek-sim run --cassettes")
    folder = Cassettes(cassettes, provider, model, OwnSecrets.of(secret_name or (), secret_pattern or ()))
    failed = False
    with ExitStack() as stack:
        play, own = _player(stack, python)
        for scenario, under in _pairs(loaded(paths), select, own if profile is None else profile):
            recording = _record(scenario, under, folder, play, chosen_mode)
            failed = failed or bool(recording.result.mismatches)
            say(_lines(recording))
    if failed:
        raise typer.Exit(1)


def _pairs(
    scenarios: tuple[Scenario, ...], select: str | None, profile: str | None
) -> list[tuple[Scenario, Profile]]:
    """Return the chosen scenarios, each with the profile to use while recording."""
    from statek_sim.suite.recorded import usual_profile
    from statek_sim.suite.run import chosen_or_fail

    profiles = None if profile is None else [profile]
    pairs = chosen_or_fail(scenarios, profiles=profiles, select=select)
    return [
        (scenario, under)
        for scenario, under in pairs
        if profile is not None or under == usual_profile(scenario)
    ]


def _player(stack: ExitStack, python: str | None) -> tuple[Play, Profile | None]:
    """Return the function that runs scenarios, and the installed package's profile (None on the reference runtime)."""
    from statek_sim.suite.run import run_one

    if python is None:

        def on_the_reference(scenario: Scenario, profile: Profile, *, exchanges: Exchanges) -> ScenarioResult:
            return run_one(scenario, profile, exchanges=exchanges)

        return on_the_reference, None
    from statek_sim.backends.installed.peer import Peer, profile_of_peer
    from statek_sim.suite.installed import run_one_installed

    peer = stack.enter_context(Peer(python))

    def on_the_peer(scenario: Scenario, profile: Profile, *, exchanges: Exchanges) -> ScenarioResult:
        return run_one_installed(peer, scenario, profile, exchanges=exchanges)

    return on_the_peer, profile_of_peer(peer)


def _record(
    scenario: Scenario, profile: Profile, folder: Cassettes, play: Play, mode: RecordMode
) -> Recording:
    """Record one scenario."""
    from statek_sim.suite.recorded import recorded

    return recorded(scenario, profile, folder, play, mode=mode, environment=os.environ, live=live_transport())


def live_transport() -> LiveTransport:
    """Return a transport that sends real requests; raises `BadInput` if httpx is not installed."""
    from statek_sim.providers.network import permit_network

    try:
        from statek_sim.providers.live import LiveTransport
    except ModuleNotFoundError as missing:
        if missing.name != "httpx":
            raise
        raise BadInput("recording requires httpx: pip install 'pytest-statek[live]'") from None
    return LiveTransport(permit=permit_network)


def _lines(recording: Recording) -> Iterator[str]:
    """Yield a recording's result as human-readable lines."""
    from statek_sim.reporting.text_format import plural
    from statek_sim.suite.diff import failure_text

    result = recording.result
    recorded = f"{plural(recording.recorded, 'exchange')} recorded in {recording.path}"
    yield f"{result.id} {result.outcome}: {recorded if recording.recorded else 'nothing was recorded'}"
    if result.mismatches:
        yield failure_text(result)
