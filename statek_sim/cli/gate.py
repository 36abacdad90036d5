"""`statek-sim gate`: judge presets by a policy, on scenarios."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import WATCHDOG, WatchdogOption, app
from statek_sim.cli.baselines import check_replaceable
from statek_sim.cli.inputs import check_outputs, say, scenarios_among
from statek_sim.cli.outputs import check_apart
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.gate.baseline import Baseline
    from statek_sim.gate.gate import GatePlan
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


PolicyOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="What is demanded, as TOML; none: the shipped policy, of which each built-in preset has its own for "
        "the shipped workloads.",
    ),
]
ScenariosOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH",
        help="Judge on these scenario files or folders too (repeatable); `built-in`: on the shipped workloads.",
    ),
]
ProfileOption = Annotated[
    str, typer.Option(metavar="P", help="Behaviour profile; scenarios without it are left out.")
]
JsonFileOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
]
JunitOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the verdicts as JUnit XML to this file.")
]
MarkdownOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write a summary as Markdown to this file, like $GITHUB_STEP_SUMMARY."),
]
AllowDefaultsOption = Annotated[
    bool,
    typer.Option(
        "--allow-defaults",
        help="Judge a preset file that sets no limit, too: all are STATEK's defaults then.",
    ),
]
GithubOption = Annotated[
    bool, typer.Option("--github", help="Print GitHub annotations at the lines of the preset files, too.")
]
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="Nothing may be worse than in this baseline: a .json file, or a folder with one per preset. How much "
        "worse is too much, the policy says.",
    ),
]
UpdateBaselineOption = Annotated[
    bool,
    typer.Option("--update-baseline", help="Write the baseline instead, and show the diff of what changed."),
]


@app.command()
def gate(
    presets: Presets = None,
    policy: PolicyOption = None,
    scenarios: ScenariosOption = None,
    profile: ProfileOption = "docs",
    json_file: JsonFileOption = None,
    junit: JunitOption = None,
    markdown: MarkdownOption = None,
    allow_defaults: AllowDefaultsOption = False,
    github: GithubOption = False,
    baseline: BaselineOption = None,
    update_baseline: UpdateBaselineOption = False,
    watchdog: WatchdogOption = WATCHDOG,
) -> None:
    """Judge presets: healthy work finishes, runaways are stopped.

    Exits 1 when a verdict fails, 2 when a preset, the policy or a scenario is wrong.
    """
    words, positional = scenarios_among(presets or ())
    scenarios = [*positional, *(scenarios or ())]
    if not words:
        raise BadInput("expected a preset: default, local, interactive, batch, or a .env file")
    outputs = _Outputs(json_file=json_file, junit=junit, markdown=markdown)
    kept = _KeptBaseline(baseline, update=update_baseline)
    kept.check()
    outputs.check()
    from statek_sim.gate.gate import gate_plan, has_shipped

    here, on_shipped = Path.cwd(), has_shipped(scenarios)
    plan = gate_plan(words, policy=policy, folder=here, on_shipped=on_shipped, allow_defaults=allow_defaults)
    kept.check_files([preset.name for preset in plan.presets], outputs)
    result = _judged(plan, scenarios, profile, watchdog, kept)
    _print(result)
    if github:
        _annotate(result, here)
    outputs.write(result)
    if not result.passed:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _KeptBaseline:
    """What presets are held against, or where that is to be written anew."""

    place: Path | None
    update: bool

    def check(self) -> None:
        """Refuse to update nothing."""
        if self.update:
            require_place(self.place)

    def check_files(self, presets: Sequence[str], outputs: _Outputs) -> None:
        """Refuse, before anything is judged, a report in a baseline's place, and a baseline in that of another file."""
        from statek_sim.gate.baseline_file import FORMAT, baseline_paths

        files = [] if self.place is None else list(baseline_paths(self.place, presets).values())
        check_apart({**outputs.files, "--baseline": files})
        for file in files if self.update else ():
            check_outputs({**outputs.files, "--baseline": file})
            check_replaceable(file, key="format", schema=FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outputs:
    """Where the result goes, beside the terminal."""

    json_file: Path | None
    junit: Path | None
    markdown: Path | None

    def check(self) -> None:
        """Refuse what could not be written after everything has run."""
        check_outputs(self.files)

    @property
    def files(self) -> dict[str, Path | None]:
        """The files by their options."""
        return {"--json": self.json_file, "--junit": self.junit, "--markdown": self.markdown}

    def write(self, result: GateResult) -> None:
        """Write the files that were asked for."""
        from statek_sim.reporting.artifact import write_artifact
        from statek_sim.reporting.gate import gate_json_text, gate_markdown
        from statek_sim.reporting.junit import gate_junit

        written: tuple[tuple[Path | None, Callable[[GateResult], str]], ...] = (
            (self.json_file, gate_json_text),
            (self.junit, gate_junit),
            (self.markdown, gate_markdown),
        )
        for path, text in written:
            if path is not None:
                write_artifact(path, text(result))


def _judged(
    plan: GatePlan, scenarios: Sequence[str], profile: str, watchdog: str, kept: _KeptBaseline
) -> GateResult:
    """Return the verdicts, those against a baseline among them; or write the baseline that they make."""
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.gate.baseline import compared
    from statek_sim.gate.gate import judge_presets, workloads
    from statek_sim.suite.run import profile_known

    names, behaviour = [preset.name for preset in plan.presets], profile_known(profile)
    before = {} if kept.update else baselines_at(kept.place, names, profile=behaviour)
    limits = parse_watchdog(watchdog)
    result = judge_presets(plan, workloads(scenarios), profile=behaviour, watchdog=limits)
    if kept.update:
        update_baselines(kept.place, result)
    elif kept.place is not None:
        result = compared(result, before, plan)
    return result


def _print(result: GateResult) -> None:
    from rich.console import Console

    from statek_sim.reporting.gate import gate_lines

    console = Console()
    for line in gate_lines(result, width=console.width):
        console.print(line, soft_wrap=True, highlight=False)


def _annotate(result: GateResult, folder: Path) -> None:
    from statek_sim.reporting.gate import gate_annotations

    say(gate_annotations(result, folder))


# -- baselines: what was committed before, and writing it anew --------------------------------------------------


def baselines_at(path: Path | None, presets: Sequence[str], *, profile: str) -> Mapping[str, Baseline]:
    """Return each preset's baseline, before anything runs; `BadInput` when one is missing or wrong."""
    from statek_sim.gate.baseline_file import baseline_paths, read_baseline

    if path is None:
        return {}
    return {
        preset: read_baseline(file, profile=profile) for preset, file in baseline_paths(path, presets).items()
    }


def update_baselines(path: Path | None, result: GateResult) -> None:
    """Write each preset's baseline as it is now, and print the diff of what changed."""
    from statek_sim.gate.baseline import baseline_of
    from statek_sim.gate.baseline_file import baseline_diff, baseline_paths, baseline_text
    from statek_sim.reporting.artifact import write_artifact

    files = baseline_paths(require_place(path), [preset.name for preset in result.presets])
    for preset, file in files.items():
        text = baseline_text(baseline_of(result, preset))
        diff = baseline_diff(file, text)
        if diff:
            write_artifact(file, text)
        say(diff or [f"{file}: unchanged"])


def require_place(path: Path | None) -> Path:
    """Return where baselines are to be written; `BadInput` when nobody said so."""
    if path is None:
        raise BadInput("--update-baseline: expected --baseline PATH, which says where baselines are")
    return path
