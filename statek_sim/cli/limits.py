"""`statek-sim limits`: what limits do to scenarios, which limit fits a budget, what fits on a graphics card."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from statek_sim.cli.app import Paths, SelectOption, TokenizerOption, app
from statek_sim.cli.inputs import check_writable, loaded, say
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from rich.text import Text

    from statek_sim.analysis.rerun import Replay

SHARE: Final = 0.7
"""The part of a card's free memory that is used."""


class Basis(StrEnum):
    """What counts as real usage."""

    MEASURED = "measured"
    REPORTED = "reported"


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
        help="Show how many tokens of context fit on the graphics cards: a .gguf file, a config.json or its folder, or "
        "a model of the table in the documentation.",
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
        help="With --card: weights still to be loaded; default: a GGUF file's size, else 0.",
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
    asked = {"--stops": stops, "--budget-tokens": budget_tokens, "--card": card}
    questions = [option for option, value in asked.items() if value]
    if len(questions) > 1:
        raise BadInput(f"{' and '.join(questions)}: expected one of them; each asks a question of its own")
    if len(preset or ()) > 1 and not stops:
        raise BadInput("--preset: expected one; only --stops compares presets")
    check_writable(json_file=json_file, folder=None)
    if card is not None:
        if paths or preset or select or tokenizer:
            raise BadInput("--card: it runs no scenario; leave PATH, --preset, --select and --tokenizer out")
        written = _show_card(card, free or (), kv or "f16", weights)
    elif cassettes is not None and budget_tokens is not None:
        if paths or preset or select:
            raise BadInput("--cassettes: recordings are no scenarios; leave PATH, --preset and --select out")
        counted = basis or Basis.REPORTED
        written = _show_recorded_budget(
            cassettes, tokenizer, budget_tokens, counted, _share(keep), seed or 0, every=every
        )
    elif budget_tokens is not None:
        share, counted = _share(keep), basis or Basis.MEASURED
        replays = _replays(paths, profile, preset, select, tokenizer)
        written = _show_budget(replays, budget_tokens, counted, share, seed or 0, every=every)
    else:
        replays = _replays(paths, profile, preset, select, tokenizer)
        written = _show_stops(replays) if stops else _show_room(replays)
    if json_file is not None:
        from statek_sim.reporting.artifact import write_artifact

        write_artifact(json_file, written)


def _check_goes_with(question: str, asked: object, options: Mapping[str, object]) -> None:
    """Refuse options of a question that is not asked."""
    given = [option for option, value in options.items() if value not in (None, False)]
    if asked is None and given:
        raise BadInput(f"{given[0]} goes with {question}")


def _share(keep: float | None) -> float:
    if keep is not None and not 0 <= keep <= 1:
        raise BadInput(f"--keep {keep:g}: expected a share from 0 to 1")
    return 1.0 if keep is None else keep


def _show_stops(replays: Sequence[Replay]) -> str:
    """Print which stops are false or late, and return that as JSON."""
    from statek_sim.analysis.stops import compare_stops
    from statek_sim.reporting.decisions import stops_lines
    from statek_sim.reporting.decisions_json import stops_json

    found = compare_stops(replays)
    _print(stops_lines(found, width=_width()))
    return stops_json(found)


def _show_room(replays: Sequence[Replay]) -> str:
    """Print what every scenario needs of every limit, and return that as JSON."""
    from statek_sim.analysis.sensitivity import sensitivities
    from statek_sim.reporting.decisions import sensitivity_lines
    from statek_sim.reporting.decisions_json import sensitivity_json

    found = sensitivities(replays)
    _print(sensitivity_lines(found, width=_width()))
    return sensitivity_json(found)


def _show_budget(
    replays: Sequence[Replay], budget: int, basis: Basis, keep: float, seed: int, *, every: bool
) -> str:
    """Print the token limit that keeps scenarios within a budget, and return it as JSON."""
    from statek_sim.analysis.calibrate import calibrate
    from statek_sim.harness.usage_basis import UsageBasis
    from statek_sim.reporting.decisions import calibration_lines
    from statek_sim.reporting.decisions_json import calibration_json

    found = calibrate(replays, budget, basis=UsageBasis(basis), keep=keep, seed=seed)
    _print(calibration_lines(found, width=_width(), every=every))
    return calibration_json(found)


