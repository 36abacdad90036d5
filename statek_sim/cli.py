"""The command `statek-sim`: run scenario suites, check files, look at what there is.

Exit codes of every command: 0 all is well, 1 a scenario failed or a statement is not proven, 2 bad input. Bad
input is told on standard error, never as a traceback.
"""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.reporting.model import Report
    from statek_sim.scenario.schema import Profile, Scenario
    from statek_sim.scenario.statements import Coverage, Statement
    from statek_sim.suite.result import ScenarioResult

_DISTRIBUTION: Final = "pytest-statek"

app = typer.Typer(
    name="statek-sim",
    help="Test LLM agents that run on STATEK, with a scripted LLM and a deterministic runtime.",
    epilog="Exit codes: 0 all is well, 1 a scenario failed or a statement is not proven, 2 bad input.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Backend(StrEnum):
    """Who runs a scenario."""

    REFERENCE = "reference"
    INSTALLED = "installed"


Runner = Callable[["Scenario", "Profile"], "ScenarioResult"]

ProfileOption = Annotated[
    list[str] | None,
    typer.Option(
        "--profile", metavar="P", help="Only this behaviour profile: docs, 1.2 or 1.4 (repeatable)."
    ),
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Run under this preset instead of the scenarios' own: default, local, interactive, batch, or a .env "
        "file. Limits that a scenario states itself stay. Expectations are written for the scenario's own preset, "
        "so scenarios may fail under another one.",
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(metavar="N", help="Seed of everything random, instead of the scenarios' own.")
]
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH", show_default=False, help="Scenario files or folders; none: the built-in suites."
    ),
]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (default: this process's) and exit with its code."""
    here = os.getcwd()
    if here not in sys.path:
        # Tools and replies named `module:attribute` are found where the command is run, as with `python -m`.
        sys.path.insert(0, here)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Agents print what they like; a terminal that cannot show it gets its escape.
            stream.reconfigure(errors="backslashreplace")
    try:
        _command()(args=None if arguments is None else list(arguments), prog_name="statek-sim")
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    sys.exit(0)


def _command() -> Callable[..., object]:
    """Return the command line; its help names an argument by its metavar alone, without a Python type."""
    command = typer.main.get_command(app)
    for subcommand in vars(command)["commands"].values():
        for parameter in subcommand.params:
            if parameter.param_type_name == "argument":
                # typer (0.29) asks this method, and has no setting for it.
                vars(parameter)["display_type_rich"] = _no_type
    return command


def _no_type(ctx: object) -> None:
    """Say nothing about an argument's type."""


def _version(asked: bool) -> None:
    if asked:
        try:
            version = importlib.metadata.version(_DISTRIBUTION)
        except importlib.metadata.PackageNotFoundError:
            version = "(not installed)"
        typer.echo(f"{_DISTRIBUTION} {version}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Test LLM agents that run on STATEK, with a scripted LLM and a deterministic runtime."""


@app.command()
def run(
    paths: Paths = None,
    profile: ProfileOption = None,
    preset: PresetOption = None,
    seed: SeedOption = None,
    select: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Only the scenario with this id, or else those whose suite/id[profile] has TEXT.",
        ),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="T", help="Only scenarios with this tag (repeatable: any of them)."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON to this file.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write report.json and report.md into this folder.")
    ] = None,
    accept: Annotated[
        bool,
        typer.Option(
            "--accept", help="Rewrite expectations that do not hold with what happened, and show the diff."
        ),
    ] = False,
    backend: Annotated[
        Backend,
        typer.Option(
            metavar="reference|installed",
            help="Who runs them: the reference runtime, or the statek package that is installed here. The latter "
            "follows one profile, and has no trace to compare.",
        ),
    ] = Backend.REFERENCE,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print failures and the verdict only.")
    ] = False,
) -> None:
    """Run scenarios and compare what happens with what they expect."""
    if accept and backend is not Backend.REFERENCE:
        raise BadInput("--accept: expectations are written by the reference runtime; leave --backend out")
    if accept and (preset is not None or seed is not None or not paths):
        raise BadInput("--accept: name the files to rewrite, and leave --preset and --seed to the scenarios")
    _check_writable(json_file=json_file, folder=report)
    from statek_sim.suite.run import chosen, nothing_chosen

    scenarios = _loaded(paths)
    pairs = chosen(scenarios, profiles=profile or None, select=select, tags=tag or ())
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, select=select, tags=tag or ()))
    coverage = None if paths else _coverage(scenarios)[1]
    with ExitStack() as stack:
        runner = None
        if backend is Backend.INSTALLED:
            runner, pairs = _installed(stack, pairs, preset=preset, seed=seed)
        results, told = _run(pairs, preset=preset, seed=seed, coverage=coverage, quiet=quiet, runner=runner)
    _write(told, json_file=json_file, folder=report)
    failed = told.overall.failed > 0
    if accept and failed:
        failed = _accept(results)
    if failed:
        raise typer.Exit(1)


