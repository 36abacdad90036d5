"""`statek-sim limits`: what limits do to scenarios, which limit fits a budget, what fits on a graphics card."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from statek_sim.cli.app import Paths, SelectOption, TokenizerOption, app
from statek_sim.cli.inputs import check_writable
from statek_sim.cli.limit_answers import (
    Basis,
    replays_of,
    show_budget,
    show_card,
    show_recorded_budget,
    show_room,
    show_stops,
)
from statek_sim.errors import BadInput

StopsOption = Annotated[
    bool,
    typer.Option(
        "--stops",
        help="Show the stops that counting tokens instead of bytes would change: measured tokens, and reported ones.",
    ),
]
BudgetTokensOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        show_default=False,
        help="Find the token limit that keeps each job within N real tokens.",
    ),
]
CassettesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        show_default=False,
        help="With --budget-tokens: recorded conversations instead of scenarios, a folder of cassettes or one.",
    ),
]
BasisOption = Annotated[
    Basis | None,
    typer.Option(
        metavar="measured|reported",
        show_default=False,
        help="With --budget-tokens: what counts as real usage; default: measured for scenarios, reported for "
        "cassettes.",
    ),
]
KeepOption = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        show_default=False,
        help="With --budget-tokens: share of scenarios to keep within the budget; default: 1.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        metavar="N", show_default=False, help="With --budget-tokens: seed of the bootstrap; default: 0."
    ),
]
EveryOption = Annotated[bool, typer.Option("--all", help="With --budget-tokens: list every scenario.")]
CardOption = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        show_default=False,
        help="Show how many tokens of context fit on the graphics cards: a config.json, its folder, or the name of a "
        "known model.",
    ),
]
FreeOption = Annotated[
    list[int] | None,
    typer.Option(
        metavar="MIB",
        min=0,
        show_default=False,
        help="With --card: free memory of a card (repeatable); default: what nvidia-smi says.",
    ),
]
KvOption = Annotated[
    str | None,
    typer.Option(
        metavar="T",
        show_default=False,
        help="With --card: type of the KV cache, such as q8_0; default: f16.",
    ),
]
WeightsOption = Annotated[
    int | None,
    typer.Option(
        metavar="MIB",
        min=0,
        show_default=False,
        help="With --card: weights still to be loaded, in MiB; default: 0.",
    ),
]
PresetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--preset",
        metavar="NAME|FILE",
        help="Under this preset instead of the scenarios' own (repeatable).",
    ),
]
ProfileName = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="P",
        help="Behaviour profile; scenarios without it are left out, under docs also those of engine agent.",
    ),
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result as JSON to this file.")
]


@app.command()
def limits(
    paths: Paths = None,
    stops: StopsOption = False,
    budget_tokens: BudgetTokensOption = None,
    card: CardOption = None,
    preset: PresetsOption = None,
    profile: ProfileName = "docs",
    select: SelectOption = None,
    tokenizer: TokenizerOption = None,
    cassettes: CassettesOption = None,
    basis: BasisOption = None,
    keep: KeepOption = None,
    seed: SeedOption = None,
    every: EveryOption = False,
    free: FreeOption = None,
    kv: KvOption = None,
    weights: WeightsOption = None,
    json_file: JsonFile = None,
) -> None:
    """Show how much room a preset's limits leave to each scenario.

    For each limit the smallest value that stops no job, found by bisection. --stops, --budget-tokens and --card answer
    another question instead.

    Example: statek-sim limits --preset batch
    """
    budget = {"--cassettes": cassettes, "--basis": basis, "--keep": keep, "--seed": seed, "--all": every}
    _check_goes_with("--budget-tokens", budget_tokens, budget)
    _check_goes_with("--card", card, {"--free": free, "--kv": kv, "--weights": weights})
    questions = {"--stops": stops, "--budget-tokens": budget_tokens, "--card": card}
    chosen = [option for option, value in questions.items() if value]
    if len(chosen) > 1:
        raise BadInput(f"{' and '.join(chosen)}: expected one of them; each asks a question of its own")
    if len(preset or ()) > 1 and not stops:
        raise BadInput("--preset: expected one; only --stops compares presets")
    check_writable(json_file=json_file, folder=None)
    if card is not None:
        if paths or preset or select or tokenizer:
            raise BadInput("--card: it runs no scenario; leave PATH, --preset, --select and --tokenizer out")
        written = show_card(card, free or (), kv or "f16", weights)
    elif cassettes is not None and budget_tokens is not None:
        if paths or preset or select:
            raise BadInput("--cassettes: recordings are no scenarios; leave PATH, --preset and --select out")
        counted = basis or Basis.REPORTED
        written = show_recorded_budget(
            cassettes, tokenizer, budget_tokens, counted, _share(keep), seed or 0, every=every
        )
    elif budget_tokens is not None:
        share, counted = _share(keep), basis or Basis.MEASURED
        replays = replays_of(paths, profile, preset, select, tokenizer)
        written = show_budget(replays, budget_tokens, counted, share, seed or 0, every=every)
    else:
        replays = replays_of(paths, profile, preset, select, tokenizer)
        written = show_stops(replays) if stops else show_room(replays)
    if json_file is not None:
        from statek_sim.reporting.artifact import write_artifact

        write_artifact(json_file, written)


def _check_goes_with(question: str, chosen: object, options: Mapping[str, object]) -> None:
    """Refuse options of a question that is not chosen."""
    given = [option for option, value in options.items() if value not in (None, False)]
    if chosen is None and given:
        raise BadInput(f"{given[0]} goes with {question}")


def _share(keep: float | None) -> float:
    if keep is not None and not 0 <= keep <= 1:
        raise BadInput(f"--keep {keep:g}: expected a share from 0 to 1")
    return 1.0 if keep is None else keep
