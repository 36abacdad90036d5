"""Operators of model-written code that can make much data, sets without an order, or text with addresses in it.

`x * y` compiles to `_statek_op_mul(x, y)`. Error types and messages are Python's own, because the operation itself is.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.ordered_set import stable_set, without_addresses

# Operands are whatever model-written code holds.
Value = Any
BinaryOperator = Callable[[Value, Value], Value]

_TEXTS: Final = (str, bytes)
_SEQUENCES: Final = (list, tuple, deque)
_POINTER_BYTES: Final = 8
_OF_SETS: Final[Mapping[str, BinaryOperator]] = {
    "or": operator.or_, "and": operator.and_, "xor": operator.xor, "sub": operator.sub,
    "ior": operator.ior, "iand": operator.iand, "ixor": operator.ixor, "isub": operator.isub,
}  # fmt: skip


def size_in_bytes(value: Value) -> int:
    """Return the bytes of a text or sequence, without those of its items; 0 for anything else."""
    if isinstance(value, _TEXTS):
        return len(value)
    return _POINTER_BYTES * len(value) if isinstance(value, _SEQUENCES) else 0


def counting_operators(budget: ExecutionBudget) -> dict[str, BinaryOperator]:
    """Return the operators by short name: `add`, and `iadd` for its augmented form."""
    found = {name: _of_sets(operation) for name, operation in _OF_SETS.items()}
    found |= {"add": _adding(budget, operator.add), "iadd": _adding(budget, operator.iadd)}
    found |= {"mul": _repeating(budget, operator.mul), "imul": _repeating(budget, operator.imul)}
    return found | {"mod": _formatting(budget, operator.mod), "imod": _formatting(budget, operator.imod)}


def _adding(budget: ExecutionBudget, operation: BinaryOperator) -> BinaryOperator:
    """Joining sequences counts the shorter one: the longer one is mostly forgotten at once."""

    def add(left: Value, right: Value) -> Value:
        if type(left) is not int:
            size = min(size_in_bytes(left), size_in_bytes(right))
            if size:
                budget.allocate(size)
        return operation(left, right)

    return add


def _repeating(budget: ExecutionBudget, operation: BinaryOperator) -> BinaryOperator:
    def multiply(left: Value, right: Value) -> Value:
        times, size = (left, size_in_bytes(right)) if type(left) is int else (right, size_in_bytes(left))
        if size and type(times) is int and times > 0:
            budget.allocate(times * size)
        return operation(left, right)

    return multiply


def _formatting(budget: ExecutionBudget, operation: BinaryOperator) -> BinaryOperator:
    """`%` is a division for numbers and formatting for text."""

    def modulo(left: Value, right: Value) -> Value:
        result = operation(left, right)
        if type(result) is str:
            budget.allocate(len(result))
            return without_addresses(result)
        return result

    return modulo


def _of_sets(operation: BinaryOperator) -> BinaryOperator:
    return lambda left, right: stable_set(operation(left, right))
