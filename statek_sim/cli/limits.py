"""`statek-sim stops`, `calibrate` and `sensitivity`: what limits do to scenarios."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from statek_sim.cli.app import AlsoPaths, Paths, PresetOption, app
from statek_sim.cli.inputs import check_writable, loaded
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from statek_sim.analysis.rerun import Replay

ProfileName = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="P",
        help="Behaviour profile; scenarios without it are left out, under docs also those of engine agent.",
    ),
]
Select = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Only the scenario with this id, or those whose name has TEXT."),
]
Tokenizers = Annotated[
    list[str] | None,
    typer.Option(
        "--tokenizer",
        metavar="MODEL=SOURCE",
        help="Measure models whose name starts with MODEL by a tokenizer.json, or by `tekken` (repeatable).",
    ),
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
]


class Basis(StrEnum):
    """What counts as real usage."""

    MEASURED = "measured"
    REPORTED = "reported"


@app.command()
def stops(
    paths: Paths = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE", help="Under this preset instead of the scenarios' own (repeatable)."
        ),
    ] = None,
    profile: ProfileName = "docs",
    select: Select = None,
    tokenizer: Tokenizers = None,
    json_file: JsonFile = None,
) -> None:
    """Show stops that counting tokens would change.

    Runs every scenario again with the token limit held against measured and against reported tokens.
    """
    from statek_sim.analysis.stops import compare_stops
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.decisions import stops_lines
    from statek_sim.reporting.decisions_json import stops_json

    check_writable(json_file=json_file, folder=None)
    presets: list[str | None] = [*preset] if preset else [None]
    replays = [replay for name in presets for replay in _replays(paths, profile, name, select, tokenizer)]
    found = compare_stops(replays)
    _print(stops_lines(found, width=_width()))
    if json_file is not None:
        write_artifact(json_file, stops_json(found))


BudgetTokensOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Real tokens that no job may use more than.")
]
CassettesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default=False,
        help="Recorded conversations instead of scenarios: a folder of cassettes, or one.",
    ),
]
BasisOption = Annotated[
    Basis | None,
    typer.Option(
        metavar="measured|reported",
        show_default=False,
        help="What counts as real usage; without it measured for scenarios, reported for cassettes.",
    ),
]
KeepOption = Annotated[
    float,
    typer.Option(metavar="SHARE", help="Share of scenarios to keep within the budget."),
]
SeedOption = Annotated[int, typer.Option(metavar="N", help="Seed of the bootstrap.")]
EveryOption = Annotated[bool, typer.Option("--all", help="List every scenario.")]


@app.command()
def calibrate(
    budget_tokens: BudgetTokensOption,
    paths: Paths = None,
    scenarios: AlsoPaths = None,
    cassettes: CassettesOption = None,
    preset: PresetOption = None,
    profile: ProfileName = "docs",
    basis: BasisOption = None,
    keep: KeepOption = 1.0,
    seed: SeedOption = 0,
    every: EveryOption = False,
    tokenizer: Tokenizers = None,
    json_file: JsonFile = None,
) -> None:
    """Find the token limit that keeps jobs within a budget."""
    from statek_sim.analysis.calibrate import calibrate as find
    from statek_sim.analysis.conversations import traffic_under
    from statek_sim.analysis.recorded_limits import calibrate_recorded
    from statek_sim.harness.usage_basis import UsageBasis
    from statek_sim.metering.local_tokenizers import registry_of
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.decisions import calibration_lines, traffic_lines
    from statek_sim.reporting.decisions_json import calibration_json

    paths = [*(paths or ()), *(scenarios or ())]
    if not 0 <= keep <= 1:
        raise BadInput(f"--keep {keep:g}: expected a share from 0 to 1")
    check_writable(json_file=json_file, folder=None)
    if cassettes is None:
        traffic, replays = None, _replays(paths, profile, preset, None, tokenizer)
        counted = UsageBasis(basis or Basis.MEASURED)
        found = find(replays, budget_tokens, basis=counted, keep=keep, seed=seed)
    else:
        if paths or preset is not None:
            raise BadInput("--cassettes: recordings are no scenarios; leave PATH and --preset out")
        traffic = traffic_under(cassettes, registry_of(tokenizer or ()))
        counted = UsageBasis(basis or Basis.REPORTED)
        found = calibrate_recorded(traffic.conversations, budget_tokens, basis=counted, keep=keep, seed=seed)
    _print(calibration_lines(found, width=_width(), every=every))
    if traffic is not None:
        _print(traffic_lines(traffic, width=_width()))
    if json_file is not None:
        write_artifact(json_file, calibration_json(found, traffic))


@app.command()
def sensitivity(
    paths: Paths = None,
    preset: PresetOption = None,
    profile: ProfileName = "docs",
    select: Select = None,
    json_file: JsonFile = None,
) -> None:
    """Show how much room a preset's limits leave.

    Runs every scenario a few dozen times, each limit by bisection.
    """
    from statek_sim.analysis.sensitivity import sensitivities
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.decisions import sensitivity_lines
    from statek_sim.reporting.decisions_json import sensitivity_json

    check_writable(json_file=json_file, folder=None)
    found = sensitivities(_replays(paths, profile, preset, select))
    _print(sensitivity_lines(found, width=_width()))
    if json_file is not None:
        write_artifact(json_file, sensitivity_json(found))


def _replays(
    paths: Sequence[Path] | None,
    profile: str,
    preset: str | None,
    select: str | None,
    tokenizers: Sequence[str] | None = None,
) -> list[Replay]:
    from statek_sim.analysis.rerun import Replay
    from statek_sim.metering.local_tokenizers import registry_of
    from statek_sim.suite.run import chosen, located_preset, nothing_chosen

    scenarios = loaded(paths)
    located = None if preset is None else located_preset(preset)
    pairs = chosen(scenarios, profiles=[profile], select=select)
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, profiles=[profile], select=select))
    registry = registry_of(tokenizers or ())
    return [
        Replay(scenario=scenario, profile=name, preset=located, tokenizers=registry)
        for scenario, name in pairs
    ]


def _width() -> int:
    from rich.console import Console

    return Console().width


def _print(lines: Iterable[Text]) -> None:
    from rich.console import Console

    console = Console()
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
