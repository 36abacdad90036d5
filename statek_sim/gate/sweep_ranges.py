"""Which limits a sweep goes through, as people write them: `max_turns=3..20`, `max_token_usage=5k..60k/5k`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from statek_sim.did_you_mean import suggestion
from statek_sim.errors import BadInput
from statek_sim.harness.limits import MAX_LIMIT, LimitName

MOST_VALUES: Final = 200
"""Most values of one limit: a larger table helps nobody."""

COMFORTABLE: Final = 20
"""Most values that a range without a step gives, apart from its end."""

_NAMES: Final = tuple(limit.value for limit in LimitName)
_NUMBER: Final = re.compile(r"(\d+)([kKmM]?)")
_VALUES: Final = re.compile(r"\d[\d.,/kKmM]*")
_UNITS: Final = {"": 1, "k": 1_000, "m": 1_000_000}
_EXAMPLE: Final = "like max_turns=3..20, max_token_usage=5k..60k/5k or max_turns=3,5,8"


@dataclass(frozen=True, slots=True)
class Axis:
    """One limit and the values that a sweep gives it, ascending, no two the same."""

    limit: LimitName
    values: tuple[int, ...]


def ranges_among(sweep: Sequence[str], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the ranges `LIMIT=VALUES`, and the words that are none. `sweep` is what the option said.

    `LIMIT VALUES` is a range as well: limits without values take the words that look like values, in their order. A
    limit that finds none stays alone, for `read_axis` to tell.
    """
    ranges: list[str] = []
    limits: list[str] = []
    values: list[str] = []
    others: list[str] = []
    for word in sweep:
        limit, _, rest = word.strip().partition(" ")
        (ranges if "=" in word or rest else limits).append(
            f"{limit}={rest}" if rest and "=" not in word else word
        )
    for word in words:
        if "=" in word:
            ranges.append(word)
        elif _VALUES.fullmatch(word):
            values.append(word)
        else:
            (limits if word in _NAMES else others).append(word)
    paired = [f"{limit}={value}" for limit, value in zip(limits, values, strict=False)]
    return [*paired, *limits[len(paired) :], *ranges], [*values[len(paired) :], *others]


def read_axes(texts: Sequence[str]) -> tuple[Axis, ...]:
    """Return one axis per text; `BadInput` says which text is wrong and what was expected.

    A sweep has one axis or two, each with a limit of its own.
    """
    axes = tuple(map(read_axis, texts))
    if not 1 <= len(axes) <= 2:
        raise BadInput(f"--sweep: expected one limit or two, got {len(axes)}; {_EXAMPLE}")
    if len({axis.limit for axis in axes}) < len(axes):
        raise BadInput(f"--sweep: {axes[0].limit} is given twice; list all its values at once, {_EXAMPLE}")
    return axes


def read_axis(text: str) -> Axis:
    """Return what `LIMIT=VALUES` says; values are a list of numbers and ranges `FIRST..LAST` or `FIRST..LAST/STEP`.

    A number may end in k or M. A range without a step has a round one that gives at most 20 values; its last value is
    always part of it.
    """
    name, equals, values = (part.strip() for part in text.partition("="))
    if not equals or not values:
        raise BadInput(f"--sweep {text!r}: expected LIMIT=VALUES, {_EXAMPLE}")
    if name not in _NAMES:
        known = ", ".join(_NAMES)
        raise BadInput(
            f"--sweep {text!r}: no limit {name!r}; expected one of {known}.{suggestion(name, _NAMES)}"
        )
    found = sorted({value for part in values.split(",") for value in _values(text, part.strip())})
    if len(found) > MOST_VALUES:
        raise _too_many(text, len(found))
    return Axis(LimitName(name), tuple(found))


def _values(text: str, part: str) -> Sequence[int]:
    span, slash, step_text = part.partition("/")
    first_text, dots, last_text = span.partition("..")
    if not dots:
        if slash:
            raise BadInput(
                f"--sweep {text!r}: {part!r} has a step but is no range; expected FIRST..LAST/STEP"
            )
        return [_number(text, part)]
    first, last = _number(text, first_text), _number(text, last_text)
    if first > last:
        raise BadInput(
            f"--sweep {text!r}: {part!r} runs backwards; write {last_text.strip()}..{first_text.strip()}"
        )
    if not slash:
        return [*range(first, last, _round_step(last - first)), last]
    step = _number(text, step_text)
    if not step:
        raise BadInput(
            f"--sweep {text!r}: a step of 0 never reaches {last_text.strip()}; expected at least 1"
        )
    values = range(first, last + 1, step)
    if len(values) > MOST_VALUES:
        raise _too_many(text, len(values))
    return values


def _number(text: str, written: str) -> int:
    found = _NUMBER.fullmatch(written.strip())
    if found is None:
        raise BadInput(f"--sweep {text!r}: {written.strip()!r} is no number; expected one like 8, 5k or 1M")
    value = int(found[1]) * _UNITS[found[2].lower()]
    if value > MAX_LIMIT:
        raise BadInput(f"--sweep {text!r}: {written.strip()} is too large; a limit is at most {MAX_LIMIT}")
    return value


def _round_step(length: int) -> int:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... with which a range of this length has few values."""
    step = 1
    while True:
        for times in (1, 2, 5):
            if length <= step * times * COMFORTABLE:
                return step * times
        step *= 10


def _too_many(text: str, count: int) -> BadInput:
    return BadInput(
        f"--sweep {text!r}: {count} values; at most {MOST_VALUES}, give a larger step, {_EXAMPLE}"
    )
