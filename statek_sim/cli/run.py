"""`statek-sim run`: run scenarios and check their expectations."""
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
from statek_sim.cli.inputs import check_outputs, loaded, show, write_outputs
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.result import Exploration
    from statek_sim.gate.verdict import GateResult
    from statek_sim.providers.http_provider import Exchanges
    from statek_sim.reporting.model import Report
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.suite.recorded import Cassettes
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
    from statek_sim.suite.run import chosen_or_fail

    limits = _limits(watchdog, backend)
    replayed = recordings.opened()
    pairs = chosen_or_fail(loaded(paths), profiles=profile, select=select, tags=tag or ())
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


class Runner(Protocol):
    """Runs one scenario under one profile, on its script or on HTTP exchanges."""

    def __call__(
        self, scenario: Scenario, profile: Profile, *, exchanges: Exchanges | None = None
    ) -> ScenarioResult:
        """Return the result."""


@dataclass(frozen=True, slots=True)
class Recordings:
    """The cassettes to replay instead of scripts."""

    folder: Path | None
    provider: str | None
    model: str | None
    secret_names: Sequence[str]
    secret_patterns: Sequence[str]

    def check(self) -> None:
        """Refuse options about cassettes without `--cassettes`."""
        if self.folder is not None:
            return
        if self.provider is not None or self.model is not None:
            raise BadInput("--provider and --model require --cassettes DIR")
        if self.secret_names or self.secret_patterns:
            raise BadInput("--secret-name and --secret-pattern require --cassettes DIR")

    def opened(self) -> Cassettes | None:
        """Return the cassettes; None to play scripts."""
        if self.folder is None:
            return None
        from statek_sim.cassettes.secret_rules import OwnSecrets
        from statek_sim.suite.recorded import Cassettes

        own = OwnSecrets.of(self.secret_names, self.secret_patterns)
        return Cassettes(self.folder, self.provider, self.model, own)


def on_store(store: str, *, preset: str | None, seed: int | None) -> Runner:
    """Return a runner that keeps runs in a store and resumes the runs in it."""
    from statek_sim.suite.stored import StoredRunner

    return StoredRunner(address=store, preset=preset, seed=seed)


def own_runner(*, preset: str | None, seed: int | None) -> Runner:
    """Return the reference runtime."""
    from statek_sim.suite.run import run_one

    return partial(run_one, preset=preset, seed=seed)


def replaying(
    cassettes: Cassettes, pairs: Sequence[tuple[Scenario, Profile]], run: Runner, *, every_profile: bool
) -> tuple[Runner, tuple[tuple[Scenario, Profile], ...]]:
    """Return a runner on cassettes, and the `pairs` to run; all must be recorded."""
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


