"""Paying for what a call takes in: every item of its arguments, hashed or compared where the call does so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.lazy import GuardedGenerator, LazyIterator, iterated
from statek_sim.sandbox.operators import ENTRY_BYTES, INTEGER_BYTES, length
from statek_sim.sandbox.ordered_set import stable_set
from statek_sim.sandbox.weigh import HASH_MODULUS, is_container, pay_for_hash, pay_for_walk

# Receivers and arguments are whatever model-written code holds.
Value = Any
Args = tuple[Value, ...]

_PLACES_SHIFT: Final = 10
_COMPARING_SHIFT: Final = 4
"""Comparing 16 items takes as long as one iteration, a dozen times."""

CallPayment = Callable[[ExecutionBudget, Value, Args, Mapping[str, Value]], Args]
"""Called before the call it pays for, with budget, receiver, positional and named arguments.

Returns the positional arguments to use, which differ from those given only where order or memory addresses would
otherwise leak into the result.
"""


def pay_for_items(budget: ExecutionBudget, values: Iterable[Value], bytes_each: int) -> None:
    """Charge taking in every item of the sized ones among `values`."""
    for value in values:
        size = length(value)
        budget.scan(size)
        budget.allocate(size * (INTEGER_BYTES if isinstance(value, range) else bytes_each))
        iterated(budget, value)


def in_fixed_order(args: Args) -> Args:
    """Return the arguments with plain sets replaced by ordered ones."""
    return tuple(map(stable_set, args))


def pay_for_comparing(budget: ExecutionBudget, args: Args) -> None:
    """Charge comparing what is inside the arguments."""
    for value in args:
        if is_container(value):
            pay_for_walk(budget, value, "in comparison")


def _pay_for_places(budget: ExecutionBudget, value: Value) -> None:
    """Charge integers that Python's hash may put in one place: each is compared with those before it."""
    if isinstance(value, list | tuple | deque | dict | set | frozenset):
        colliding = sum(type(item) is int and not -HASH_MODULUS < item < HASH_MODULUS for item in value)
        budget.work(colliding * colliding >> _PLACES_SHIFT)


def pay_for_sorting(budget: ExecutionBudget, value: Value) -> None:
    """Charge comparing the items of `value` as often as sorting does."""
    if is_container(value):
        rounds = length(value).bit_length()
        weight = pay_for_walk(budget, value, "in comparison")
        nested = any(map(is_container, value)) if isinstance(value, list | tuple | deque) else False
        budget.scan(weight * rounds >> (0 if nested else 4))


def pays_for_comparing(budget: ExecutionBudget, key: Callable[[Value], Value]) -> Callable[[Value], Value]:
    """Return `key` with results that pay for being compared a few times each; each call of it counts, too."""

    def paid(item: Value) -> Value:
        budget.tick()
        found = key(item)
        if is_container(found):
            budget.work(pay_for_walk(budget, found, "in comparison") >> _COMPARING_SHIFT)
        elif isinstance(found, str | bytes):
            budget.scan(len(found))
        return found

    return paid


def paid_entries(budget: ExecutionBudget, args: Args) -> Args:
    """Pay for making dict or set entries of everything in `args`; return it in a fixed order."""
    pay_for_items(budget, args, ENTRY_BYTES)
    pay_for_comparing(budget, args)
    for value in args:
        _pay_for_places(budget, value)
    return tuple(
        _hashed_one_by_one(budget, value)
        if isinstance(value, LazyIterator | GuardedGenerator)
        else stable_set(value)
        for value in args
    )


def _hashed_one_by_one(budget: ExecutionBudget, items: Iterable[Value]) -> Iterator[Value]:
    for item in items:
        if is_container(item):
            pay_for_walk(budget, item, "while hashing a value")
        else:
            pay_for_hash(budget, item)
        yield item
