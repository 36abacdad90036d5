"""`statek-sim gate`: check presets against a policy by running scenarios."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import (
    check_outputs,
    check_replaceable,
    say,
    scenarios_among,
    show,
    write_outputs,
)
from statek_sim.cli.options import argument, flag, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.gate.gate import GatePlan
    from statek_sim.gate.verdict import GateResult

Presets = Annotated[
    list[str] | None,
    argument(
        "PRESET|PATH",
        "The presets to check (default, local, interactive, batch, or .env files), followed by the scenario files "
        "(.yaml) or folders to run with them. Default: the built-in workloads.",
    ),
]


PolicyOption = Annotated[
    Path | None,
    option(
        "FILE",
        "The policy (a TOML file). Default: the built-in policy; with the built-in workloads, each built-in preset has "
        "its own policy.",
    ),
]
ProfileOption = Annotated[str, option("P", "Behaviour profile; scenarios that do not list it are skipped.")]
AllowDefaultsOption = Annotated[
    bool, flag("Accept a preset file without limits and use STATEK's defaults.", "--allow-defaults")
]
GithubOption = Annotated[
    bool, flag("Also print GitHub annotations for the affected lines in the preset files.", "--github")
]
BaselineOption = Annotated[
    Path | None,
    option(
        "PATH",
        "Fail if a result is worse than in this baseline: a .json file, or a folder with one file per preset. The "
        "policy sets the tolerance.",
    ),
]
UpdateBaselineOption = Annotated[
    bool,
    flag("Write the baseline instead of comparing results with it, and show the diff.", "--update-baseline"),
]


@app.command()
def gate(
    presets: Presets = None,
    policy: PolicyOption = None,
    profile: ProfileOption = "docs",
    json_file: options.JsonFileOption = None,
    junit: options.JunitOption = None,
    markdown: options.MarkdownFileOption = None,
    allow_defaults: AllowDefaultsOption = False,
    github: GithubOption = False,
    baseline: BaselineOption = None,
    update_baseline: UpdateBaselineOption = False,
    watchdog: options.WatchdogOption = options.WATCHDOG,
) -> None:
    """Check that presets let jobs finish and stop runaway jobs.

    Exits 1 if a rule fails, and 2 if a preset, the policy or a scenario is invalid.

    Example: statek-sim gate presets/orders.env scenarios --policy policy.toml
    """
    words, scenarios = scenarios_among(presets or ())
    if not words:
        raise BadInput("expected a preset: default, local, interactive, batch, or a .env file")
    files = {"--json": json_file, "--junit": junit, "--markdown": markdown}
    place = _baseline_to_write(baseline) if update_baseline else baseline
    check_outputs(files)
    from statek_sim.gate.gate import gate_plan, has_shipped
    from statek_sim.reporting.gate import gate_annotations, gate_json, gate_lines, gate_markdown
    from statek_sim.reporting.junit import gate_junit

    here, on_shipped = Path.cwd(), has_shipped(scenarios)
    plan = gate_plan(words, policy=policy, folder=here, on_shipped=on_shipped, allow_defaults=allow_defaults)
    _check_baselines(place, [preset.name for preset in plan.presets], files, update=update_baseline)
    result = _judged(plan, scenarios, profile, watchdog, place, update=update_baseline)
    show(lambda width: gate_lines(result, width=width))
    say(gate_annotations(result, here) if github else ())
    write_outputs(
        (json_file, lambda: gate_json(result)),
        (junit, lambda: gate_junit(result)),
        (markdown, lambda: gate_markdown(result)),
    )
    if not result.passed:
        raise typer.Exit(1)


def _baseline_to_write(path: Path | None) -> Path:
    """Return the path for new baselines; raises `BadInput` if no path is given."""
    if path is None:
        raise BadInput("--update-baseline requires --baseline PATH")
    return path


def _check_baselines(
    place: Path | None, presets: Sequence[str], outputs: Mapping[str, Path | None], *, update: bool
) -> None:
    """Check, before the run, that no report would replace a baseline and no new baseline would replace another file."""
    from statek_sim.gate.baseline import FORMAT, baseline_paths

    files = [] if place is None else list(baseline_paths(place, presets).values())
    check_outputs(outputs, {} if update else {"--baseline": files})
    for file in files if update else ():
        check_outputs({**outputs, "--baseline": file})
        check_replaceable(file, key="format", schema=FORMAT)


def _judged(
    plan: GatePlan, scenarios: Sequence[str], profile: str, watchdog: str, place: Path | None, *, update: bool
) -> GateResult:
    """Return the presets' verdicts, including the baseline comparison; with `update`, write the baseline."""
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.gate.baseline import baseline_paths, compared, read_baseline
    from statek_sim.gate.gate import judge_presets, workloads
    from statek_sim.suite.run import profile_known

    behaviour = profile_known(profile)
    paths = {} if place is None else baseline_paths(place, [preset.name for preset in plan.presets])
    before = {} if update else {name: read_baseline(file, profile=behaviour) for name, file in paths.items()}
    limits = parse_watchdog(watchdog)
    result = judge_presets(plan, workloads(scenarios), profile=behaviour, watchdog=limits)
    if update:
        _update_baselines(paths, result)
        return result
    return result if place is None else compared(result, before, plan)


def _update_baselines(paths: Mapping[str, Path], result: GateResult) -> None:
    """Write each preset's baseline, and print the diff."""
    from statek_sim.gate.baseline import baseline_diff, baseline_of, baseline_text
    from statek_sim.reporting.artifact import write_artifact

    for preset, file in paths.items():
        text = baseline_text(baseline_of(result, preset))
        diff = baseline_diff(file, text)
        if diff:
            write_artifact(file, text)
        say(diff or [f"{file}: unchanged"])
