"""`statek-sim gate --baseline`: what was committed before, and writing it anew."""
# ruff: noqa: PLC0415  # each command imports what it needs: `--help` must not wait for tokenizers

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statek_sim.cli.inputs import say
from statek_sim.errors import BadInput

if TYPE_CHECKING:
    from statek_sim.gate.baseline import Baseline
    from statek_sim.gate.verdict import GateResult


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
        say(diff or [f"{file}: unchanged"])
        if diff:
            write_artifact(file, text)


def require_place(path: Path | None) -> Path:
    """Return where baselines are to be written; `BadInput` when nobody said so."""
    if path is None:
        raise BadInput("--update-baseline: expected --baseline PATH, which says where baselines are")
    return path
