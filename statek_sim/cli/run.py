"""`statek-sim run`: run scenarios and compare what happens with what they expect."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
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
from statek_sim.cli.inputs import check_outputs, check_writable, loaded, proven, say
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.backends.exchanges import Exchanges
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.reporting.model import Report
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.scenario.statements import Coverage
    from statek_sim.suite.recorded import Cassettes
    from statek_sim.suite.result import ScenarioResult


@dataclass(frozen=True, slots=True)
class _Recordings:
    """What is replayed instead of scripts: a folder of cassettes, and which of them."""

    folder: Path | None
    provider: str | None
    model: str | None
    secret_names: Sequence[str]
    secret_patterns: Sequence[str]

    def check(self) -> None:
        """Refuse options about recordings where there are none."""
        if self.folder is not None:
            return
        if self.provider is not None or self.model is not None:
            raise BadInput("--provider and --model: they choose among recordings; say --cassettes DIR too")
        if self.secret_names or self.secret_patterns:
            raise BadInput(
                "--secret-name and --secret-pattern: they are about recordings; say --cassettes DIR too"
            )

    def opened(self) -> Cassettes | None:
        """Return the cassettes, None when scripts are played."""
        if self.folder is None:
            return None
        from statek_sim.cassettes.own_secrets import OwnSecrets
        from statek_sim.suite.recorded import Cassettes

        own = OwnSecrets.of(self.secret_names, self.secret_patterns)
        return Cassettes(self.folder, self.provider, self.model, own)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outputs:
    """Where the reports go that were asked for."""

    json_file: Path | None
    html: Path | None
    folder: Path | None

    def check(self) -> None:
        """Refuse what could not be written after everything has run."""
        check_writable(json_file=None, folder=self.folder)
        check_outputs({"--json": self.json_file, "--html": self.html, **self._in_folder()})

    def _in_folder(self) -> dict[str, Path | None]:
        if self.folder is None:
            return {}
        return {"--report": self.folder / "report.json", "--report (page)": self.folder / "report.html"}

    def write(self, results: Sequence[ScenarioResult], report: Report) -> None:
        """Write them."""
        folder = self.folder
        files = [path for path in (self.json_file, folder and folder / "report.json") if path is not None]
        if files:
            from statek_sim.reporting.json import write_json

            for path in files:
                write_json(report, path)
        if folder is not None:
            from statek_sim.reporting.markdown import write_markdown

            write_markdown(report, folder / "report.md")
        pages = [path for path in (self.html, folder and folder / "report.html") if path is not None]
        if pages:
            from statek_sim.reporting.page.data import page_data
            from statek_sim.reporting.page.template import write_page

            page = page_data(results, report)
            for path in pages:
                write_page(page, path)


class Runner(Protocol):
    """Runs one scenario under one profile, on its script or on HTTP exchanges."""

    def __call__(
        self, scenario: Scenario, profile: Profile, *, exchanges: Exchanges | None = None
    ) -> ScenarioResult:
        """Return what came of it."""


JsonFileOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON to this file.")
]
HtmlOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page to this file.")
]
ReportOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write report.json, report.md and report.html into this folder."),
]
AcceptOption = Annotated[
    bool,
    typer.Option(
        "--accept",
        help="Rewrite expectations that do not hold with what happened, begin those of scenarios that have none, "
        "and show the diff.",
    ),
]
CassettesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Replay what `statek-sim record` recorded, instead of the scripts. Without --profile under the "
        "profile it records under.",
    ),
]
ProviderOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="With --cassettes: the provider that was recorded.")
]
ModelOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="With --cassettes: the model it was recorded with.")
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Keep the runs in this store (sqlite:PATH, files:FOLDER or postgresql://...) and resume those it has: see "
        "`statek-sim jobs`.",
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
    """Run scenarios and compare what happens with what they expect."""
    recordings = _Recordings(cassettes, provider, model, secret_name or (), secret_pattern or ())
    outputs = _Outputs(json_file=json_file, html=html, folder=report)
    recordings.check()
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
    coverage = None if paths else proven(scenarios)[1]
    every_profile = profile is not None or backend is Backend.INSTALLED
    with ExitStack() as stack:
        runner = None if store is None else _on_store(store, preset=preset, seed=seed)
        if backend is Backend.INSTALLED:
            runner, pairs = _installed(stack, pairs, preset=preset, seed=seed)
        if replayed is not None:
            runner = runner or _own_runner(preset=preset, seed=seed)
            runner, pairs = _replaying(replayed, pairs, runner, every_profile=every_profile)
        results, summary = _run(
            pairs,
            preset=preset,
            seed=seed,
            coverage=coverage,
            quiet=quiet,
            runner=runner,
            watchdog=limits,
        )
    outputs.write(results, summary)
    failed = _accept(results) if accept else summary.overall.failed > 0
    if failed:
        raise typer.Exit(1)


def _check_accept(
    paths: Sequence[Path] | None,
    backend: Backend,
    recordings: _Recordings,
    *,
    preset: str | None,
    seed: int | None,
) -> None:
    """Refuse `--accept` where expectations would come from something else than the files' own scripts."""
    if backend is not Backend.REFERENCE:
        raise BadInput("--accept: expectations are written by the reference runtime; leave --backend out")
    if preset is not None or seed is not None or not paths:
        raise BadInput("--accept: name the files to rewrite, and leave --preset and --seed to the scenarios")
    if recordings.folder is not None:
        raise BadInput("--accept: expectations belong to the scripts; leave --cassettes out")


def _check_store(store: str, backend: Backend, recordings: _Recordings) -> None:
    """Refuse what a store does not keep, and a store that cannot be opened."""
    from statek_sim.store.open import open_store
    from statek_sim.store.worker import real_seconds

    if backend is not Backend.REFERENCE:
        raise BadInput("--store: it keeps runs of the reference runtime; leave --backend out")
    if recordings.folder is not None:
        raise BadInput("--store: recordings are not kept in a store; leave --cassettes out")
    open_store(store, clock=real_seconds).close()


def _limits(watchdog: str, backend: Backend) -> WatchdogLimits | None:
    """Return what one run may use. The installed package runs in a process of its own, with a watchdog of its own."""
    from statek_sim.executors.limits import parse_watchdog

    limits = parse_watchdog(watchdog)
    return None if backend is Backend.INSTALLED else limits


def _on_store(store: str, *, preset: str | None, seed: int | None) -> Runner:
    from statek_sim.suite.stored import StoredRunner

    return StoredRunner(address=store, preset=preset, seed=seed)


def _own_runner(*, preset: str | None, seed: int | None) -> Runner:
    from statek_sim.suite.run import run_one

    return partial(run_one, preset=preset, seed=seed)


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
    from statek_sim.reporting.wording import unchecked, under_a_preset, verdict
    from statek_sim.suite.watched import run_watched

    run = runner or _own_runner(preset=preset, seed=seed)
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
        say([verdict(report.overall), *filter(None, [unchecked(report), under_a_preset(report)])])
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


def _accept(results: Sequence[ScenarioResult]) -> bool:
    """Rewrite expectations, print the diff, and return whether something was left to a person."""
    from statek_sim.reporting.numbers import plural
    from statek_sim.suite.accept import accept
    from statek_sim.suite.diff import describe

    accepted = accept(results)
    typer.echo(accepted.diff, nl=False)
    typer.echo(f"{plural(len(accepted.changes), 'expectation')} written")
    for result, mismatch in accepted.left:
        typer.echo(f"left to you: {result.id}: {describe(result, mismatch)[0]}", err=True)
    return bool(accepted.left)
