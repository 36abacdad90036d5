"""A found case: the fewest deviations that still break an invariant, and the file that has them.

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


def reduced(parts: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> tuple[T, ...]:
    """Return a part of `parts`, which fail, that fails and of which no single one can be left out."""
    current, place = tuple(parts), 0
    while place < len(current) > 1:
        rest = current[:place] + current[place + 1 :]
        # What could not be left out before may be now.
        current, place = (rest, 0) if fails(rest) else (current, place + 1)
    return current


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
