"""Paying for text that model-written code formats: f-strings, `format`, `str` and `repr`."""

from __future__ import annotations

import datetime
import itertools
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from statek_sim.sandbox.budget import LONG_INTEGER, ExecutionBudget
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.sandbox.weigh import SCALARS, is_container, pay_for_walk, work_of_writing

# What is formatted is up to model-written code.
Value = Any

_LONG_NUMBER: Final = re.compile(r"\d{4,}")
_FORMATTER: Final = string.Formatter()
_SHORT: Final = 100
_USUAL: Final = 16
_WIDEST: Final = 256
_REPR: Final = "while getting the repr of an object"


def pay_for_text(budget: ExecutionBudget, value: Value) -> None:
    """Pay for turning `value` into text."""
    if type(value) in SCALARS:
        if type(value) is int and (bits := value.bit_length()) > LONG_INTEGER:
            budget.allocate(bits >> 2)
            budget.work(work_of_writing(bits))
        return
    if is_container(value):
        budget.allocate(pay_for_walk(budget, value, _REPR))
    elif isinstance(value, str | bytes):
        budget.copied(len(value))
    elif isinstance(value, Decimal):
        budget.copied(value.__sizeof__() << 1)


def pay_for_error(budget: ExecutionBudget, value: Value) -> None:
    """Pay for a value that an error is about."""
    pay_for_text(budget, value)
    if isinstance(value, str | bytes):
        budget.say(len(value))


def pay_for_template(
    budget: ExecutionBudget, template: str, args: Sequence[Value], kwargs: Mapping[str, Value]
) -> None:
    """Pay for `template.format(*args, **kwargs)`: every field's value as text, as wide as its specification asks.

    What is wrong with a template is left for `format` itself to say.
    """
    budget.copied(len(template))
    budget.scan(64 * template.count("{"))
    numbers = itertools.count()
    try:
        for _, name, spec, _ in _FORMATTER.parse(template):
            if name is not None:
                _pay_for_field(budget, name, spec or "", args, kwargs, numbers)
    except (ValueError, LookupError, AttributeError, TypeError):
        return


def _pay_for_field(
    budget: ExecutionBudget,
    name: str,
    spec: str,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    numbers: Iterator[int],
) -> None:
    value = _found(name, args, kwargs, numbers)
    for _, inner, _, _ in _FORMATTER.parse(spec) if "{" in spec else ():
        if inner is not None:
            nested = _found(inner, args, kwargs, numbers)
            _pay_for_widths(budget, str(nested) if isinstance(nested, int | str) else "")
    pay_for_spec(budget, value, spec)
    pay_for_text(budget, value)


def _found(name: str, args: Sequence[Value], kwargs: Mapping[str, Value], numbers: Iterator[int]) -> Value:
    if not name or name[0] in ".[":
        name = f"{next(numbers)}{name}"
    return _FORMATTER.get_field(name, args, kwargs)[0]


def pay_for_spec(budget: ExecutionBudget, value: Value, spec: str) -> None:
    """Pay for what a format specification asks for beyond the value's own text."""
    if isinstance(value, datetime.date | datetime.time):
        pay_for_strftime(budget, spec, value)
        return
    _pay_for_widths(budget, spec)
    if isinstance(value, Decimal) and spec and value.is_finite():
        # Without an exponent, as `f` and `%` write it.
        budget.allocate(abs(value.adjusted()))


def pay_for_strftime(budget: ExecutionBudget, template: Value, value: Value = None) -> None:
    """Pay for a date as text: `%c` makes twelve characters of one, a width as many as it says, up to a limit.

    `%Z` makes as many as the zone's name has, which model code may choose.
    """
    if isinstance(template, str):
        budget.work(len(template) >> 2)
        zone = getattr(value, "tzinfo", None)
        if zone is not None and "Z" in template:
            name = value.tzname() or ""
            budget.allocate(4 * template.count("Z") * len(name) * (_USUAL if "%" in name else 1))
        if len(template) > _SHORT:
            has_widths = re.search(r"%[-_0^#EO]*\d", template) is not None
            budget.allocate(len(template) * (_WIDEST if has_widths else _USUAL))


def paid_format(budget: ExecutionBudget, value: Value, spec: Value = "") -> str:
    """Return `format(value, spec)`."""
    if isinstance(spec, str) and spec:
        pay_for_spec(budget, value, spec)
    pay_for_text(budget, value)
    text = format(value, spec)
    return text if isinstance(value, str) else without_addresses(text)


def paid_repr(budget: ExecutionBudget, value: Value) -> str:
    """Return `repr(value)` without memory addresses."""
    pay_for_text(budget, value)
    text = repr(value)
    return text if isinstance(value, str) else without_addresses(text)


def paid_str(budget: ExecutionBudget, value: Value) -> str:
    """Return `str(value)` without memory addresses."""
    pay_for_text(budget, value)
    return value if type(value) is str else without_addresses(str(value))


def _pay_for_widths(budget: ExecutionBudget, spec: str) -> None:
    for number in _LONG_NUMBER.findall(spec):
        budget.allocate(int(number[:20]))
