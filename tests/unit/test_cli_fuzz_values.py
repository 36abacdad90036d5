"""The same as `test_cli_fuzz`, with files that are good YAML and say odd things: what gets past the parser."""

from __future__ import annotations

import copy
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.unit.test_cli_fuzz import ended_well, here

__all__ = ["here"]  # a fixture

COUNT: Final = 12
"""Files in an ordinary test run."""

BUDGET: Final = 20.0
MOST: Final = 100
"""Seconds of processor time that a thorough run goes on for, and the files that are the most it tries: always the same
ones, unless `STATEK_SIM_FUZZ_SEED` names the first of others."""

SUITES: Final = Path(__file__).parents[2] / "scenarios"
ODD: Final[tuple[object, ...]] = (
    None, True, False, 0, -1, 1, 2**63, 10**30, 1e308, -0.0, float("nan"), float("inf"), "", "x" * 3000, "{x}", "{",
    "%s", "..", "/etc", "a:b", "main", "docs", "*", "(", "[", "$x", "none", "2026-01-01", "\u2028", [], {}, [None],
    {"": ""}, {"a": {"b": []}}, [[[]]],
)  # fmt: skip
KEYS: Final = ("x", "id", "message", "tools", "when", "error", "event", "")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a document, its own first."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield from places(held, (*path, key))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def changed(document: Any, rng: random.Random) -> None:
    """Replace, drop, copy or add one value somewhere below the first level."""
    paths = [path for path in places(document) if len(path) > 1]
    *above, key = rng.choice(paths)
    holder = at(document, tuple(above))
    match rng.randrange(7):
        case 0:
            del holder[key]
        case 1:
            holder[key] = copy.deepcopy(at(document, rng.choice(paths)))
        case 2 if isinstance(holder, dict):
            holder[rng.choice(KEYS)] = rng.choice(ODD)
        case 2:
            holder.append(rng.choice(ODD))
        case _:
            holder[key] = copy.deepcopy(rng.choice(ODD))


def odd_file(seed: int) -> tuple[str, str]:
    """Return the name of a built-in file, and two of its scenarios with one to three odd values."""
    rng = random.Random(f"values {seed}")
    file = rng.choice(sorted(SUITES.glob("*/*.yaml")))
    document = yaml.safe_load(file.read_text("utf-8"))
    (key,) = (name for name in document if name != "defaults")
    several = document[key]
    if isinstance(several, list):
        document[key] = rng.sample(several, min(2, len(several)))
    for _ in range(rng.randint(1, 3)):
        changed(document, rng)
    return f"{file.parent.name}/{file.name}", yaml.safe_dump(document, allow_unicode=True)


def run(folder: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """`validate` and `run` one odd file."""
    name, text = odd_file(seed)
    (folder / "odd.yaml").write_text(text, "utf-8")
    for command in ("validate", "odd.yaml"), ("run", "odd.yaml", "--quiet"):
        try:
            ended_well(capsys, command)
        except BaseException as problem:
            raise AssertionError(
                f"seed {seed}, made of {name}, {' '.join(command)}, on:\n{text}"
            ) from problem


@pytest.mark.parametrize("seed", range(COUNT))
def test_odd_values_end_no_command_with_a_traceback(
    here: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    run(here, capsys, seed)


@pytest.mark.slow
def test_odd_values_end_no_command_for_as_long_as_there_is_time(
    here: Path, capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    first = int(os.environ.get("STATEK_SIM_FUZZ_SEED", COUNT))
    seed, end = first, time.process_time() + BUDGET
    while seed < first + MOST and (time.process_time() < end or seed == first):
        run(here, capsys, seed)
        seed += 1
    record_property("seeds", f"{first}..{seed - 1}")
