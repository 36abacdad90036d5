"""`statek-sim limits`: find the limits that scenarios need, or the limits that fit a budget or a graphics card."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from statek_sim.cli import options
from statek_sim.cli.app import app
from statek_sim.cli.inputs import check_outputs, check_required, loaded, say, show, write_outputs
from statek_sim.cli.options import flag, option
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.analysis.limits import Replay
    from statek_sim.values import JSON


class Basis(StrEnum):
    """The token counts to treat as real usage."""

    MEASURED = "measured"
    REPORTED = "reported"


StopsOption = Annotated[
    bool,
    flag(
        "Show which stops would change if limits counted measured or reported tokens instead of bytes.",
        "--stops",
    ),
]
BudgetTokensOption = Annotated[
    int | None, option("N", "Find the token limit that keeps each job within N real tokens.", min=1)
]
BasisOption = Annotated[
    Basis | None,
    option(
        "measured|reported",
        "With --budget-tokens: the token counts to treat as real usage. Default: measured.",
    ),
]
KeepOption = Annotated[
    float | None,
    option(
        "SHARE",
        "With --budget-tokens: the fraction of scenarios that must stay within the budget. Default: 1.",
    ),
]
EveryOption = Annotated[bool, flag("With --budget-tokens: list every scenario.", "--all")]
CardOption = Annotated[
    str | None,
    option(
        "MODEL",
        "Show how many tokens of a model's context fit on the graphics cards. MODEL is a config.json file, its folder, "
        "or a known model name.",
    ),
]
FreeOption = Annotated[
    list[int] | None,
    option(
        "MIB",
        "With --card: a card's free memory; repeat the option for several cards. Default: the values that nvidia-smi "
        "reports.",
        min=0,
    ),
]
KvOption = Annotated[str | None, option("T", "With --card: KV cache type, such as q8_0. Default: f16.")]
WeightsOption = Annotated[
    int | None,
    option("MIB", "With --card: the size of the weights that are not loaded yet. Default: 0.", min=0),
]
PresetsOption = Annotated[
    list[str] | None,
    option(
        "NAME|FILE", "Use this preset instead of the scenarios' own presets; can be repeated.", "--preset"
    ),
]
ProfileName = Annotated[
    str,
    option(
        "P",
        "Behaviour profile; scenarios that do not list it are skipped. With docs, agent-engine scenarios "
        "are skipped too.",
        "--profile",
    ),
]


@app.command()
def limits(
    paths: options.Paths = None,
    stops: StopsOption = False,
    budget_tokens: BudgetTokensOption = None,
    card: CardOption = None,
    preset: PresetsOption = None,
    profile: ProfileName = "docs",
    select: options.SelectOption = None,
    tokenizer: options.TokenizerOption = None,
    basis: BasisOption = None,
    keep: KeepOption = None,
    every: EveryOption = False,
    free: FreeOption = None,
    kv: KvOption = None,
    weights: WeightsOption = None,
    json_file: options.JsonFileOption = None,
) -> None:
    """Show the smallest value of each limit that stops no job.

    A value counts as too small even if a stopped job continues later. With --stops, --budget-tokens or --card, shows a
    different table.

    Example: statek-sim limits --preset batch
    """
    for path in paths or ():
        if path.suffix == ".env":
            raise BadInput(f"{path}: expected a scenario file, found a preset; use --preset {path}")
    check_required({"--basis": basis, "--keep": keep, "--all": every}, budget_tokens, "--budget-tokens")
    check_required({"--free": free, "--kv": kv, "--weights": weights}, card, "--card")
    questions = {"--stops": stops, "--budget-tokens": budget_tokens, "--card": card}
    chosen = [option for option, value in questions.items() if value]
    if len(chosen) > 1:
        raise BadInput(f"{' and '.join(chosen)}: use only one of these options")
    if len(preset or ()) > 1 and not stops:
        raise BadInput("--preset: expected one preset; only --stops compares several")
    check_outputs({"--json": json_file}, {"--card": [] if card is None else [Path(card)]})
    if card is not None:
        if paths or preset or select or tokenizer:
            raise BadInput("--card: remove PATH, --preset, --select and --tokenizer; no scenario runs")
        written = show_card(card, free or (), kv or "f16", weights)
    elif budget_tokens is not None:
        share, counted = _share(keep), basis or Basis.MEASURED
        replays = replays_of(paths, profile, preset, select, tokenizer)
        written = show_budget(replays, budget_tokens, counted, share, every=every)
    else:
        replays = replays_of(paths, profile, preset, select, tokenizer)
        written = show_stops(replays) if stops else show_room(replays)
    write_outputs((json_file, lambda: written))


def _share(keep: float | None) -> float:
    if keep is not None and not 0 <= keep <= 1:
        raise BadInput(f"--keep {keep:g}: expected a fraction from 0 to 1")
    return 1.0 if keep is None else keep


def show_stops(replays: Sequence[Replay]) -> dict[str, JSON]:
    """Print false and late stops, and return the result as JSON."""
    from statek_sim.analysis.limits import compare_stops
    from statek_sim.reporting.limits import stops_json, stops_lines

    found = compare_stops(replays)
    show(lambda width: stops_lines(found, width=width))
    return stops_json(found)


def show_room(replays: Sequence[Replay]) -> dict[str, JSON]:
    """Print the smallest value of each limit for each scenario, and return the result as JSON."""
    from statek_sim.analysis.limits import sensitivities
    from statek_sim.reporting.limits import sensitivity_json, sensitivity_lines

    found = sensitivities(replays)
    show(lambda width: sensitivity_lines(found, width=width))
    return sensitivity_json(found)


def show_budget(
    replays: Sequence[Replay], budget: int, basis: Basis, keep: float, *, every: bool
) -> dict[str, JSON]:
    """Print the token limit that keeps scenarios within a budget, and return the result as JSON."""
    from statek_sim.analysis.calibration import calibrate
    from statek_sim.harness.usage_basis import UsageBasis
    from statek_sim.reporting.limits import calibration_json, calibration_lines

    found = calibrate(replays, budget, basis=UsageBasis(basis), keep=keep)
    show(lambda width: calibration_lines(found, width=width, every=every))
    return calibration_json(found)


def show_card(name: str, free: Sequence[int], kv: str, weights: int | None) -> dict[str, JSON]:
    """Print how many tokens of context fit on the graphics cards, and return the result as JSON."""
    from statek_sim.agent.context.vram import MIB, Card, cards, fitting, model_called
    from statek_sim.values import as_json, record

    model = model_called(name)
    size = 0 if weights is None else weights * MIB
    found = [Card(index=at, name="given", total=one, used=0, free=one) for at, one in enumerate(free)]
    found = found or cards()
    fit = fitting(model, [card.free * MIB for card in found], kv=kv, weights=size)
    for card in found:
        say(
            [f"card {card.index} ({card.name}): {card.free:,} of {card.total:,} MiB free, {card.used:,} used"]
        )
    per_token = float(model.bytes_per_token(kv))
    rate = f"{per_token * 1000 / MIB:.1f} MiB per 1,000 tokens of {kv}"
    say(
        [
            f"{model.name}: {model.layers} layers, {rate}",
            f"{fit.usable / MIB:,.0f} MiB for the cache, after {size / MIB:,.0f} MiB of weights",
            f"{fit.tokens:,} tokens fit, limited by {fit.bound}",
        ]
    )
    return {
        "schema": "statek-sim/vram@1",
        "model": model.name,
        "source": model.source,
        "kv": kv,
        "bytes_per_token": per_token,
        "weights": size,
        **record(fit, "usable", "tokens", "bound"),
        "cards": as_json(found),
    }


def replays_of(
    paths: Sequence[Path] | None,
    profile: str,
    presets: Sequence[str] | None,
    select: str | None,
    tokenizers: Sequence[str] | None,
) -> list[Replay]:
    """Return the scenarios to run, each with every preset or, if there are no presets, with its own."""
    from statek_sim.analysis.limits import Replay
    from statek_sim.harness.preset import located_preset
    from statek_sim.suite.run import chosen_or_fail
    from statek_sim.usage.tokenizers import registry_of

    located: list[str | None] = [located_preset(preset) for preset in presets or ()]
    pairs = chosen_or_fail(loaded(paths), profiles=[profile], select=select)
    registry = registry_of(tokenizers or ())
    return [
        Replay(scenario=scenario, profile=name, preset=preset, tokenizers=registry)
        for preset in located or [None]
        for scenario, name in pairs
    ]
