"""Operators and lazy iterators that count the work they do, for use by model-written code.

Helpers replace operators that can create large amounts of data, sets without a fixed order, or strings with
memory addresses. For example, `x * y` compiles to `_statek_op_mul(x, y)`. Error types and messages are
Python's own, because the helpers call Python's operators.

`sum(itertools.count())` loops in C, where iterations are not counted. Therefore, iterators count their own
items: `map`, `zip`, `filter`, `enumerate`, `reversed`, `iter`, all iterators in itertools, and generators.
"""

from __future__ import annotations

import builtins
import itertools
import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.ordered_set import stable_set, without_addresses

# Operands are any values of model-written code.
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
    """Return the size in bytes of a string or sequence, excluding its items, or 0 for any other value."""
    if isinstance(value, _TEXTS):
        return len(value)
    return _POINTER_BYTES * len(value) if isinstance(value, _SEQUENCES) else 0


def counting_operators(budget: ExecutionBudget) -> dict[str, BinaryOperator]:
    """Return the counting operators, keyed by name: `add` for `+`, `iadd` for `+=`, and so on."""
    found = {name: _of_sets(operation) for name, operation in _OF_SETS.items()}
    found |= {"add": _adding(budget, operator.add), "iadd": _adding(budget, operator.iadd)}
    found |= {"mul": _repeating(budget, operator.mul), "imul": _repeating(budget, operator.imul)}
    return found | {"mod": _formatting(budget, operator.mod), "imod": _formatting(budget, operator.imod)}


def _adding(budget: ExecutionBudget, operation: BinaryOperator) -> BinaryOperator:
    """Return a `+` operator that counts the shorter of two sequences, because the longer one is usually freed."""

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
    """Return a `%` operator that counts formatted strings and removes memory addresses from them."""

    def modulo(left: Value, right: Value) -> Value:
        result = operation(left, right)
        if type(result) is str:
            budget.allocate(len(result))
            return without_addresses(result)
        return result

    return modulo


def _of_sets(operation: BinaryOperator) -> BinaryOperator:
    return lambda left, right: stable_set(operation(left, right))


# Items are any values of model-written code.
Item = Any

_MAKING: Final = 2
"""Iterations charged for creating an iterator or generator."""


class LazyIterator:
    """Wraps the iterator `source` and counts one iteration per item.

    The attributes have a prefix that model-written code may not use, because they give access to the budget.
    """

    __slots__ = ("_statek_next", "_statek_source", "_statek_tick")

    def __init__(self, budget: ExecutionBudget, source: Iterator[Item]) -> None:
        budget.tick(_MAKING)
        self._statek_source = source
        self._statek_next = source.__next__
        self._statek_tick = budget.tick

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        self._statek_tick()
        return self._statek_next()

    def __repr__(self) -> str:
        return without_addresses(repr(self._statek_source))


def stands_for(value: Any) -> Any:
    """Unwrap the Python iterator or generator in one of this module's wrappers; return any other value unchanged."""
    if isinstance(value, LazyIterator):
        return stands_for(value._statek_source)
    return value._statek_generator if isinstance(value, GuardedGenerator) else value


class GuardedGenerator:
    """Wraps a generator from model-written code, and counts each resumption as a call."""

    __slots__ = ("_statek_budget", "_statek_generator")

    def __init__(self, budget: ExecutionBudget, generator: Any) -> None:
        budget.tick(_MAKING)
        self._statek_budget = budget
        self._statek_generator = generator

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        return self._statek_resume(self._statek_generator.__next__)

    def __del__(self) -> None:
        # Nothing could handle an exception raised here by model-written code.
        with suppress(BaseException):
            self._statek_generator.close()

    def send(self, value: Item) -> Item:
        """Resume the generator with `value` as the result of its `yield`, and return the next item."""
        return self._statek_resume(self._statek_generator.send, value)

    def throw(self, *error: Item) -> Item:
        """Resume the generator by raising `error` at its `yield`, and return the next item."""
        return self._statek_resume(self._statek_generator.throw, *error)

    def close(self) -> None:
        """Close the generator."""
        self._statek_generator.close()

    def __repr__(self) -> str:
        return without_addresses(repr(self._statek_generator))

    def _statek_resume(self, how: Callable[..., Item], *args: Item) -> Item:
        self._statek_budget.enter()
        try:
            return how(*args)
        finally:
            self._statek_budget.leave()


