"""`statek-sim gate`: judge presets by a policy, on scenarios."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import WATCHDOG, WatchdogOption, app
from statek_sim.cli.inputs import check_writable, say, scenarios_among
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.gate.verdict import GateResult

Presets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PRESET|PATH",
        show_default=False,
        help="default, local, interactive, batch, or a .env file; then scenario files (.yaml) or folders to judge on, "
        "none: the shipped workloads.",
    ),
]


@app.command()
def gate(
    presets: Presets = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What is demanded, as TOML; none: the shipped policy, of which each built-in preset has its own for "
            "the shipped workloads.",
        ),
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="Judge on these scenario files or folders too (repeatable); `built-in`: on the shipped workloads.",
        ),
    ] = None,
    profile: Annotated[
        str, typer.Option(metavar="P", help="Behaviour profile; scenarios without it are left out.")
    ] = "docs",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the verdicts as JUnit XML to this file.")
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a summary as Markdown to this file, like $GITHUB_STEP_SUMMARY."
        ),
    ] = None,
    allow_defaults: Annotated[
        bool,
        typer.Option(
            "--allow-defaults",
            help="Judge a preset file that sets no limit, too: all are STATEK's defaults then.",
        ),
    ] = False,
    github: Annotated[
        bool, typer.Option("--github", help="Print GitHub annotations at the lines of the preset files, too.")
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Nothing may be worse than in this baseline: a .json file, or a folder with one per preset. How much "
            "worse is too much, the policy says.",
        ),
    ] = None,
    update_baseline: Annotated[
        bool,
        typer.Option(
            "--update-baseline", help="Write the baseline instead, and show the diff of what changed."
        ),
    ] = False,
    watchdog: WatchdogOption = WATCHDOG,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT=VALUES",
            help="Judge nothing, try other values of one limit or two: max_turns=3..20 max_token_usage=5k..60k/5k. "
            "Shows how many healthy scenarios each setting stops, and what runaways burn.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Processes of a sweep; none: one per core. The result is the same."
        ),
    ] = None,
) -> None:
    """Judge presets: healthy work finishes, runaways are stopped.

    Exits 1 when a verdict fails, 2 when a preset, the policy or a scenario is wrong.
    """
    words, positional = scenarios_among(presets or ())
    scenarios = [*positional, *(scenarios or ())]
    if sweep:
        from statek_sim.cli.sweep import sweep_preset

        _refuse_with_sweep(
            {"--junit": junit, "--markdown": markdown, "--github": github, "--baseline": baseline}
        )
        sweep_preset(
            [*sweep, *words],
            scenarios,
            policy=policy,
            profile=profile,
            json_file=json_file,
            workers=workers,
            watchdog=watchdog,
        )
        return
    if not words:
        raise BadInput("expected a preset: default, local, interactive, batch, or a .env file")
    from statek_sim.cli.baseline import baselines_at, require_place, update_baselines
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.gate.baseline import compared
    from statek_sim.gate.gate import gate_plan, judge_presets
    from statek_sim.gate.workloads import has_shipped, workloads
    from statek_sim.suite.run import profile_known

    if update_baseline:
        require_place(baseline)
    for file in (json_file, junit, markdown):
        check_writable(json_file=file, folder=None)
    here = Path.cwd()
    plan = gate_plan(
        words,
        policy=policy,
        folder=here,
        on_shipped=has_shipped(scenarios),
        allow_defaults=allow_defaults,
    )
    names, behaviour = [preset.name for preset in plan.presets], profile_known(profile)
    before = {} if update_baseline else baselines_at(baseline, names, profile=behaviour)
    limits = parse_watchdog(watchdog)
    result = judge_presets(plan, workloads(scenarios), profile=behaviour, watchdog=limits)
    if update_baseline:
        update_baselines(baseline, result)
    elif baseline is not None:
        result = compared(result, before, plan)
    _print(result)
    if github:
        _annotate(result, here)
    _write(result, json_file=json_file, junit=junit, markdown=markdown)
    if not result.passed:
        raise typer.Exit(1)


def _refuse_with_sweep(options: Mapping[str, object]) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        raise BadInput(f"{given[0]}: a sweep gives no verdicts to write; leave it out, or leave --sweep out")


def _print(result: GateResult) -> None:
    from rich.console import Console

    from statek_sim.reporting.gate_terminal import gate_lines

    console = Console()
    for line in gate_lines(result, width=console.width):
        console.print(line, soft_wrap=True, highlight=False)


def _annotate(result: GateResult, folder: Path) -> None:
    from statek_sim.reporting.gate_github import gate_annotations

    say(gate_annotations(result, folder))


def _write(result: GateResult, *, json_file: Path | None, junit: Path | None, markdown: Path | None) -> None:
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.gate_json import gate_json_text
    from statek_sim.reporting.gate_junit import gate_junit
    from statek_sim.reporting.gate_markdown import gate_markdown

    written: tuple[tuple[Path | None, Callable[[GateResult], str]], ...] = (
        (json_file, gate_json_text),
        (junit, gate_junit),
        (markdown, gate_markdown),
    )
    for path, text in written:
        if path is not None:
            write_artifact(path, text(result))
