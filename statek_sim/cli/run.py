"""`statek-sim run`: run scenarios and check their expectations."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Protocol

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_outputs, check_required, loaded, show, write_outputs
from statek_sim.cli.options import flag, option
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
    from statek_sim.suite.watched import Pair


ReportOption = Annotated[
    Path | None, option("DIR", "Write report.json, report.md and report.html to this folder.")
]
GateOption = Annotated[
    list[str] | None,
    option(
        "PRESET",
        "Also check this preset with the scenarios in PATH, like `statek-sim gate`. Can be repeated.",
    ),
]
PolicyOption = Annotated[Path | None, option("FILE", "With --gate: the policy (a TOML file).")]
ExploreOption = Annotated[
    bool, flag("With --html: show the effect of a crash at each event in the scenarios.", "--explore")
]
AcceptOption = Annotated[
    bool,
    flag(
        "Replace failed expectations with the actual values, add expectations to scenarios without any, and show the "
        "diff.",
        "--accept",
    ),
]
CassettesOption = Annotated[
    Path | None,
    option(
        "DIR",
        "Replay cassettes recorded with `statek-sim cassette record` instead of playing the scripts. The default "
        "profile is the one that was recorded.",
    ),
]
ProviderOption = Annotated[str | None, option("NAME", "With --cassettes: the provider that was recorded.")]
ModelOption = Annotated[str | None, option("NAME", "With --cassettes: the model that was recorded.")]
StoreOption = Annotated[
    str | None,
    option(
        "ADDRESS",
        "Save runs to this store (sqlite:PATH, files:FOLDER or postgresql://...), and resume interrupted runs from it; "
        "see `statek-sim jobs`.",
    ),
]
REPORTS: Final = ("report.json", "report.md", "report.html")
"""The files that `--report` writes."""

QuietOption = Annotated[bool, flag("Print failures and the verdict only.", "--quiet", "-q")]


@app.command()
def run(
    paths: options.Paths = None,
    profile: options.ProfileOption = None,
    preset: options.PresetOption = None,
    seed: options.SeedOption = None,
    select: options.SelectOption = None,
    tag: options.TagOption = None,
    json_file: options.JsonFileOption = None,
    html: options.HtmlOption = None,
    report: ReportOption = None,
    gate: GateOption = None,
    policy: PolicyOption = None,
    explore: ExploreOption = False,
    accept: AcceptOption = False,
    backend: options.BackendOption = options.Backend.REFERENCE,
    cassettes: CassettesOption = None,
    provider: ProviderOption = None,
    model: ModelOption = None,
    secret_name: options.SecretNameOption = None,
    secret_pattern: options.SecretPatternOption = None,
    watchdog: options.WatchdogOption = options.WATCHDOG,
    store: StoreOption = None,
    quiet: QuietOption = False,
) -> None:
    """Run scenarios and check their expectations.

    Exits 1 if a scenario or a --gate preset fails; reports are written in any case.

    Example: statek-sim run tests/scenarios --html report.html
    """
    folders = {} if report is None else {name: report / name for name in REPORTS}
    pages = [path for path in (html, folders.get("report.html")) if path is not None]
    secrets = secret_name or secret_pattern
    of_cassettes = {
        "--provider and --model": provider or model,
        "--secret-name and --secret-pattern": secrets,
    }
    check_required(of_cassettes, cassettes, "--cassettes DIR")
    check_required({"--explore": explore}, pages, "--html FILE")
    check_required({"--policy": policy}, gate, "--gate PRESET")
    if accept:
        _check_accept(paths, backend, cassettes, preset=preset, seed=seed)
    if store is not None:
        _check_store(store, backend, cassettes)
    if report is not None and report.exists() and not report.is_dir():
        raise BadInput(f"--report {report}: expected a folder, found a file")
    inside = {f"--report ({name})": path for name, path in folders.items()}
    check_outputs({"--json": json_file, "--html": html, **inside})
    from statek_sim.suite.run import chosen_or_fail

    limits = _limits(watchdog, backend)
    pairs = chosen_or_fail(loaded(paths), profiles=profile, select=select, tags=tag or ())
    with ExitStack() as stack:
        runner = _runner(store, preset=preset, seed=seed)
        if backend is options.Backend.INSTALLED:
            runner, pairs = installed(stack, pairs, preset=preset, seed=seed)
        if cassettes is not None:
            recordings = _recordings(cassettes, provider, model, secret_name or (), secret_pattern or ())
            every = profile is not None or backend is options.Backend.INSTALLED
            runner, pairs = replaying(recordings, pairs, runner, every_profile=every)
        judged = _judged(gate, policy, paths or (), profile, limits) if gate else None
        crashes = _crashes(pairs, profile) if explore else None
        results, summary = _run(pairs, runner, preset=preset, seed=seed, quiet=quiet, watchdog=limits)
    if judged is not None:
        _show_gate(judged)
    if json_file is not None or pages:
        documents = [json_file, folders.get("report.json")]
        _write(results, summary, documents, folders.get("report.md"), pages, judged, crashes)
    failed = _accept(results) if accept else summary.overall.failed > 0
    if failed or (judged is not None and not judged.passed):
        raise typer.Exit(1)


def _check_accept(
    paths: Sequence[Path] | None,
    backend: options.Backend,
    cassettes: Path | None,
    *,
    preset: str | None,
    seed: int | None,
) -> None:
    """Reject `--accept` in combination with options that change how the files' scripts run."""
    if backend is not options.Backend.REFERENCE:
        raise BadInput(
            "--accept: remove --backend; expectations are written only from runs on the reference runtime"
        )
    if preset is not None or seed is not None or not paths:
        raise BadInput("--accept: pass the files to rewrite, and remove --preset and --seed")
    if cassettes is not None:
        raise BadInput("--accept: remove --cassettes; expectations apply to the scripts")


