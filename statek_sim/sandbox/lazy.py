"""Lazy iterators of model-written code: every item is paid for, wherever it is consumed.

`sum(itertools.count())` runs inside C, where no loop of the code ticks. So the iterators themselves do: `map`, `zip`,
`filter`, `enumerate`, `reversed`, `iter`, everything from itertools, and generators.
"""

from __future__ import annotations

import builtins
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from gc import get_referents
from typing import Any, Final

from statek_sim.sandbox.budget import LONG_INTEGER, ExecutionBudget
from statek_sim.sandbox.operators import POINTER_BYTES, length, pay_for_add, paying_operators
from statek_sim.sandbox.ordered_set import stable_set, without_addresses

# Items are whatever model-written code puts there.
Item = Any
Guard = Callable[[Item], Item]
"""Takes a callable from model code, returns one that pays before it does expensive work."""

_VIEWS: Final[tuple[type[Any], ...]] = (type({}.keys()), type({}.values()), type({}.items()))
_UNPACKED_WITHIN: Final[tuple[type[Any], ...]] = (list, tuple, dict, set, frozenset, deque, *_VIEWS)
_PLACE_BYTES: Final = 40
"""What a place for an entry takes in a large dict, whether it is used or not."""
_MANY_PLACES: Final = 20_000
_PLACES_SHIFT: Final = 10
_MAKING: Final = 2
"""Making an iterator or generator takes as long as two iterations; they can be made around each other."""
_SHOWING: Final = 4
_WIDE: Final = 16
SORTING: Final = 128
"""Putting a set in order costs an iteration for each item: what `scan` charges 128 items for."""


class LazyIterator:
    """An iterator that pays one iteration per item. `source` is the Python iterator that it stands for.

    Its attributes have a prefix that model code may not name: they would lead to the budget.
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
        if isinstance(self._statek_source, itertools.repeat):
            # It shows what it repeats, which may hold others of its kind, each shown as often as it is met.
            self._statek_tick(_SHOWING)
        return without_addresses(repr(self._statek_source))


def stands_for(value: Any) -> Any:
    """Return Python's own iterator or generator in the place of ours, anything else as it is."""
    if isinstance(value, LazyIterator):
        return stands_for(value._statek_source)
    return value._statek_generator if isinstance(value, GuardedGenerator) else value


class GuardedGenerator:
    """A generator of model-written code that counts each resumption as a call."""

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
        # Nobody is left to tell when the model's code raises here.
        with suppress(BaseException):
            self._statek_generator.close()

    def send(self, value: Item) -> Item:
        """Resume with `value` as the result of `yield`."""
        return self._statek_resume(self._statek_generator.send, value)

    def throw(self, *error: Item) -> Item:
        """Resume by raising `error` at the `yield`."""
        return self._statek_resume(self._statek_generator.throw, *error)

    def close(self) -> None:
        """End the generator."""
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


def iterated(budget: ExecutionBudget, iterable: Item) -> Item:
    """Return `iterable` in a fixed order; pay for finding that order if it is a set.

    A dict pays for finding its first entry: Python passes over each place from which one was deleted.
    """
    if isinstance(iterable, set | frozenset):
        budget.scan(SORTING * len(iterable))
        return stable_set(iterable)
    if isinstance(iterable, _VIEWS):
        _pay_for_empty_places(budget, get_referents(iterable)[0])
    elif isinstance(iterable, dict):
        _pay_for_empty_places(budget, iterable)
    return iterable


def _pay_for_empty_places(budget: ExecutionBudget, table: dict[Item, Item]) -> None:
    places = dict.__sizeof__(table) // _PLACE_BYTES
    if places >= _MANY_PLACES:
        budget.work(max(0, places - len(table)) >> _PLACES_SHIFT)


def paying_items(budget: ExecutionBudget, iterable: Item) -> Item:
    """Return an iterable that pays per item, if `iterable` does not do so already.

    Values that cannot be iterated come back as they are, for the caller's own error.
    """
    if isinstance(iterable, LazyIterator | GuardedGenerator) or not isinstance(iterable, Iterable):
        return iterable
    return _ticking(budget, iterated(budget, iterable))


