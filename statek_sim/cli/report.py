"""`statek-sim report`: run scenarios and write one page about them."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import (
    WATCHDOG,
    ExecutorOption,
    Paths,
    PresetOption,
    ProfileOption,
    SeedOption,
    SelectOption,
    TagOption,
    WatchdogOption,
    app,
)
from statek_sim.cli.inputs import check_writable, loaded
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.analysis.corpus.table import CorpusTable
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.result import Exploration
    from statek_sim.gate.verdict import GateResult
    from statek_sim.reporting.model import Report
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.suite.result import ScenarioResult


OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the page goes.")]
CorpusOption = Annotated[
    bool,
    typer.Option(
        "--corpus/--no-corpus",
        help="Show how far the estimate is off by language and kind of text, too; takes a few seconds.",
    ),
]
GateOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PRESET", help="Show the gate's verdicts on this preset, too (repeatable); see `gate`."
    ),
]
PolicyOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="With --gate: what is demanded, as TOML.")
]
WorkloadOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="With --gate: scenario files or folders that it is about (repeatable); `built-in`, as without it: the "
        "shipped workloads.",
    ),
]
ExploreOption = Annotated[
    bool,
    typer.Option(
        "--explore",
        help="Show what a kill does at every place of the scenarios, too; see `explore --kind crashes`.",
    ),
]


@app.command()
def report(
    paths: Paths = None,
    output: OutputOption = Path("report.html"),
    profile: ProfileOption = None,
    preset: PresetOption = None,
    seed: SeedOption = None,
    select: SelectOption = None,
    tag: TagOption = None,
    watchdog: WatchdogOption = WATCHDOG,
    corpus: CorpusOption = True,
    gate: GateOption = None,
    policy: PolicyOption = None,
    workload: WorkloadOption = None,
    explore: ExploreOption = False,
    executor: ExecutorOption = None,
) -> None:
    """Run scenarios and write one page about them.

    One HTML file that needs no other and asks no server for anything. Exits 1 when a scenario or the gate fails; the
    page is written all the same.
    """
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.reporting.model import build_report
    from statek_sim.reporting.wording import verdict
    from statek_sim.suite.run import profile_known, run_one
    from statek_sim.suite.watched import run_watched

    if policy is not None and not gate:
        raise BadInput("--policy: it says what the gate demands; name a preset with --gate")
    if workload and not gate:
        raise BadInput("--workload: it says what --gate is about; scenarios to run are named without it")
    check_writable(json_file=output, folder=None)
    pairs = _chosen(paths, profile, select, tag or ())
    judging = profile_known(profile[0] if profile else "docs")
    limits = parse_watchdog(watchdog)
    gated = _gate(gate, policy, workload or (), judging, limits) if gate else None
    crashes = _crashes(pairs, profile, executor) if explore else None
    results = list(run_watched(pairs, partial(run_one, preset=preset, seed=seed), limits, seed=seed))
    report = build_report(results, preset=preset, seed=seed, statements=None)
    _write(
        output,
        results,
        report,
        corpus=_corpus() if corpus else None,
        gate=gated,
        crashes=crashes,
    )
    typer.echo(f"{output}: {verdict(report.overall)}")
    if report.overall.failed or (gated is not None and not gated.passed):
        raise typer.Exit(1)


def _chosen(
    paths: Sequence[Path] | None, profiles: Sequence[str] | None, select: str | None, tags: Sequence[str]
) -> tuple[tuple[Scenario, Profile], ...]:
    from statek_sim.suite.run import chosen, nothing_chosen

    scenarios = loaded(paths)
    pairs = chosen(scenarios, profiles=profiles or None, select=select, tags=tags)
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, profiles=profiles, select=select, tags=tags))
    return pairs


def _write(
    output: Path,
    results: Sequence[ScenarioResult],
    report: Report,
    *,
    corpus: CorpusTable | None,
    gate: GateResult | None,
    crashes: Exploration | None,
) -> None:
    from statek_sim.reporting.gate_json import gate_json
    from statek_sim.reporting.page.crashes import crashes_json
    from statek_sim.reporting.page.data import page_data
    from statek_sim.reporting.page.template import write_page

    page = page_data(
        results,
        report,
        corpus=corpus,
        gate=None if gate is None else gate_json(gate),
        crashes=None if crashes is None else crashes_json(crashes),
    )
    write_page(page, output)


def _crashes(
    pairs: Sequence[tuple[Scenario, Profile]], profiles: Sequence[str] | None, executor: str | None
) -> Exploration:
    """Kill the worker at every place of each scenario, under its first profile where none was asked for."""
    from statek_sim.executors.choose import executor_for
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.explorer import Bounds
    from statek_sim.explore.result import Exploration
    from statek_sim.explore.running import explore_all

    first: dict[str, tuple[Scenario, Profile]] = {}
    for scenario, profile in pairs:
        first.setdefault(f"{scenario.id} {profile if profiles else ''}", (scenario, profile))
    bounds = Bounds(kinds=("crashes",), transcripts=True)
    with executor_for(executor) as runs_it:
        found = explore_all(
            [*first.values()], bounds=bounds, limits=WatchdogLimits(cpu=600, wall=1200), executor=runs_it
        )
        return Exploration(tuple(found))


def _corpus() -> CorpusTable:
    """Run the corpus."""
    from statek_sim.analysis.corpus.scenarios import corpus_scenarios
    from statek_sim.analysis.corpus.table import corpus_table
    from statek_sim.analysis.run_usage import analyse
    from statek_sim.suite.run import run_one

    return corpus_table(analyse(run_one(scenario, "docs") for scenario in corpus_scenarios()))


def _gate(
    presets: Sequence[str],
    policy: Path | None,
    paths: Sequence[str],
    profile: Profile,
    watchdog: WatchdogLimits | None,
) -> GateResult:
    """Judge presets as `gate` does."""
    from statek_sim.gate.gate import gate_plan, has_shipped, judge_presets, workloads

    plan = gate_plan(presets, policy=policy, folder=Path.cwd(), on_shipped=has_shipped(paths))
    return judge_presets(plan, workloads(paths), profile=profile, watchdog=watchdog)