def installed(
    stack: ExitStack,
    pairs: Sequence[tuple[Scenario, Profile]],
    *,
    preset: str | None,
    seed: int | None,
) -> tuple[Runner, tuple[tuple[Scenario, Profile], ...]]:
    """Start the installed package; return a runner on it, and the `pairs` of its profile."""
    from statek_sim.backends.installed.peer import Peer, profile_of_peer
    from statek_sim.harness.preset import located_preset
    from statek_sim.suite.installed import run_one_installed

    peer = stack.enter_context(Peer(sys.executable))
    own = profile_of_peer(peer)
    chosen = tuple((scenario, profile) for scenario, profile in pairs if profile == own)
    if not chosen:
        raise BadInput(
            f"no scenario to run: statek {peer.version} follows profile {own}, "
            "and none of the chosen scenarios has it"
        )
    located = None if preset is None else located_preset(preset)
    return partial(run_one_installed, peer, preset=located, seed=seed), chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Sections:
    """The optional sections of a page."""

    gate: GateResult | None = None
    crashes: Exploration | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedSections:
    """The sections that the command line requests; `policy` belongs to `gate`."""

    gate: Sequence[str]
    policy: Path | None
    crashes: bool

    def check(self, *, page: bool) -> None:
        """Refuse options that have no effect."""
        if self.crashes and not page:
            raise BadInput("--explore requires --html FILE")
        if self.policy is not None and not self.gate:
            raise BadInput("--policy requires --gate PRESET")

    def made(
        self,
        paths: Sequence[Path],
        pairs: Sequence[tuple[Scenario, Profile]],
        profiles: Sequence[str] | None,
        watchdog: WatchdogLimits | None,
    ) -> Sections:
        """Return the requested sections; the gate judges `paths`, or the shipped workloads without any."""
        return Sections(
            gate=self._judged(list(map(str, paths)), profiles, watchdog) if self.gate else None,
            crashes=_crashes(pairs, profiles) if self.crashes else None,
        )

    def _judged(
        self, paths: Sequence[str], profiles: Sequence[str] | None, watchdog: WatchdogLimits | None
    ) -> GateResult:
        """Judge the presets as `gate` does."""
        from statek_sim.gate.gate import gate_plan, has_shipped, judge_presets, workloads
        from statek_sim.suite.run import profile_known

        profile = profile_known(profiles[0] if profiles else "docs")
        plan = gate_plan(self.gate, policy=self.policy, folder=Path.cwd(), on_shipped=has_shipped(paths))
        return judge_presets(plan, workloads(paths), profile=profile, watchdog=watchdog)


def _crashes(pairs: Sequence[tuple[Scenario, Profile]], profiles: Sequence[str] | None) -> Exploration:
    """Crash at each event of each scenario, under its first profile unless profiles are given."""
    from statek_sim.executors.executor import executor_for
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.explorer import Bounds
    from statek_sim.explore.result import Exploration
    from statek_sim.explore.workers import explore_all

    first: dict[str, tuple[Scenario, Profile]] = {}
    for scenario, profile in pairs:
        first.setdefault(f"{scenario.id} {profile if profiles else ''}", (scenario, profile))
    bounds = Bounds(kinds=("crashes",), transcripts=True)
    limits = WatchdogLimits(cpu=600, wall=1200)
    with executor_for(None) as executor:
        found = explore_all([*first.values()], bounds=bounds, limits=limits, executor=executor)
        return Exploration(tuple(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The paths of the requested reports."""

    json_file: Path | None
    html: Path | None
    folder: Path | None

    @property
    def pages(self) -> list[Path]:
        """The pages."""
        return [path for path in (self.html, self.folder and self.folder / "report.html") if path is not None]

    def check(self) -> None:
        """Refuse, before anything runs, paths that cannot be written."""
        folder = self.folder
        if folder is not None and folder.exists() and not folder.is_dir():
            raise BadInput(f"--report {folder}: expected a folder, found a file")
        names = () if folder is None else ("report.json", "report.md", "report.html")
        inside = {f"--report ({name})": folder and folder / name for name in names}
        check_outputs({"--json": self.json_file, "--html": self.html, **inside})

    def write(self, results: Sequence[ScenarioResult], report: Report, sections: Sections) -> None:
        """Write them."""
        if self.json_file is None and self.html is None and self.folder is None:
            return
        from statek_sim.reporting.model import report_json
        from statek_sim.reporting.report_text import markdown_report

        folder = self.folder
        page = _page(results, report, sections) if self.pages else ""
        write_outputs(
            (self.json_file, lambda: report_json(report)),
            (folder and folder / "report.json", lambda: report_json(report)),
            (folder and folder / "report.md", lambda: markdown_report(report)),
            *((path, lambda: page) for path in self.pages),
        )


def _page(results: Sequence[ScenarioResult], report: Report, sections: Sections) -> str:
    from statek_sim.reporting.gate import gate_json
    from statek_sim.reporting.page.data import crashes_json, page_data
    from statek_sim.reporting.page.template import render

    page = page_data(
        results,
        report,
        gate=None if sections.gate is None else gate_json(sections.gate),
        crashes=None if sections.crashes is None else crashes_json(sections.crashes),
    )
    return render(page)
