"""`statek-sim run`: run scenarios and check their expectations."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import (
    WATCHDOG,
    Backend,
    BackendOption,
    HtmlOption,
    JsonFileOption,
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
from statek_sim.cli.inputs import loaded, show
from statek_sim.cli.run_reports import Outputs, WantedSections
from statek_sim.cli.runners import Recordings, Runner, installed, on_store, own_runner, replaying
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.reporting.model import Report
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.suite.result import ScenarioResult


ReportOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write report.json, report.md and report.html into this folder."),
]
GateOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PRESET", help="Also judge this preset on PATH, as `statek-sim gate` does (repeatable)."
    ),
]
PolicyOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With --gate: the requirements, as TOML.")
]
ExploreOption = Annotated[
    bool,
    typer.Option("--explore", help="With --html: show the effect of a crash at each event of the scenarios."),
]
AcceptOption = Annotated[
    bool,
    typer.Option(
        "--accept",
        help="Replace failed expectations by the actual values, add expectations to scenarios that have none, and show "
        "the diff.",
    ),
]
CassettesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Replay cassettes of `statek-sim cassette record` instead of the scripts. Default profile: that of the "
        "recording.",
    ),
]
ProviderOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="With --cassettes: the recorded provider.")
]
ModelOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="With --cassettes: the recorded model.")
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Keep the runs in this store (sqlite:PATH, files:FOLDER or postgresql://...) and resume the runs in it; "
        "see `statek-sim jobs`.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print failures and the verdict only.")]


@app.command()
def run(
    paths: Paths = None,
    profile: ProfileOption = None,
    preset: PresetOption = None,
    seed: SeedOption = None,
    select: SelectOption = None,
    tag: TagOption = None,
    json_file: JsonFileOption = None,
    html: HtmlOption = None,
    report: ReportOption = None,
    gate: GateOption = None,
    policy: PolicyOption = None,
    explore: ExploreOption = False,
    accept: AcceptOption = False,
    backend: BackendOption = Backend.REFERENCE,
    cassettes: CassettesOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
    secret_name: SecretNameOption = None,
    secret_pattern: SecretPatternOption = None,
    watchdog: WatchdogOption = WATCHDOG,
    store: StoreOption = None,
    quiet: QuietOption = False,
) -> None:
    """Run scenarios and check their expectations.

    Exits 1 when a scenario or a preset of --gate fails; reports are written even then.

    Example: statek-sim run tests/scenarios --html report.html
    """
    recordings = Recordings(cassettes, provider, model, secret_name or (), secret_pattern or ())
    outputs = Outputs(json_file=json_file, html=html, folder=report)
    sections = WantedSections(gate=gate or (), policy=policy, crashes=explore)
    recordings.check()
    sections.check(page=bool(outputs.pages))
    if accept:
        _check_accept(paths, backend, recordings, preset=preset, seed=seed)
    if store is not None:
        _check_store(store, backend, recordings)
    outputs.check()
    from statek_sim.suite.run import chosen, nothing_chosen

    limits = _limits(watchdog, backend)
    replayed = recordings.opened()
    scenarios = loaded(paths)
    pairs = chosen(scenarios, profiles=profile or None, select=select, tags=tag or ())
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, profiles=profile, select=select, tags=tag or ()))
    every_profile = profile is not None or backend is Backend.INSTALLED
    with ExitStack() as stack:
        runner = None if store is None else on_store(store, preset=preset, seed=seed)
        if backend is Backend.INSTALLED:
            runner, pairs = installed(stack, pairs, preset=preset, seed=seed)
        if replayed is not None:
            runner = runner or own_runner(preset=preset, seed=seed)
            runner, pairs = replaying(replayed, pairs, runner, every_profile=every_profile)
        made = sections.made(paths or (), pairs, profile, limits)
        results, summary = _run(
            pairs,
            preset=preset,
            seed=seed,
            quiet=quiet,
            runner=runner,
            watchdog=limits,
        )
    if made.gate is not None:
        from statek_sim.reporting.gate import gate_lines

        judged = made.gate
        show(lambda width: gate_lines(judged, width=width))
    outputs.write(results, summary, made)
    failed = _accept(results) if accept else summary.overall.failed > 0
    if failed or (made.gate is not None and not made.gate.passed):
        raise typer.Exit(1)


def _check_accept(
    paths: Sequence[Path] | None,
    backend: Backend,
    recordings: Recordings,
    *,
    preset: str | None,
    seed: int | None,
) -> None:
    """Refuse `--accept` with options that change what the files' own scripts do."""
    if backend is not Backend.REFERENCE:
        raise BadInput("--accept: remove --backend; only the reference runtime writes expectations")
    if preset is not None or seed is not None or not paths:
        raise BadInput("--accept: name the files to rewrite, and remove --preset and --seed")
    if recordings.folder is not None:
        raise BadInput("--accept: remove --cassettes; expectations belong to the scripts")


def _check_store(store: str, backend: Backend, recordings: Recordings) -> None:
    """Refuse options that a store does not support, and a store that cannot be opened."""
    from statek_sim.store.open import open_store
    from statek_sim.store.worker import real_seconds

    if backend is not Backend.REFERENCE:
        raise BadInput("--store: remove --backend; a store keeps runs of the reference runtime")
    if recordings.folder is not None:
        raise BadInput("--store: remove --cassettes; a store does not keep recordings")
    open_store(store, clock=real_seconds).close()


def _limits(watchdog: str, backend: Backend) -> WatchdogLimits | None:
    """Return the limits of one run; None for the installed package, whose process has its own watchdog."""
    from statek_sim.executors.limits import parse_watchdog

    limits = parse_watchdog(watchdog)
    return None if backend is Backend.INSTALLED else limits


def _run(
    pairs: Sequence[tuple[Scenario, Profile]],
    *,
    preset: str | None,
    seed: int | None,
    quiet: bool,
    runner: Runner | None = None,
    watchdog: WatchdogLimits | None,
) -> tuple[list[ScenarioResult], Report]:
    """Run the scenarios and print the report."""
    from rich.console import Console

    from statek_sim.reporting.model import build_report
    from statek_sim.reporting.terminal import RunProgress, report_lines
    from statek_sim.suite.result import Outcome
    from statek_sim.suite.watched import run_watched

    run = runner or own_runner(preset=preset, seed=seed)
    results: list[ScenarioResult] = []
    failed = 0
    with RunProgress(Console(quiet=quiet), len(pairs)) as progress:
        for result in run_watched(pairs, run, watchdog, seed=seed):
            results.append(result)
            failed += result.outcome is Outcome.FAILED
            progress.advance(f"{failed} failed" if failed else "", result.id)
    report = build_report(results, preset=preset, seed=seed)
    show(lambda width: report_lines(report, results, width=width, quiet=quiet))
    return results, report


def _accept(results: Sequence[ScenarioResult]) -> bool:
    """Rewrite expectations, print the diff, and return whether some could not be rewritten."""
    from statek_sim.reporting.text_format import plural
    from statek_sim.suite.accept import accept
    from statek_sim.suite.diff import describe

    accepted = accept(results)
    typer.echo(accepted.diff, nl=False)
    typer.echo(f"{plural(len(accepted.changes), 'expectation')} written")
    for result, mismatch in accepted.left:
        typer.echo(f"not rewritten: {result.id}: {describe(result, mismatch)[0]}", err=True)
    return bool(accepted.left)
