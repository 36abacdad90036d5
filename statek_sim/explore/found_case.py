"""A found case: the fewest deviations that still break an invariant (Zeller's ddmin), and the file that has them.

The file is a scenario: what the run needs, where it departs, and which invariant does not hold then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from statek_sim.explore.result import Failure
from statek_sim.harness.preset import BUILT_IN
from statek_sim.scenario.edit import after_dash, block
from statek_sim.scenario.schema import FORMAT, Scenario
from statek_sim.values import JSON

T = TypeVar("T")


def ddmin(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Return a part of `parts` that fails and of which no single one can be left out.

    `parts` fail; `fails` is asked about parts in their order.
    """
    current = tuple(parts)
    pieces = 2
    while len(current) >= 2:
        size = max(1, len(current) // pieces)
        chunks = [current[at : at + size] for at in range(0, len(current), size)]
        smaller = _smaller(current, chunks, fails)
        if smaller is not None:
            current, pieces = smaller, 2 if len(smaller) <= size else max(pieces - 1, 2)
        elif size == 1:
            break
        else:
            pieces = min(len(current), pieces * 2)
    return current


def _smaller(
    current: tuple[T, ...], chunks: Sequence[tuple[T, ...]], fails: Callable[[Sequence[T]], bool]
) -> tuple[T, ...] | None:
    """Return one chunk that fails alone, or what is left of `current` without one, if that fails; else None."""
    if len(chunks) > 1:
        for chunk in chunks:
            if fails(chunk):
                return chunk
    size = len(chunks[0])
    for number in range(len(chunks)):
        rest = current[: number * size] + current[number * size + size :]
        if rest and len(rest) < len(current) and fails(rest):
            return rest
    return None


_OF_THE_FILE: Final = frozenset(
    {"suite", "path", "line", "file_digest", "proves", "expect", "expect_in", "goes_bad"}
)
"""What belongs to the place of the scenario, or to its undisturbed run."""

_UNSAFE: Final = re.compile(r"[^a-z0-9]+")


def case_name(scenario: Scenario, profile: str, invariant: str) -> str:
    """Return the name of a case's file, without its folder."""
    return f"{_slug(scenario.id)}-{_slug(profile)}-{_slug(invariant)}.yaml"


def case_text(scenario: Scenario, profile: str, failure: Failure, folder: Path) -> str:
    """Return the file of a case that will be written into `folder`."""
    written: dict[str, Any] = scenario.model_dump(mode="json", exclude_unset=True, exclude=set(_OF_THE_FILE))
    written.pop("deviations", None)
    text: dict[str, JSON] = {
        "id": f"{_slug(scenario.id)}-{_slug(failure.invariant)}",
        "title": f"{failure.invariant}: {failure.message}",
        **{key: value for key, value in written.items() if key not in ("id", "title", "profiles")},
        "profiles": [profile],
        "deviations": [one.model_dump(mode="json", exclude_unset=True) for one in failure.deviations],
        "violates": failure.invariant,
    }
    preset = written.get("preset")
    if preset is not None and (scenario.path.parent / preset).is_file() and preset not in BUILT_IN:
        text["preset"] = os.path.relpath(scenario.path.parent / preset, folder)
    name = case_name(scenario, profile, failure.invariant)
    entry = block(text, indent=4, column=3, spread=True)
    return (
        f"# {FORMAT}\n"
        f"# Found by `statek-sim explore`; `statek-sim explore --replay {name}` says FIXED or FAILED.\n"
        f"suite: found\n\nscenarios:\n  -{after_dash(entry)}\n"
    )


def _slug(text: str) -> str:
    return _UNSAFE.sub("-", text.casefold()).strip("-") or "case"