@app.command()
def validate(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", show_default=False, help="Scenario files or folders.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as JSON on standard output.")
    ] = False,
) -> None:
    """Check scenario files without running them.

    Exits 2 when something is wrong with them.
    """
    from statek_sim.scenario.load import load_paths

    loaded = load_paths(paths)
    if as_json:
        problems = [
            {
                "path": str(problem.path),
                "line": problem.line,
                "column": problem.column,
                "message": problem.message,
            }
            for problem in loaded.problems
        ]
        said = {
            "schema": "statek-sim/validation@1",
            "valid": not problems,
            "scenarios": len(loaded.scenarios),
            "problems": problems,
        }
        typer.echo(json.dumps(said, indent=2))
    else:
        _print(map(str, loaded.problems), err=True)
        if not loaded.problems:
            typer.echo(f"{len(loaded.scenarios)} valid")
    if loaded.problems:
        raise typer.Exit(2)


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenario files."""
    from statek_sim.scenario.jsonschema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


@app.command()
def suites(
    paths: Paths = None,
    coverage: Annotated[
        bool,
        typer.Option(
            "--coverage",
            help="List the normative statements of STATEK's documents and the scenarios that prove them; exits 1 "
            "when one has none, or when a scenario names an unknown one.",
        ),
    ] = False,
) -> None:
    """List suites with their numbers of scenarios and runs."""
    from statek_sim.suite.listing import coverage_problems, statement_lines, suite_lines

    scenarios = _loaded(paths)
    if not coverage:
        _print(suite_lines(scenarios))
        return
    statements, covered = _coverage(scenarios)
    _print(statement_lines(statements, covered))
    _print(coverage_problems(covered), err=True)
    if not covered.complete:
        raise typer.Exit(1)


@app.command()
def trace(
    scenario_id: Annotated[
        str, typer.Argument(metavar="SCENARIO_ID", show_default=False, help="Id of the scenario.")
    ],
    paths: Paths = None,
    profile: Annotated[
        str | None, typer.Option(metavar="P", help="Behaviour profile; default: the scenario's first.")
    ] = None,
    preset: PresetOption = None,
    seed: SeedOption = None,
) -> None:
    """Run one scenario and print its trace as JSON lines.

    The first line is a header, then there is one event per line. Exits 1 when the run fails and the scenario does
    not expect that; its other expectations are not looked at.
    """
    from statek_sim.did_you_mean import suggestion
    from statek_sim.suite.run import profile_known, run_one
    from statek_sim.trace import Trace

    by_id = {scenario.id: scenario for scenario in _loaded(paths)}
    if scenario_id not in by_id:
        raise BadInput(
            f"no scenario has the id {scenario_id!r}.{suggestion(scenario_id, by_id)}".removesuffix(".")
        )
    scenario = by_id[scenario_id]
    chosen_profile = scenario.profiles[0] if profile is None else profile_known(profile)
    result = run_one(scenario, chosen_profile, preset=preset, seed=seed)
    record = result.record
    whole = Trace(profile=record.profile, seed=record.seed)
    for event in record.events:
        whole.add(event)
    _print(whole.lines())
    if record.error is not None:
        expected = all(mismatch.keypath != ("error",) for mismatch in result.mismatches)
        note = ", as the scenario expects" if expected else ""
        typer.echo(f"the run failed{note}: {record.error.type}: {record.error.message}", err=True)
        if not expected:
            raise typer.Exit(1)


@app.command()
def conformance(
    python: Annotated[
        list[str],
        typer.Option(
            metavar="PATH", show_default=False, help="An interpreter that has statek installed (repeatable)."
        ),
    ],
    scenarios: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH", show_default=False, help="Scenario files or folders; none: the built-in suites."
        ),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the numbers as JSON to this file.")
    ] = None,
) -> None:
    """Run scenarios on the real statek too and compare.

    Exits 1 when something differs that is not declared.
    """
    from statek_sim.conformance.declared import load_declarations
    from statek_sim.conformance.matrix import run_matrix
    from statek_sim.conformance.report import matrix_json, matrix_lines, unknown_declarations
    from statek_sim.reporting.artifact import write_artifact

    _check_writable(json_file=json_file, folder=None)
    loaded = _loaded(scenarios)
    declarations = load_declarations()
    matrices = run_matrix(python, loaded, declarations)
    _print(matrix_lines(matrices))
    lost = [] if scenarios else list(unknown_declarations(declarations, (s.id for s in loaded), matrices))
    _print((f"declared.yaml: {line}" for line in lost), err=True)
    if json_file is not None:
        write_artifact(json_file, json.dumps(matrix_json(matrices), indent=2) + "\n")
    if lost or any(matrix.failed for matrix in matrices):
        raise typer.Exit(1)


@app.command()
def presets() -> None:
    """List the built-in presets with their settings."""
    from statek_sim.suite.listing import preset_lines

    _print(preset_lines())


@app.command()
def profiles() -> None:
    """List the rules on which the behaviour profiles differ.

    Each comes with its value in every profile.
    """
    from statek_sim.suite.listing import profile_lines

    _print(profile_lines())


def _print(lines: Iterable[str], *, err: bool = False) -> None:
    for line in lines:
        typer.echo(line, err=err)


def _loaded(paths: Sequence[Path] | None) -> tuple[Scenario, ...]:
    """Return the scenarios at or under `paths`, or the built-in ones."""
    from statek_sim.scenario.load import load_or_fail

    return load_or_fail(paths or [_builtin_suites()])


def _builtin_suites() -> Path:
    from statek_sim.suite.run import builtin_suites

    return builtin_suites()


def _run(
    pairs: Sequence[tuple[Scenario, Profile]],
    *,
    preset: str | None,
    seed: int | None,
    coverage: Coverage | None,
    quiet: bool,
    runner: Runner | None = None,
) -> tuple[list[ScenarioResult], Report]:
    """Run the scenarios and tell how it goes."""
    from rich.console import Console

    from statek_sim.reporting.model import build_report
    from statek_sim.reporting.terminal import TerminalReporter
    from statek_sim.reporting.wording import verdict
    from statek_sim.suite.run import run_one

    run = runner or partial(run_one, preset=preset, seed=seed)
    results: list[ScenarioResult] = []
    with TerminalReporter(Console(quiet=quiet), verbose=False) as reporter:
        reporter.start(len(pairs))
        for scenario, profile in pairs:
            results.append(run(scenario, profile))
            reporter.result(results[-1])
        report = build_report(results, preset=preset, seed=seed, statements=coverage)
        reporter.finish(report)
    if quiet:
        for failure in report.failures:
            typer.echo(f"{failure.name}: {failure.text}\n")
        typer.echo(verdict(report.overall))
    return results, report


def _check_writable(*, json_file: Path | None, folder: Path | None) -> None:
    """Raise BadInput before anything runs when a report could not be written after it."""
    from statek_sim.reporting.artifact import check_writable

    if folder is not None and folder.exists() and not folder.is_dir():
        raise BadInput(f"--report {folder}: expected a folder, found something else")
    if json_file is not None:
        check_writable(json_file)
    if folder is not None:
        check_writable(folder / "report.json")
        check_writable(folder / "report.md")


def _installed(
    stack: ExitStack, pairs: Sequence[tuple[Scenario, Profile]], *, preset: str | None, seed: int | None
) -> tuple[Runner, tuple[tuple[Scenario, Profile], ...]]:
    """Start the installed package; return how to run a scenario on it, and which of `pairs` it can run."""
    from statek_sim.backends.installed.peer import Peer, profile_of_peer
    from statek_sim.backends.installed.support import contained, unsupported
    from statek_sim.backends.reference import run_scenario
    from statek_sim.suite.installed import run_one_installed
    from statek_sim.suite.run import located_preset

    peer = stack.enter_context(Peer(sys.executable))
    own = profile_of_peer(peer)
    supported: list[tuple[Scenario, Profile]] = []
    for scenario, profile in pairs:
        if profile != own:
            continue
        reason = unsupported(scenario) or contained(run_scenario(scenario, profile))
        if reason is None:
            supported.append((scenario, profile))
        else:
            typer.echo(f"not run: {scenario.suite}/{scenario.id}: {reason}", err=True)
    if not supported:
        raise BadInput(f"no scenario to run: statek {peer.version} follows profile {own}")
    located = None if preset is None else located_preset(preset)
    return partial(run_one_installed, peer, preset=located, seed=seed), tuple(supported)


def _write(report: Report, *, json_file: Path | None, folder: Path | None) -> None:
    """Write the reports that were asked for."""
    from statek_sim.reporting.json import write_json
    from statek_sim.reporting.markdown import write_markdown

    if json_file is not None:
        write_json(report, json_file)
    if folder is not None:
        write_json(report, folder / "report.json")
        write_markdown(report, folder / "report.md")


def _accept(results: Sequence[ScenarioResult]) -> bool:
    """Rewrite expectations, print the diff, and return whether something was left to a person."""
    from statek_sim.reporting.numbers import plural
    from statek_sim.scenario.problem import dotted
    from statek_sim.suite.accept import accept

    accepted = accept(results)
    typer.echo(accepted.diff, nl=False)
    typer.echo(f"{plural(len(accepted.changes), 'expectation')} rewritten")
    for result, mismatch in accepted.left:
        typer.echo(f"left to you: {result.id} {dotted(mismatch.keypath)}", err=True)
    return bool(accepted.left)


def _coverage(scenarios: Sequence[Scenario]) -> tuple[tuple[Statement, ...], Coverage]:
    """Return the statements of STATEK's documents and which of them `scenarios` prove."""
    from statek_sim.scenario.files import STATEMENTS
    from statek_sim.scenario.statements import coverage, load_statements

    statements = load_statements(_builtin_suites() / STATEMENTS)
    return statements, coverage(statements, scenarios)


if __name__ == "__main__":
    main()
