"""`statek-sim explore`: run scenarios under crashes, reorderings, limits and faults."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_outputs, loaded, say, show, write_outputs
from statek_sim.cli.options import flag, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.executors.executor import Executor
    from statek_sim.executors.limits import WatchdogLimits
    from statek_sim.explore.explorer import Bounds
    from statek_sim.explore.result import Exploration, Explored
    from statek_sim.explore.workers import Pair
    from statek_sim.scenario.schema import Scenario


class Kind(StrEnum):
    """A kind of deviation."""

    CRASHES = "crashes"
    ORDERS = "orders"
    LIMITS = "limits"
    FAULTS = "faults"
    MOVES = "moves"
    COMMITS = "commits"


DepthOption = Annotated[
    int,
    option(
        "N",
        "Number of deviations per run, 1 or 2; with 2, for example, a second crash during recovery.",
        min=1,
    ),
]
KindOption = Annotated[
    list[Kind] | None,
    option(
        "KIND",
        "Try only this kind of deviation: crashes, orders, limits, faults, moves (an event happens at another time) or "
        "commits (a commit is lost). Can be repeated.",
        "--kind",
    ),
]
OrdersOption = Annotated[int, option("N", "The maximum number of orderings to try per scenario.", min=1)]
PairsOption = Annotated[int, option("N", "The maximum number of deviation pairs to try per scenario.", min=1)]
InvariantOption = Annotated[
    list[str] | None,
    option(
        "MODULE:NAME",
        "Also check your own invariant: a callable that takes a variation and returns None, or a string that describes "
        "the problem. Can be repeated.",
        "--invariant",
    ),
]
SaveOption = Annotated[
    Path | None, option("DIR", "Write a scenario file for each failure to this folder.", "--save")
]
ReplayOption = Annotated[
    bool, flag("Replay the failures saved in PATH, and show FIXED or FAILED for each failure.", "--replay")
]
TokensOption = Annotated[
    int | None, option("N", "Fail if a single crash adds more than N measured tokens to a scenario.", min=0)
]
WatchdogLimitsOption = Annotated[
    str,
    option(
        "LIMITS|off",
        "Kill and fail a scenario whose runs exceed these limits in total: CPU time, wall time, memory.",
    ),
]
QuietOption = Annotated[bool, flag("Print failures and the verdict only.", "--quiet", "-q")]


@app.command()
def explore(
    paths: options.Paths = None,
    profile: options.ProfileOption = None,
    select: options.SelectOption = None,
    tag: options.TagOption = None,
    preset: options.PresetOption = None,
    kind: KindOption = None,
    depth: DepthOption = 1,
    orders: OrdersOption = 200,
    pairs: PairsOption = 2000,
    invariant: InvariantOption = None,
    save: SaveOption = None,
    replay: ReplayOption = False,
    json_file: options.JsonFileOption = None,
    markdown: options.MarkdownFileOption = None,
    max_crash_tokens: TokensOption = None,
    executor: options.ExecutorOption = None,
    watchdog: WatchdogLimitsOption = "cpu=600,wall=1200,memory=1024m",
    quiet: QuietOption = False,
) -> None:
    """Run scenarios under crashes, reorderings, limits and faults.

    Every run is checked against invariants. Exits 1 if an invariant is violated, or if recovery from a crash
    takes more tokens than --max-crash-tokens.

    Example: statek-sim explore tests/scenarios --kind crashes
    """
    if depth > 2:
        raise BadInput(f"--depth {depth}: expected 1 or 2")
    if replay:
        _replay(paths or ())
        return
    from statek_sim.executors.by_name import executor_for
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.explore.explorer import Bounds
    from statek_sim.explore.result import KINDS
    from statek_sim.reporting.exploration import (
        exploration_json,
        exploration_markdown,
        explore_lines,
    )

    check_outputs({"--json": json_file, "--markdown": markdown})
    started = time.monotonic()
    chosen = _under(preset, pairs_of(loaded(paths), profile, select, tag or ()))
    kinds = tuple(map(str, kind)) if kind else KINDS
    bounds = Bounds(kinds=kinds, depth=depth, orders=orders, pairs=pairs)
    with executor_for(executor) as runs_it:
        found, chosen = _explore(chosen, invariant or (), bounds, parse_watchdog(watchdog), runs_it)
    if save is not None:
        found = _saved(found, chosen, save)
    show(lambda _width: explore_lines(found, quiet=quiet))
    over = [] if max_crash_tokens is None else list(_over_budget(found.scenarios, max_crash_tokens))
    say(over)
    write_outputs(
        (json_file, lambda: exploration_json(found, time.monotonic() - started)),
        (markdown, lambda: exploration_markdown(found)),
    )
    if code := _exit_code(found, over):
        raise typer.Exit(code)


def _exit_code(found: Exploration, over: Sequence[str]) -> int:
    if found.failed or over:
        return 1
    if found.stopped:
        return 130
    return 2 if found.nothing else 0


def _under(preset: str | None, pairs: list[Pair]) -> list[Pair]:
    """Return the pairs with this preset set in every scenario; if None, scenarios keep their own presets."""
    from statek_sim.harness.preset import located_preset

    if preset is None:
        return pairs
    located = located_preset(preset)
    return [(scenario.model_copy(update={"preset": located}), profile) for scenario, profile in pairs]


def pairs_of(
    scenarios: Sequence[Scenario], profile: Sequence[str] | None, select: str | None, tags: Sequence[str]
) -> list[Pair]:
    """Return the runs to explore: each scenario under the requested profiles, or under its first profile."""
    from statek_sim.suite.run import chosen_or_fail

    every = chosen_or_fail(scenarios, profiles=profile, select=select, tags=tags)
    if profile:
        return list(every)
    first: dict[str, Pair] = {}
    for scenario, under in every:
        first.setdefault(scenario.id, (scenario, under))
    return list(first.values())


def _explore(
    pairs: Sequence[Pair],
    own: Sequence[str],
    bounds: Bounds,
    limits: WatchdogLimits | None,
    executor: Executor,
) -> tuple[Exploration, list[Pair]]:
    """Explore the pairs; return the results and their pairs, in order. After Ctrl-C, return only the finished pairs."""
    from rich.console import Console

    from statek_sim.explore.result import Exploration
    from statek_sim.explore.workers import explore_all
    from statek_sim.reporting.report_text import RunProgress
    from statek_sim.reporting.text_format import plural

    found: list[Explored] = []
    stopped = False
    runs = failures = 0
    with RunProgress(Console(), len(pairs)) as progress:
        try:
            for explored in explore_all(pairs, own=own, bounds=bounds, limits=limits, executor=executor):
                found.append(explored)
                runs += explored.runs
                failures += len(explored.failures)
                progress.advance(f"{runs:,} runs  {plural(failures, 'failure')}", explored.id)
        except KeyboardInterrupt:
            stopped = True
    return Exploration(tuple(found), stopped), list(pairs[: len(found)])


def _saved(found: Exploration, pairs: Sequence[Pair], folder: Path) -> Exploration:
    """Write a scenario file for each failure, and return the exploration with the file names added."""
    from statek_sim.explore.result import case_name, case_text
    from statek_sim.reporting.artifact import write_artifact

    scenarios = []
    for explored, (scenario, profile) in zip(found.scenarios, pairs, strict=True):
        failures = []
        for failure in explored.failures:
            path = folder / case_name(scenario, profile, failure.invariant)
            write_artifact(path, case_text(scenario, profile, failure, folder))
            failures.append(replace(failure, file=path.as_posix()))
        scenarios.append(replace(explored, failures=tuple(failures)))
    return replace(found, scenarios=tuple(scenarios))


def _over_budget(scenarios: Iterable[Explored], tokens: int) -> Iterator[str]:
    for scenario in scenarios:
        if scenario.crash.tokens > tokens:
            yield (
                f"FAILED {scenario.id}: one crash adds {scenario.crash.tokens:,} tokens, allowed: {tokens:,} "
                f"({scenario.crash.where})"
            )


def _replay(paths: Sequence[Path]) -> None:
    """Replay each saved failure and print whether it is fixed; exit 1 unless all failures are fixed."""
    from statek_sim.explore.workers import replay
    from statek_sim.reporting.exploration import replay_line

    if not paths:
        raise BadInput("--replay: expected files or folders with saved failures")
    replayed = [replay(scenario) for scenario in loaded(paths)]
    for replayed_case in replayed:
        typer.echo(replay_line(replayed_case))
    if not all(replayed_case.fixed for replayed_case in replayed):
        raise typer.Exit(1)