def _check_store(store: str, backend: options.Backend, cassettes: Path | None) -> None:
    """Reject options that cannot be combined with a store, and a store that cannot be opened."""
    from statek_sim.store.open import open_store
    from statek_sim.store.worker import real_seconds

    if backend is not options.Backend.REFERENCE:
        raise BadInput("--store: remove --backend; only reference-runtime runs can be stored")
    if cassettes is not None:
        raise BadInput("--store: remove --cassettes; recordings cannot be stored")
    open_store(store, clock=real_seconds).close()


def _limits(watchdog: str, backend: options.Backend) -> WatchdogLimits | None:
    """Return the watchdog's limits for one run; None for the installed package, whose process has its own."""
    from statek_sim.executors.limits import parse_watchdog

    limits = parse_watchdog(watchdog)
    return None if backend is options.Backend.INSTALLED else limits


def _run(
    pairs: Sequence[Pair],
    runner: Runner,
    *,
    preset: str | None,
    seed: int | None,
    quiet: bool,
    watchdog: WatchdogLimits | None,
) -> tuple[list[ScenarioResult], Report]:
    """Run the scenarios, print the report, and return the results and the report."""
    from rich.console import Console

    from statek_sim.reporting.model import build_report
    from statek_sim.reporting.report_text import RunProgress, report_lines
    from statek_sim.suite.result import Outcome
    from statek_sim.suite.watched import run_watched

    results: list[ScenarioResult] = []
    failed = 0
    with RunProgress(Console(quiet=quiet), len(pairs)) as progress:
        for result in run_watched(pairs, runner, watchdog, seed=seed):
            results.append(result)
            failed += result.outcome is Outcome.FAILED
            progress.advance(f"{failed} failed" if failed else "", result.id)
    report = build_report(results, preset=preset, seed=seed)
    show(lambda width: report_lines(report, results, width=width, quiet=quiet))
    return results, report


def _accept(results: Sequence[ScenarioResult]) -> bool:
    """Rewrite expectations, print the diff, and return whether any could not be rewritten."""
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
    """Runs a scenario under a profile, using its script or recorded HTTP exchanges."""

    def __call__(
        self, scenario: Scenario, profile: Profile, *, exchanges: Exchanges | None = None
    ) -> ScenarioResult:
        """Run the scenario and return the result."""


def _runner(store: str | None, *, preset: str | None, seed: int | None) -> Runner:
    """Return a runner for the reference runtime; with a store, it saves runs there and resumes them."""
    from statek_sim.suite.run import run_one

    if store is None:
        return partial(run_one, preset=preset, seed=seed)
    from statek_sim.suite.stored import run_stored

    return partial(run_stored, address=store, preset=preset, seed=seed)