GuardedGenerator.__name__ = GuardedGenerator.__qualname__ = "generator"
GuardedGenerator.__module__ = "builtins"


def consumed(budget: ExecutionBudget, value: Item) -> Item:
    """Return `value` as an argument for C code: plain sets become ordered sets, and items of a range are counted.

    They are not counted elsewhere, because a range stores no data.
    """
    if type(value) is range:
        budget.scan(_length(value))
        return value
    return stable_set(value)


def counted(budget: ExecutionBudget, iterable: Item) -> Item:
    """Return an iterable that counts each item of `iterable`; iterables that already count are returned unchanged.

    Values that are not iterable are also returned unchanged, so that the caller raises its own error.
    """
    if isinstance(iterable, LazyIterator | GuardedGenerator) or not isinstance(iterable, Iterable):
        return iterable
    return LazyIterator(budget, builtins.iter(stable_set(iterable)))


def lazy_builtins(budget: ExecutionBudget) -> dict[str, Any]:
    """Return counting replacements for `map`, `zip`, `filter`, `enumerate`, `reversed` and `iter`, keyed by name."""

    def iterator(*args: Item) -> Item:
        found = builtins.iter(*(args if len(args) == 2 else map(stable_set, args)))
        return found if args and found is args[0] else LazyIterator(budget, found)

    return {**{kind.__name__: _lazy(budget, kind) for kind in _BUILTIN_KINDS}, "iter": iterator}


def lazy_itertools(budget: ExecutionBudget) -> dict[str, Any]:
    """Return counting replacements for everything that itertools exports, keyed by name."""

    def from_iterable(iterables: Item, /) -> LazyIterator:
        return LazyIterator(budget, itertools.chain.from_iterable(counted(budget, iterables)))

    def tee(iterable: Item, n: Item = 2, /) -> tuple[LazyIterator, ...]:
        return tuple(LazyIterator(budget, copy) for copy in itertools.tee(counted(budget, iterable), n))

    made: dict[str, Any] = {kind.__name__: _lazy(budget, kind) for kind in _ITERTOOLS_KINDS}
    made["chain"].from_iterable = from_iterable
    made["tee"] = tee
    return made


def _lazy(budget: ExecutionBudget, kind: Any) -> Any:
    """Return a counting class that replaces `kind`, one of Python's lazy iterator types."""
    # Iterators that may consume many items without yielding one also count the consumed items.
    prepared = counted if kind in _SKIPPING else _in_order

    def initialize(self: LazyIterator, *args: Item, **kwargs: Item) -> None:
        if kind is not itertools.repeat:
            args = tuple(value if callable(value) else prepared(budget, value) for value in args)
            kwargs = {
                name: value if callable(value) else prepared(budget, value) for name, value in kwargs.items()
            }
        LazyIterator.__init__(self, budget, kind(*args, **kwargs))

    members = {"__slots__": (), "__init__": initialize, "__module__": kind.__module__}
    return type(kind.__name__, (LazyIterator,), members)


def _in_order(_: ExecutionBudget, value: Item) -> Item:
    return stable_set(value)


def _length(value: range) -> int:
    try:
        return len(value)
    except OverflowError:
        # The range is longer than the largest index.
        return 1 << 62


_BUILTIN_KINDS: Final[tuple[Any, ...]] = (
    builtins.map, builtins.zip, builtins.filter, builtins.enumerate, builtins.reversed,
)  # fmt: skip
_ITERTOOLS_KINDS: Final[tuple[Any, ...]] = (
    itertools.accumulate, itertools.chain, itertools.combinations, itertools.combinations_with_replacement,
    itertools.compress, itertools.count, itertools.cycle, itertools.dropwhile, itertools.filterfalse,
    itertools.groupby, itertools.islice, itertools.pairwise, itertools.permutations, itertools.product,
    itertools.repeat, itertools.starmap, itertools.takewhile, itertools.zip_longest,
)  # fmt: skip
_SKIPPING: Final[tuple[Any, ...]] = (
    builtins.filter, itertools.compress, itertools.cycle, itertools.dropwhile, itertools.filterfalse,
    itertools.groupby, itertools.islice,
)  # fmt: skip