def spread(budget: ExecutionBudget, value: Item, depth: int = 0) -> Item:
    """Pay for unpacking `value` into new references at once, as in `[*value]`; return it in a fixed order.

    What is unpacked inside it, `depth` levels down, as in `a, (b, *c) = value`, pays too.
    """
    size = length(value)
    budget.scan(size)
    budget.allocate(POINTER_BYTES * size)
    if depth and isinstance(value, _UNPACKED_WITHIN):
        for item in value:
            budget.tick()
            spread(budget, item, depth - 1)
    return iterated(budget, value)


def spread_in_set(budget: ExecutionBudget, value: Iterable[Item]) -> Iterator[Item]:
    """As `spread`, for `{*value}`, where Python refuses what has no items in the words of a loop."""
    return iter(spread(budget, value))


def _ticking(budget: ExecutionBudget, iterable: Iterable[Item]) -> Iterator[Item]:
    tick = budget.tick
    for item in iterable:
        tick()
        yield item


class LazyTypes:
    """Makes the types that stand for Python's lazy iterator types, bound to one budget."""

    def __init__(self, budget: ExecutionBudget, guard: Guard) -> None:
        self._budget = budget
        self._guard = guard

    def builtins(self) -> dict[str, object]:
        """Return `map`, `zip`, `filter`, `enumerate`, `reversed` and `iter`."""
        made: dict[str, object] = {name: self._type(kind) for name, kind in _BUILTIN_KINDS.items()}
        made["iter"] = self.iterator
        return made

    def itertools(self) -> dict[str, object]:
        """Return every export of itertools."""
        made: dict[str, Any] = {name: self._type(kind) for name, kind in _ITERTOOLS_KINDS.items()}
        made["chain"].from_iterable = self._chain_from_iterable
        made["tee"] = self._tee
        return made

    def iterator(self, *args: Item) -> Item:
        """Return what `iter(iterable)` or `iter(function, sentinel)` returns."""
        if len(args) == 2:
            return LazyIterator(self._budget, builtins.iter(self._guard(args[0]), args[1]))
        found = builtins.iter(*(iterated(self._budget, value) for value in args))
        if found is args[0]:
            return found
        return LazyIterator(self._budget, found)

    def _chain_from_iterable(self, iterables: Item, /) -> LazyIterator:
        return LazyIterator(self._budget, itertools.chain.from_iterable(iterated(self._budget, iterables)))

    def _tee(self, iterable: Item, n: Item = 2, /) -> tuple[LazyIterator, ...]:
        self._budget.allocate(64 * n if isinstance(n, int) and n > 0 else 0)
        return tuple(
            LazyIterator(self._budget, copy) for copy in itertools.tee(iterated(self._budget, iterable), n)
        )

    def _type(self, kind: _Kind) -> Any:
        budget, make = self._budget, self._make

        def initialize(self: LazyIterator, *args: Item, **kwargs: Item) -> None:
            LazyIterator.__init__(self, budget, make(kind, args, kwargs))

        name, module = kind.real.__name__, kind.real.__module__
        return type(name, (LazyIterator,), {"__slots__": (), "__init__": initialize, "__module__": module})

    def _make(self, kind: _Kind, args: tuple[Item, ...], kwargs: dict[str, Item]) -> Iterator[Item]:
        width = kind.width(args, kwargs)
        self._budget.allocate(POINTER_BYTES * width)
        if kind.real is itertools.accumulate:
            args, kwargs = self._with_paid_sum(args, kwargs)
        if kind.real is not itertools.repeat:
            args = tuple(self._prepared(kind, value) for value in args)
            kwargs = {name: self._prepared(kind, value) for name, value in kwargs.items()}
        rows = kind.real(*args, **kwargs)
        if kind.real is itertools.count and any(map(_is_long, (*args, *kwargs.values()))):
            return self._counted(rows, *args[1:], *kwargs.values())
        return rows if width < _WIDE else self._charged(rows, POINTER_BYTES * width)

    def _with_paid_sum(
        self, args: tuple[Item, ...], kwargs: dict[str, Item]
    ) -> tuple[tuple[Item, ...], dict[str, Item]]:
        """Return arguments of `accumulate` with an addition that pays, where none is named."""
        if (args[1] if len(args) > 1 else kwargs.get("func")) is not None:
            return args, kwargs
        add = paying_operators(self._budget)["add"]
        if len(args) > 1:
            return (args[0], add, *args[2:]), kwargs
        return args, {**kwargs, "func": add}

    def _prepared(self, kind: _Kind, value: Item) -> Item:
        if callable(value):
            return self._guard(value)
        if kind.spreads and hasattr(value, "__iter__"):
            return (spread(self._budget, row) for row in paying_items(self._budget, value))
        return paying_items(self._budget, value) if kind.skips else iterated(self._budget, value)

    def _counted(self, rows: Iterator[Item], *steps: Item) -> Iterator[Item]:
        """Charge long numbers as adding them does."""
        for row in rows:
            for step in steps:
                pay_for_add(self._budget, row, step)
            self._budget.allocate(
                sum(value.bit_length() >> 3 for value in (row, *steps) if isinstance(value, int))
            )
            yield row

    def _charged(self, rows: Iterator[Item], size: int) -> Iterator[Item]:
        """Charge long tuples by their length too, not only their number."""
        for row in rows:
            self._budget.allocate(size)
            yield row


