"""Baselines as committed files: JSON with one line per scenario, so that a change is a small diff."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, JsonValue, ValidationError

from statek_sim.errors import BadInput
from statek_sim.gate.baseline import Baseline, Figures
from statek_sim.input_files import Unreadable, text_of, why_unreadable
from statek_sim.scenario.part import Part

FORMAT: Final = "statek-sim/baseline@1"
SUFFIX: Final = ".json"


class BaselineText(Part):
    """A baseline file."""

    format: Literal["statek-sim/baseline@1"] = Field(description="Name of the format.")
    preset: str = Field(description="The preset, as it was asked for.")
    profile: str = Field(description="Behaviour profile.")
    scenarios: dict[str, Figures] = Field(description="Figures by suite/scenario, in alphabetical order.")


def baseline_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of baseline files."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **BaselineText.model_json_schema(),
        "title": FORMAT,
    }


def baseline_paths(path: Path, presets: Sequence[str]) -> dict[str, Path]:
    """Return each preset's baseline file: `path` itself, if it ends in .json, else `path/NAME.json`.

    `BadInput` when one file would have to do for several presets, and for a file that is called as none of ours is.
    """
    if path.suffix != SUFFIX and path.is_file():
        raise BadInput(
            f"--baseline {path}: expected a file that ends in {SUFFIX}, or a folder, found another file"
        )
    if path.suffix == SUFFIX and not path.is_dir():
        if len(presets) > 1:
            raise BadInput(
                f"--baseline {path}: one file for {len(presets)} presets; give a folder of NAME.json files"
            )
        return {presets[0]: path}
    found = {preset: path / f"{Path(preset).stem}{SUFFIX}" for preset in presets}
    if len(set(found.values())) < len(found):
        raise BadInput(
            f"--baseline {path}: two presets have the same file name, and so the same baseline; judge them apart"
        )
    return found


_ANEW: Final = "delete it, and --update-baseline writes it anew"


def read_baseline(path: Path, *, profile: str) -> Baseline:
    """Return the baseline in a file; `BadInput` (`path:line: ...`) for a wrong one, or one of another profile."""
    try:
        text = text_of(path)
    except Unreadable as error:
        remedy = _ANEW if path.is_file() else "--update-baseline writes it"
        raise BadInput(f"{path}: {why_unreadable(error, path)}; {remedy}") from None
    try:
        written = BaselineText.model_validate_json(text)
    except ValidationError as error:
        raise BadInput("\n".join(_problems(path, text, error))) from None
    if written.profile != profile:
        raise BadInput(
            f"{path}:{_line_of(text, 'profile')}: baseline of profile {written.profile}, but {profile} is judged; "
            "expected --profile to be the same, or a baseline of its own"
        )
    return Baseline(preset=written.preset, profile=written.profile, scenarios=written.scenarios, path=path)


def baseline_text(baseline: Baseline) -> str:
    """Return the text of a baseline's file. Equal baselines give equal texts."""
    rows = [
        f"    {json.dumps(name)}: {json.dumps(figures.model_dump(mode='json', exclude_defaults=True))}"
        for name, figures in baseline.scenarios.items()
    ]
    head = {"format": FORMAT, "preset": baseline.preset, "profile": baseline.profile}
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    return "\n".join(["{", *lines, '  "scenarios": {', ",\n".join(rows), "  }", "}"]) + "\n"


def baseline_diff(path: Path, new: str) -> list[str]:
    """Return the lines of the unified diff between a file, which may not exist yet, and its new text."""
    old = text_of(path) if path.is_file() else ""
    name = path.as_posix()
    before = name if old else "/dev/null"
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), before, name, lineterm="", n=1))


def _problems(path: Path, text: str, error: ValidationError) -> Iterator[str]:
    for details in error.errors(include_url=False):
        loc = [str(part) for part in details["loc"]]
        where = next((line for part in reversed(loc) if (line := _line_of(text, part, missing=0))), 1)
        place = f"{'.'.join(loc)}: " if loc else ""
        problem = f"{details['msg'][:1].lower()}{details['msg'][1:]}"
        yield f"{path}:{where}: {place}{problem}; {_ANEW}"


def _line_of(text: str, key: str, *, missing: int = 1) -> int:
    """Return the line of a key; a baseline has one scenario per line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith(f"{json.dumps(key)}:"):
            return number
    return missing
