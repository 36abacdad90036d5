"""The answers of `statek-sim limits`: each is printed, and returned as JSON."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from statek_sim.cli.inputs import loaded, say
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


def show_stops(replays: Sequence[Replay]) -> str:
    """Print which stops are false or late, and return that as JSON."""
    from statek_sim.analysis.limits import compare_stops
    from statek_sim.reporting.limits import stops_json, stops_lines

    found = compare_stops(replays)
    _print(stops_lines(found, width=_width()))
    return stops_json(found)


def show_room(replays: Sequence[Replay]) -> str:
    """Print what every scenario needs of every limit, and return that as JSON."""
    from statek_sim.analysis.limits import sensitivities
    from statek_sim.reporting.limits import sensitivity_json, sensitivity_lines

    found = sensitivities(replays)
    _print(sensitivity_lines(found, width=_width()))
    return sensitivity_json(found)


def show_budget(
    replays: Sequence[Replay], budget: int, basis: Basis, keep: float, seed: int, *, every: bool
) -> str:
    """Print the token limit that keeps scenarios within a budget, and return it as JSON."""
    from statek_sim.analysis.calibration import calibrate
    from statek_sim.harness.usage_basis import UsageBasis
    from statek_sim.reporting.limits import calibration_json, calibration_lines

    found = calibrate(replays, budget, basis=UsageBasis(basis), keep=keep, seed=seed)
    _print(calibration_lines(found, width=_width(), every=every))
    return calibration_json(found)


def show_recorded_budget(
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
    from statek_sim.analysis.calibration import calibrate_recorded
    from statek_sim.analysis.conversations import traffic_under
    from statek_sim.harness.usage_basis import UsageBasis
    from statek_sim.reporting.limits import calibration_json, calibration_lines, traffic_lines
    from statek_sim.usage.local_tokenizers import registry_of

    traffic = traffic_under(cassettes, registry_of(tokenizers or ()))
    conversations = traffic.conversations
    found = calibrate_recorded(conversations, budget, basis=UsageBasis(basis), keep=keep, seed=seed)
    _print(calibration_lines(found, width=_width(), every=every))
    _print(traffic_lines(traffic, width=_width()))
    return calibration_json(found, traffic)


def show_card(name: str, free: Sequence[int], kv: str, weights: int | None) -> str:
    """Print how many tokens of context fit on the cards, and return that as JSON."""
    from statek_sim.agent.context.kv_cache import model_called
    from statek_sim.agent.context.vram import MIB, Card, cards, fitting, mib

    model = model_called(name)
    size = 0 if weights is None else weights * MIB
    found = [Card(index=at, name="given", total=one, used=0, free=one) for at, one in enumerate(free)]
    found = found or cards()
    fit = fitting(model.shape, [card.free * MIB for card in found], kv=kv, weights=size, share=SHARE)
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
            f"{tokens} tokens fit, bounded by {fit.bound}",
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
        "cards": [asdict(card) for card in found],
    }
    return json.dumps(figures, indent=1) + "\n"


def replays_of(
    paths: Sequence[Path] | None,
    profile: str,
    presets: Sequence[str] | None,
    select: str | None,
    tokenizers: Sequence[str] | None,
) -> list[Replay]:
    """Return the scenarios to run again, under each preset or else their own."""
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
