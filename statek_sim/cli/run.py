"""`statek-sim run`: run scenarios and compare what happens with what they expect."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from statek_sim.cli.app import (
    WATCHDOG,
    Backend,
    BackendOption,
    Paths,
    PresetOption,
    ProfileOption,
    SecretNameOption,
    SecretPatternOption,
    SeedOption,
    SelectOption,
    TagOption,
    WatchdogOption,
    app,
)
from statek_sim.cli.inputs import check_writable, loaded, proven
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.backends.exchanges import Exchanges
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.reporting.model import Report
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.scenario.statements import Coverage
    from statek_sim.suite.recorded import Cassettes
    from statek_sim.suite.result import ScenarioResult


class Runner(Protocol):
    """Runs one scenario under one profile, on its script or on HTTP exchanges."""

    def __call__(
        self, scenario: Scenario, profile: Profile, *, exchanges: Exchanges | None = None
    ) -> ScenarioResult:
        """Return what came of it."""


@app.command()
def run(
    paths: Paths = None,
    profile: ProfileOption = None,
    preset: PresetOption = None,
    seed: SeedOption = None,
    select: SelectOption = None,
    tag: TagOption = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON to this file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page to this file.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write report.json, report.md and report.html into this folder."),
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept",
            help="Rewrite expectations that do not hold with what happened, begin those of scenarios that have none, "
            "and show the diff.",
        ),
    ] = False,
    backend: BackendOption = Backend.REFERENCE,
    cassettes: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Replay what `statek-sim record` recorded, instead of the scripts. Without --profile under the "
            "profile it records under.",
        ),
    ] = None,
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --cassettes: the provider that was recorded.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --cassettes: the model it was recorded with.")
    ] = None,
    secret_name: SecretNameOption = None,
    secret_pattern: SecretPatternOption = None,
    watchdog: WatchdogOption = WATCHDOG,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print failures and the verdict only.")
    ] = False,
) -> None:
    """Run scenarios and compare what happens with what they expect."""
    if accept and backend is not Backend.REFERENCE:
        raise BadInput("--accept: expectations are written by the reference runtime; leave --backend out")
    if accept and (preset is not None or seed is not None or not paths):
        raise BadInput("--accept: name the files to rewrite, and leave --preset and --seed to the scenarios")
    if cassettes is None and (provider is not None or model is not None):
        raise BadInput("--provider and --model: they choose among recordings; say --cassettes DIR too")
    if cassettes is None and (secret_name or secret_pattern):
        raise BadInput(
            "--secret-name and --secret-pattern: they are about recordings; say --cassettes DIR too"
        )
    if accept and cassettes is not None:
        raise BadInput("--accept: expectations belong to the scripts; leave --cassettes out")
    check_writable(json_file=json_file, folder=report)
    check_writable(json_file=html, folder=None)
    from statek_sim.cassettes.own_secrets import OwnSecrets
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.suite.recorded import Cassettes
    from statek_sim.suite.run import chosen, nothing_chosen, run_one

    limits = parse_watchdog(watchdog)
    own = OwnSecrets.of(secret_name or (), secret_pattern or ())

    scenarios = loaded(paths)
    pairs = chosen(scenarios, profiles=profile or None, select=select, tags=tag or ())
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, profiles=profile, select=select, tags=tag or ()))
    coverage = None if paths else proven(scenarios)[1]
    with ExitStack() as stack:
        runner = None
        if backend is Backend.INSTALLED:
            runner, pairs = _installed(stack, pairs, preset=preset, seed=seed)
        if cassettes is not None:
            runner, pairs = _replaying(
                Cassettes(cassettes, provider, model, own),
                pairs,
                runner or partial(run_one, preset=preset, seed=seed),
                every_profile=profile is not None or backend is Backend.INSTALLED,
            )
        results, told = _run(
            pairs,
            preset=preset,
            seed=seed,
            coverage=coverage,
            quiet=quiet,
            runner=runner,
            # The installed package runs in a process of its own, with a watchdog of its own.
            watchdog=None if backend is Backend.INSTALLED else limits,
        )
    _write(results, told, json_file=json_file, html=html, folder=report)
    failed = told.overall.failed > 0
    if accept:
        failed = _accept(results)
    if failed:
        raise typer.Exit(1)


def _run(
    pairs: Sequence[tuple[Scenario, Profile]],
    *,
    preset: str | None,
    seed: int | None,
    coverage: Coverage | None,
    quiet: bool,
    runner: Runner | None = None,
    watchdog: WatchdogLimits | None,
) -> tuple[list[ScenarioResult], Report]:
    """Run the scenarios and tell how it goes."""
    from rich.console import Console

    from statek_sim.reporting.model import build_report
    from statek_sim.reporting.terminal import TerminalReporter
    from statek_sim.reporting.wording import verdict
    from statek_sim.suite.run import run_one
    from statek_sim.suite.watched import run_watched

    run = runner or partial(run_one, preset=preset, seed=seed)
    results: list[ScenarioResult] = []
    with TerminalReporter(Console(quiet=quiet), verbose=False) as reporter:
        reporter.start(len(pairs))
        for result in run_watched(pairs, run, watchdog, seed=seed):
            results.append(result)
            reporter.result(result)
        report = build_report(results, preset=preset, seed=seed, statements=coverage)
        reporter.finish(report)
    if quiet:
        for failure in report.failures:
            typer.echo(f"{failure.name}: {failure.text}\n")
        typer.echo(verdict(report.overall))
    return results, report


def _replaying(
    cassettes: Cassettes, pairs: Sequence[tuple[Scenario, Profile]], run: Runner, *, every_profile: bool
) -> tuple[Runner, tuple[tuple[Scenario, Profile], ...]]:
    """Return how to run a scenario on its cassette, and which of `pairs` that is; all must be recorded."""
    from statek_sim.suite.recorded import replayed, usual_profile

    recorded = tuple(
        (scenario, profile)
        for scenario, profile in pairs
        if every_profile or profile == usual_profile(scenario)
    )
    for scenario, _ in recorded:
        cassettes.found(scenario)

    def replay(scenario: Scenario, profile: Profile, *, exchanges: Exchanges | None = None) -> ScenarioResult:
        assert exchanges is None, "the cassette has them"
        return replayed(scenario, profile, cassettes, run)

    return replay, recorded


def _installed(
    stack: ExitStack,
    pairs: Sequence[tuple[Scenario, Profile]],
    *,
    preset: str | None,
    seed: int | None,
) -> tuple[Runner, tuple[tuple[Scenario, Profile], ...]]:
    """Start the installed package; return how to run a scenario on it, and which of `pairs` hold for it."""
    from statek_sim.backends.installed.peer import Peer, profile_of_peer
    from statek_sim.suite.installed import run_one_installed
    from statek_sim.suite.run import located_preset

    peer = stack.enter_context(Peer(sys.executable))
    own = profile_of_peer(peer)
    chosen = tuple((scenario, profile) for scenario, profile in pairs if profile == own)
    if not chosen:
        raise BadInput(
            f"no scenario to run: statek {peer.version} follows profile {own}, "
            "and no scenario that was asked for holds for it"
        )
    located = None if preset is None else located_preset(preset)
    return partial(run_one_installed, peer, preset=located, seed=seed), chosen


def _write(
    results: Sequence[ScenarioResult],
    report: Report,
    *,
    json_file: Path | None,
    html: Path | None,
    folder: Path | None,
) -> None:
    """Write the reports that were asked for."""
    from statek_sim.reporting.json import write_json
    from statek_sim.reporting.markdown import write_markdown
    from statek_sim.reporting.page.data import page_data
    from statek_sim.reporting.page.template import write_page

    if json_file is not None:
        write_json(report, json_file)
    pages = [path for path in (html, folder and folder / "report.html") if path is not None]
    if folder is not None:
        write_json(report, folder / "report.json")
        write_markdown(report, folder / "report.md")
    if pages:
        page = page_data(results, report)
        for path in pages:
            write_page(page, path)


def _accept(results: Sequence[ScenarioResult]) -> bool:
    """Rewrite expectations, print the diff, and return whether something was left to a person."""
    from statek_sim.reporting.numbers import plural
    from statek_sim.scenario.problem import dotted
    from statek_sim.suite.accept import accept

    accepted = accept(results)
    typer.echo(accepted.diff, nl=False)
    typer.echo(f"{plural(len(accepted.changes), 'expectation')} written")
    for result, mismatch in accepted.left:
        typer.echo(f"left to you: {result.id} {dotted(mismatch.keypath)}", err=True)
    return bool(accepted.left)