def _show_recorded_budget(
    cassettes: Path,
    tokenizers: Sequence[str] | None,
    budget: int,
    basis: Basis,
    keep: float,
    seed: int,
    *,
    every: bool,
) -> str:
    """Print the token limit that keeps recorded conversations within a budget, and return it as JSON."""
    from statek_sim.analysis.conversations import traffic_under
    from statek_sim.analysis.recorded_limits import calibrate_recorded
    from statek_sim.harness.usage_basis import UsageBasis
    from statek_sim.reporting.decisions import calibration_lines, traffic_lines
    from statek_sim.reporting.decisions_json import calibration_json
    from statek_sim.usage.local_tokenizers import registry_of

    traffic = traffic_under(cassettes, registry_of(tokenizers or ()))
    conversations = traffic.conversations
    found = calibrate_recorded(conversations, budget, basis=UsageBasis(basis), keep=keep, seed=seed)
    _print(calibration_lines(found, width=_width(), every=every))
    _print(traffic_lines(traffic, width=_width()))
    return calibration_json(found, traffic)


def _show_card(name: str, free: Sequence[int], kv: str, weights: int | None) -> str:
    """Print how many tokens of context fit on the cards, and return that as JSON."""
    from statek_sim.agent.context.vram.budget import document_budget, document_listing, fitting, mib
    from statek_sim.agent.context.vram.cards import MIB, Card, cards
    from statek_sim.agent.context.vram.models import model_called

    model = model_called(name)
    size = model.weights if weights is None else weights * MIB
    found = [Card(index=at, name="given", total=one, used=0, free=one) for at, one in enumerate(free)]
    found = found or cards()
    fit = fitting(model.shape, [card.free * MIB for card in found], kv=kv, weights=size, share=SHARE)
    thumb = document_budget(document_listing(found))
    for card in found:
        say(
            [f"card {card.index} ({card.name}): {card.free:,} of {card.total:,} MiB free, {card.used:,} used"]
        )
    tokens = "any number of" if fit.tokens is None else f"{fit.tokens:,}"
    rate = f"{mib(fit.per_token * 1000):.1f} MiB per 1,000 tokens of {kv}"
    say(
        [
            f"{model.name}: {len(model.shape.layers)} layers, {rate}",
            f"{mib(fit.usable):,.0f} MiB for the cache, after {mib(size):,.0f} MiB of weights",
            f"{tokens} tokens fit, bounded by {fit.bound}; the rule of thumb of document 004 says {thumb:,}",
        ]
    )
    figures = {
        "schema": "statek-sim/vram@1",
        "model": model.name,
        "source": model.shape.source,
        "kv": kv,
        "bytes_per_token": fit.per_token,
        "usable": fit.usable,
        "weights": size,
        "tokens": fit.tokens,
        "bound": fit.bound,
        "document": thumb,
        "cards": [asdict(card) for card in found],
    }
    return json.dumps(figures, indent=1) + "\n"


def _replays(
    paths: Sequence[Path] | None,
    profile: str,
    presets: Sequence[str] | None,
    select: str | None,
    tokenizers: Sequence[str] | None,
) -> list[Replay]:
    from statek_sim.analysis.rerun import Replay
    from statek_sim.suite.run import chosen, located_preset, nothing_chosen
    from statek_sim.usage.local_tokenizers import registry_of

    scenarios = loaded(paths)
    located: list[str | None] = [located_preset(preset) for preset in presets or ()]
    pairs = chosen(scenarios, profiles=[profile], select=select)
    if not pairs:
        raise BadInput(nothing_chosen(scenarios, profiles=[profile], select=select))
    registry = registry_of(tokenizers or ())
    return [
        Replay(scenario=scenario, profile=name, preset=preset, tokenizers=registry)
        for preset in located or [None]
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
