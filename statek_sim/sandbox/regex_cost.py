"""How many steps a regular expression may need, counted without running it.

Python's engine backtracks: `(a+)+$` against forty `a` takes longer than a lifetime and cannot be interrupted. So
before a risky search the same search is played by a slow, counting matcher over the parsed pattern. It only counts:
what the search finds still comes from `re`. Where the two differ (back-references and look-behind match freely here)
the count is an estimate, but the same one on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]  # no public access to parsed patterns
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.regex_steps import REPEATS, Node, parsed, parts_of, program_of, steps_to_search

MAX_STEPS: Final = 200_000
"""Steps that one search may take, plus `STEPS_PER_CHARACTER` for each character searched."""

STEPS_PER_CHARACTER: Final = 20

_SURE_STEPS: Final = 1_000_000
_SURE_STEPS_SHIFT: Final = 13
_SURE_LENGTH: Final = 12
_STEPS_PER_ITERATION: Final = 2
_MANY: Final = 64
_TESTS_SHIFT: Final = 11
"""Looking at 2**11 characters takes as long as one iteration."""

_LONGEST_PATTERN: Final = 1 << 20
_USUAL_LENGTH_SHIFT: Final = 4


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a pattern can go wrong: `repeats` in a row multiply, repeats inside repeats explode."""

    repeats: int
    explodes: bool


def pay_for_search(
    budget: ExecutionBudget,
    pattern: re.Pattern[Any],
    text: Any,
    *,
    anchored: bool,
    every: bool,
    whole: bool = False,
) -> None:
    """Pay for one search of `text`, or stop the code if it would take too many steps.

    `anchored` means at the start only, `every` means all matches and not only the first, `whole` that a match has to
    end where the text ends.
    """
    if not isinstance(text, str | bytes):
        return
    size = len(text)
    budget.scan(size >> 3)
    shape = _shape_of(pattern.pattern, pattern.flags)
    # From each place at most as far as the pattern is long.
    longest = min(_length_of(pattern.pattern, pattern.flags), size)
    if shape is None:
        budget.work((1 if anchored else size) * longest >> _TESTS_SHIFT)
        return
    if size <= _SURE_LENGTH and shape.repeats <= 4 and not shape.explodes:
        return
    if not shape.explodes:
        worst = size ** (shape.repeats + (not anchored))
        if worst <= _SURE_STEPS:
            budget.work(max(1, longest >> _USUAL_LENGTH_SHIFT) * (worst >> _SURE_STEPS_SHIFT))
            return
    limit = MAX_STEPS + STEPS_PER_CHARACTER * size
    readable = text if isinstance(text, str) else text.decode("latin-1")
    program = program_of(pattern.pattern, pattern.flags, whole=whole)
    # More than there are iterations for is not counted: on a long text that alone would take minutes.
    affordable = _STEPS_PER_ITERATION * (budget.loop_iterations - budget.iterations + 1)
    steps = steps_to_search(program, readable, min(limit, affordable), anchored=anchored, every=every)
    if steps > limit:
        budget.stop(
            f"a regular expression needed more than {limit:,} steps for a text of {size:,} characters; the likely "
            "cause is a repeat inside a repeat, such as (a+)+"
        )
    budget.work(steps // _STEPS_PER_ITERATION)


@lru_cache(maxsize=512)
def _shape_of(pattern: str | bytes, flags: int) -> _Shape | None:
    """Return None for a pattern that always takes time in proportion to the text."""
    shape = _sequence_shape(parsed(pattern, flags))
    return shape if shape.repeats or shape.explodes else None


@lru_cache(maxsize=512)
def _length_of(pattern: str | bytes, flags: int) -> int:
    """Return how many characters a pattern looks at, each of its repeats as seldom as it may."""
    return _looked_at(parsed(pattern, flags))


def _looked_at(nodes: Iterable[Node]) -> int:
    total = 0
    for op, argument in nodes:
        times = max(1, min(int(argument[0]), _LONGEST_PATTERN)) if op in REPEATS else 1
        total += times * max(1, sum(map(_looked_at, parts_of(op, argument))))
    return min(total, _LONGEST_PATTERN)


def _sequence_shape(nodes: Iterable[Node]) -> _Shape:
    shapes = [_node_shape(op, argument) for op, argument in nodes]
    return _Shape(min(sum(shape.repeats for shape in shapes), _MANY), any(shape.explodes for shape in shapes))


def _node_shape(op: Node, argument: Node) -> _Shape:
    if op in REPEATS:
        low, high, body = argument
        inner = _sequence_shape(body)
        if high in (low, 1):
            # Past some, how many there are makes no difference, and a power of them would take a lifetime to compute.
            return _Shape(min(inner.repeats * int(high) + (high != low), _MANY), inner.explodes)
        return _Shape(1, inner.explodes or inner.repeats > 0 or _has_branch(body))
    shapes = [_sequence_shape(part) for part in parts_of(op, argument)]
    branches = 1 if op is ops.BRANCH else 0
    return _Shape(max((s.repeats for s in shapes), default=0) + branches, any(s.explodes for s in shapes))


def _has_branch(nodes: Iterable[Node]) -> bool:
    return any(
        op is ops.BRANCH or any(_has_branch(part) for part in parts_of(op, argument))
        for op, argument in nodes
    )