def _recordings(
    folder: Path, provider: str | None, model: str | None, names: Sequence[str], patterns: Sequence[str]
) -> Cassettes:
    """Return the cassettes to replay in place of the scripts."""
    from statek_sim.cassettes.secret_patterns import OwnSecrets
    from statek_sim.suite.recorded import Cassettes

    return Cassettes(folder, provider, model, OwnSecrets.of(names, patterns))


def replaying(
    cassettes: Cassettes, pairs: Sequence[Pair], run: Runner, *, every_profile: bool
) -> tuple[Runner, tuple[Pair, ...]]:
    """Return a runner that replays cassettes, and the `pairs` to run; raises `BadInput` if a pair was not recorded."""
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
    pairs: Sequence[Pair],
    *,
    preset: str | None,
    seed: int | None,
) -> tuple[Runner, tuple[Pair, ...]]:
    """Start the installed package's process; return its runner, and the `pairs` with the package's profile."""
    from statek_sim.backends.installed.peer import Peer, profile_of_peer
    from statek_sim.harness.preset import located_preset
    from statek_sim.suite.installed import run_one_installed

    peer = stack.enter_context(Peer(sys.executable))
    own = profile_of_peer(peer)
    chosen = tuple((scenario, profile) for scenario, profile in pairs if profile == own)
    if not chosen:
        raise BadInput(
            f"no scenario to run: statek {peer.version} follows profile {own}, "
            "which none of the chosen scenarios lists"
        )
    located = None if preset is None else located_preset(preset)
    return partial(run_one_installed, peer, preset=located, seed=seed), chosen


def _judged(
    presets: Sequence[str],
    policy: Path | None,
    paths: Sequence[Path],
    profiles: Sequence[str] | None,
    watchdog: WatchdogLimits | None,
) -> GateResult:
    """Check presets as `gate` does, with the scenarios at `paths` or, without paths, the built-in workloads."""
    from statek_sim.gate.gate import gate_plan, has_shipped, judge_presets, workloads
    from statek_sim.suite.run import profile_known

    places = list(map(str, paths))
    plan = gate_plan(presets, policy=policy, folder=Path.cwd(), on_shipped=has_shipped(places))
    profile = profile_known(profiles[0] if profiles else "docs")
    return judge_presets(plan, workloads(places), profile=profile, watchdog=watchdog)


def _show_gate(judged: GateResult) -> None:
    from statek_sim.reporting.gate import gate_lines

    show(lambda width: gate_lines(judged, width=width))


def _crashes(pairs: Sequence[Pair], profiles: Sequence[str] | None) -> Exploration:
    """Kill the worker at each event in each scenario. If `profiles` is empty, use each scenario's first profile."""
    from statek_sim.executors.by_name import executor_for
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.explorer import Bounds
    from statek_sim.explore.result import Exploration
    from statek_sim.explore.workers import explore_all

    first: dict[str, Pair] = {}
    for scenario, profile in pairs:
        first.setdefault(f"{scenario.id} {profile if profiles else ''}", (scenario, profile))
    bounds = Bounds(kinds=("crashes",), transcripts=True)
    limits = WatchdogLimits(cpu=600, wall=1200)
    with executor_for(None) as executor:
        found = explore_all([*first.values()], bounds=bounds, limits=limits, executor=executor)
        return Exploration(tuple(found))


def _write(
    results: Sequence[ScenarioResult],
    report: Report,
    documents: Sequence[Path | None],
    markdown: Path | None,
    pages: Sequence[Path],
    judged: GateResult | None,
    crashes: Exploration | None,
) -> None:
    """Write the requested reports."""
    from statek_sim.reporting.gate import gate_json
    from statek_sim.reporting.model import report_json
    from statek_sim.reporting.page.data import crashes_json, page_data, render
    from statek_sim.reporting.report_text import markdown_report

    def page() -> str:
        gate = None if judged is None else gate_json(judged)
        crash_map = None if crashes is None else crashes_json(crashes)
        return render(page_data(results, report, gate=gate, crashes=crash_map))

    text = page() if pages else ""
    write_outputs(
        *((path, lambda: report_json(report)) for path in documents),
        (markdown, lambda: markdown_report(report)),
        *((path, lambda: text) for path in pages),
    )