def _is_long(value: Item) -> bool:
    return isinstance(value, Fraction) or (isinstance(value, int) and value.bit_length() > LONG_INTEGER)


Width = Callable[[tuple[Item, ...], dict[str, Item]], int]


def _narrow(_args: tuple[Item, ...], _kwargs: dict[str, Item]) -> int:
    return 0


def _one_per_input(args: tuple[Item, ...], kwargs: dict[str, Item]) -> int:
    repeat = kwargs.get("repeat", 1)
    return len(args) * max(0, repeat) if isinstance(repeat, int) else 0


def _chosen(args: tuple[Item, ...], kwargs: dict[str, Item]) -> int:
    r = kwargs.get("r", args[1] if len(args) > 1 else None)
    if isinstance(r, int):
        return max(0, r)
    return length(args[0]) if args else 0


@dataclass(frozen=True, slots=True)
class _Kind:
    """One lazy type: `skips` when it may take many items and give none, `spreads` when it unpacks each item."""

    real: Any
    skips: bool = False
    spreads: bool = False
    width: Width = _narrow


_BUILTIN_KINDS: Final = {
    "map": _Kind(builtins.map),
    "zip": _Kind(builtins.zip, width=_one_per_input),
    "filter": _Kind(builtins.filter, skips=True),
    "enumerate": _Kind(builtins.enumerate),
    "reversed": _Kind(builtins.reversed),
}
_ITERTOOLS_KINDS: Final = {
    "accumulate": _Kind(itertools.accumulate),
    "chain": _Kind(itertools.chain),
    "combinations": _Kind(itertools.combinations, skips=True, width=_chosen),
    "combinations_with_replacement": _Kind(
        itertools.combinations_with_replacement, skips=True, width=_chosen
    ),
    "compress": _Kind(itertools.compress, skips=True),
    "count": _Kind(itertools.count),
    "cycle": _Kind(itertools.cycle, skips=True),
    "dropwhile": _Kind(itertools.dropwhile, skips=True),
    "filterfalse": _Kind(itertools.filterfalse, skips=True),
    "groupby": _Kind(itertools.groupby, skips=True),
    "islice": _Kind(itertools.islice, skips=True),
    "pairwise": _Kind(itertools.pairwise),
    "permutations": _Kind(itertools.permutations, skips=True, width=_chosen),
    "product": _Kind(itertools.product, skips=True, width=_one_per_input),
    "repeat": _Kind(itertools.repeat),
    "starmap": _Kind(itertools.starmap, spreads=True),
    "takewhile": _Kind(itertools.takewhile),
    "zip_longest": _Kind(itertools.zip_longest, width=_one_per_input),
}
