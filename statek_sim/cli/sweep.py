"""`statek-sim gate --sweep`: other values for the limits of a preset."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statek_sim.cli.inputs import check_writable
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.gate.sweep import Sweep


def sweep_preset(
    words: Sequence[str],
    scenarios: Sequence[str],
    *,
    policy: Path | None,
    profile: str,
    json_file: Path | None,
    executor: str | None,
    workers: int | None,
    watchdog: str,
) -> None:
    """Try a preset under every setting and print what each does; `words` are the preset and the ranges, in any order.

    Without a preset it is STATEK's defaults. Costs are counted with the prices of the policy.
    """
    from statek_sim.executors.choose import executor_for
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.gate.gate import policy_for
    from statek_sim.gate.gated_preset import gated_preset
    from statek_sim.gate.sweep_ranges import read_axes
    from statek_sim.gate.sweep_run import run_sweep
    from statek_sim.gate.workloads import workloads
    from statek_sim.metering.pricing import load_prices
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.sweep_json import sweep_json_text
    from statek_sim.suite.run import profile_known

    check_writable(json_file=json_file, folder=None)
    ranges = [word for word in words if is_range(word)]
    axes = read_axes(ranges)
    preset = gated_preset(_only_preset([word for word in words if not is_range(word)]))
    prices = policy_for(preset.name, policy).prices
    limits, weighed, behaviour = parse_watchdog(watchdog), workloads(scenarios), profile_known(profile)
    with executor_for(executor, workers=workers) as runs_it:
        found = run_sweep(
            preset,
            weighed,
            behaviour,
            axes,
            prices=None if prices is None else load_prices(prices),
            executor=runs_it,
            watchdog=limits,
        )
    _print(found)
    if json_file is not None:
        write_artifact(json_file, sweep_json_text(found))


def is_range(word: str) -> bool:
    """Return whether a word is `LIMIT=VALUES` and no file."""
    return "=" in word and not Path(word).exists()


def _only_preset(names: Sequence[str]) -> str:
    if len(names) > 1:
        raise BadInput(
            f"--sweep: expected one preset, got {', '.join(names)}; sweep them one after the other"
        )
    return names[0] if names else "default"


def _print(sweep: Sweep) -> None:
    from rich.console import Console

    from statek_sim.reporting.sweep_terminal import sweep_lines

    console = Console()
    for line in sweep_lines(sweep, width=console.width):
        console.print(line, soft_wrap=True, highlight=False)
