"""Paying for text that model-written code formats: f-strings, `format`, `str` and `repr`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.sandbox.weigh import SCALARS, is_container, pay_for_walk

# What is formatted is up to model-written code.
Value = Any

_LONG_NUMBER: Final = re.compile(r"\d{4,}")
_NESTED_FIELD: Final = re.compile(r"\{[^{}]*\{")
_REPR: Final = "while getting the repr of an object"


def pay_for_text(budget: ExecutionBudget, value: Value) -> None:
    """Pay for turning `value` into text."""
    if type(value) in SCALARS:
        return
    if is_container(value):
        budget.allocate(pay_for_walk(budget, value, _REPR))
    elif isinstance(value, str | bytes):
        budget.copied(len(value))


def pay_for_template(budget: ExecutionBudget, template: str, values: Iterable[Value]) -> None:
    """Pay for `template.format(...)`: widths written out or taken from the values, and the values' own text."""
    _pay_for_widths(budget, template)
    nested = _NESTED_FIELD.search(template) is not None
    fields = template.count("{")
    for value in values:
        if isinstance(value, int):
            budget.allocate(abs(value) if nested else 0)
        elif type(value) not in SCALARS:
            budget.allocate(fields * pay_for_walk(budget, value, _REPR))


def paid_format(budget: ExecutionBudget, value: Value, spec: str = "") -> str:
    """Return `format(value, spec)`."""
    if isinstance(spec, str):
        _pay_for_widths(budget, spec)
        if isinstance(value, Decimal) and spec and value.is_finite():
            # Without an exponent, as `f` and `%` write it.
            budget.allocate(abs(value.adjusted()))
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
