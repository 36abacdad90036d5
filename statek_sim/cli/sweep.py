"""`statek-sim gate --sweep`: other values for the limits of a preset."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from statek_sim.cli.inputs import check_writable
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.gate.sweep import Sweep

_INTERRUPTED: Final = 130
"""The exit code after Ctrl-C."""


def sweep_preset(
    sweep: Sequence[str],
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
    """Try a preset under every setting and print what each does; `words` are the preset and more ranges, in any order.

    Without a preset it is STATEK's defaults. Costs are counted with the prices of the policy. After Ctrl-C it prints
    what was tried so far, writes no file and exits with 130.
    """
    from statek_sim.executors.choose import executor_for
    from statek_sim.executors.limits import parse_watchdog
    from statek_sim.gate.gate import policy_for
    from statek_sim.gate.gated_preset import gated_preset
    from statek_sim.gate.sweep_ranges import read_axes
    from statek_sim.gate.sweep_run import SweepStopped, run_sweep
    from statek_sim.gate.workloads import workloads
    from statek_sim.reporting.artifact import write_artifact
    from statek_sim.reporting.sweep_json import sweep_json_text
    from statek_sim.reporting.sweep_terminal import SweepProgress
    from statek_sim.suite.run import profile_known
    from statek_sim.usage.pricing import load_prices

    check_writable(json_file=json_file, folder=None)
    ranges, presets = swept_words(sweep, words)
    axes = read_axes(ranges)
    preset = gated_preset(_only_preset(presets))
    prices = policy_for(preset.name, policy).prices
    limits, weighed, behaviour = parse_watchdog(watchdog), workloads(scenarios), profile_known(profile)
    shown = SweepProgress()
    try:
        with executor_for(executor, workers=workers) as runs_it:
            found = run_sweep(
                preset,
                weighed,
                behaviour,
                axes,
                prices=None if prices is None else load_prices(prices),
                executor=runs_it,
                watchdog=limits,
                progressed=shown.update,
            )
    except SweepStopped as stopped:
        typer.echo(str(stopped))
        raise typer.Exit(_INTERRUPTED) from None
    finally:
        shown.close()
    _print(found)
    if found.left:
        # The file is what others count on: half a sweep is none.
        raise typer.Exit(_INTERRUPTED)
    if json_file is not None:
        write_artifact(json_file, sweep_json_text(found))


def swept_words(sweep: Sequence[str], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the ranges of a sweep, and the words that are none. `sweep`: what the option said; files are no ranges."""
    from statek_sim.gate.sweep_ranges import ranges_among

    files = [word for word in words if Path(word).exists()]
    ranges, others = ranges_among(sweep, [word for word in words if word not in files])
    return ranges, [*files, *others]


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
