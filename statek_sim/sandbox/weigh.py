"""What it costs to walk a value, including everything inside it.

`x = [x, x]` forty times is a small value whose `repr` has a million million items. Whatever walks a value inside C
(`repr`, `str`, `json.dumps`, comparing) is preceded by this walk, which pays as it goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from statek_sim.sandbox.budget import LONG_INTEGER, ExecutionBudget

SCALARS: Final = frozenset({int, float, bool, complex, type(None)})
"""Types whose values are walked in no time."""

_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.values()), type({}.items()))
_CONTAINERS: Final[tuple[type, ...]] = (
    list, tuple, dict, set, frozenset, deque, slice, BaseException, *_VIEWS,
)  # fmt: skip
_KEYS: Final = (tuple, frozenset)
_FLAT: Final = SCALARS | {str}
_NUMBERS: Final = frozenset({int, Decimal, Fraction})
_FLAT_SHIFT: Final = 3
_SHORT_BELOW: Final = 1 << LONG_INTEGER
_MOST_WRITTEN: Final = 15_000
_WRITING_SHIFT: Final = 22
HASH_MODULUS: Final = (1 << 61) - 1
"""Python's hash of an integer is the rest of dividing by this: multiples of it all have the same place in a dict."""

_COLLIDING: Final = 64
_HASHING_SHIFT: Final = 12
_DECIMAL_SHIFT: Final = 7
_MAX_NESTING: Final = 400
_PAY_EVERY: Final = 1024

# What a container holds is up to model-written code.
Value = Any


def is_container(value: Value) -> bool:
    """Return whether walking `value` means walking what is inside it."""
    return type(value) not in SCALARS and isinstance(value, _CONTAINERS)


def work_of_writing(bits: int) -> int:
    """Return the iterations that an integer takes as text: the square of its digits, of which 4,300 are the most."""
    return min(bits, _MOST_WRITTEN) ** 2 >> _WRITING_SHIFT


def pay_for_walk(budget: ExecutionBudget, value: Value, doing: str) -> int:
    """Charge a walk through `value` and return how many items and characters were met, repeats counted each time.

    A container met inside itself counts once. Raises `RecursionError` ("... while `doing`") for more than 400
    levels, where Python's own limit would depend on the stack.
    """
    return pay_for_deep_walk(budget, value, doing)[0]


def pay_for_deep_walk(budget: ExecutionBudget, value: Value, doing: str) -> tuple[int, int]:
    """As `pay_for_walk`; return how many levels of containers there are, too."""
    if not is_container(value):
        return (len(value) if isinstance(value, str | bytes) else 1), 0
    walk = _Walk(budget, doing)
    return walk.weight(value), walk.depth


MOST_UNFOLDED: Final = 5_000_000
"""Items that may be copied or compared at once: `x = [x, x]` forty times is a million million."""


def unfolded_size(value: Value) -> int:
    """Return how many items a walk through `value` meets that goes into a shared part each time it meets it.

    Worked out from the parts, each of which is looked at once, so it takes no longer than there is data. Containers
    more than 400 levels down, and one that is met inside itself, count as one item.
    """
    sizes: dict[int, int] = {}
    # The entries of a dict's view are made anew: while they are held, no other one has their identity.
    held: list[list[Value]] = []
    open_: list[_Counting] = []
    container: Value | None = value
    while True:
        if container is not None:
            inside = _inside(container)
            held.append(inside)
            flat = len(open_) >= _MAX_NESTING or set(map(type, inside)) <= _FLAT
            # Until all of it is counted: one item.
            sizes[id(container)] = 1
            open_.append(_Counting(container, iter(() if flat else inside), len(inside)))
        container = _next_inside(open_[-1], sizes)
        if container is None:
            done = open_.pop()
            sizes[id(done.container)] = done.total
            if not open_:
                return done.total
            open_[-1].total += done.total


class _Counting:
    """A container whose items are being counted: those that remain, and how many there are so far."""

    __slots__ = ("container", "rest", "total")

    def __init__(self, container: Value, rest: Iterator[Value], total: int) -> None:
        self.container = container
        self.rest = rest
        self.total = total


def _next_inside(counting: _Counting, sizes: Mapping[int, int]) -> Value | None:
    """Count items up to the next container whose size is not known, and return it; None when there is none."""
    for item in counting.rest:
        if is_container(item):
            known = sizes.get(id(item))
            if known is None:
                return item
            counting.total += known
    return None


def pay_for_hash(budget: ExecutionBudget, value: Value) -> None:
    """Charge hashing `value`, which for a tuple means hashing what is inside it."""
    if isinstance(value, _KEYS):
        pay_for_walk(budget, value, "while hashing a value")
    elif type(value) is int and not -HASH_MODULUS < value < HASH_MODULUS:
        budget.work(_COLLIDING)
    elif isinstance(value, Fraction):
        budget.work(value.numerator.bit_length() + value.denominator.bit_length() >> _HASHING_SHIFT)
    elif isinstance(value, Decimal):
        budget.work(value.__sizeof__() >> _DECIMAL_SHIFT)


class _Walk:
    """One walk, depth first, with a stack of its own."""

    __slots__ = ("_budget", "_doing", "_looked_at", "_met", "_open", "_path", "_unpaid", "depth")

    def __init__(self, budget: ExecutionBudget, doing: str) -> None:
        self._budget = budget
        self._doing = doing
        self._met = 0
        self._unpaid = 0
        self._looked_at = 0
        self.depth = 1
        self._path: list[Iterator[Value]] = []
        self._open: dict[int, None] = {}

    def weight(self, value: Value) -> int:
        """Walk through the container `value`."""
        self._enter(value)
        while self._path:
            for item in self._path[-1]:
                self._meet(1)
                if isinstance(item, str | bytes):
                    self._met += len(item)
                elif type(item) in _NUMBERS:
                    self._meet_number(item)
                elif is_container(item) and id(item) not in self._open and self._enter(item):
                    break
            else:
                self._path.pop()
                self._open.popitem()
        self._budget.work(self._unpaid)
        return self._met

    def _enter(self, container: Value) -> bool:
        """Go into a container, or count it at once if it holds nothing but numbers and text."""
        inside = _inside(container)
        self._unpaid += 1
        kinds = set(map(type, inside))
        if kinds <= _FLAT:
            self._met += len(inside)
            # Sets are put in order whenever they are shown.
            self._unpaid += len(inside) >> (0 if isinstance(container, set | frozenset) else _FLAT_SHIFT)
            if str in kinds:
                self._met += sum(len(item) for item in inside if type(item) is str)
            if int in kinds:
                for number in _long_integers(inside, kinds):
                    self._meet_number(number)
            if self._path:
                return False
            inside = []
        self._looked_at += len(inside)
        if len(self._path) >= _MAX_NESTING:
            # Code that catches the error may do it again and again; on the way down little was paid for.
            self._budget.work(self._unpaid + (self._looked_at >> _FLAT_SHIFT))
            raise RecursionError(f"maximum recursion depth exceeded {self._doing}")
        self._open[id(container)] = None
        self._path.append(iter(inside))
        # What is counted at once, without being gone into, is one level further down.
        self.depth = max(self.depth, len(self._path) + 1)
        return True

    def _meet_number(self, number: Value) -> None:
        """Count the digits of a long number, as text would have them."""
        if isinstance(number, Decimal):
            self._met += number.__sizeof__() << 1
            return
        for part in (number.numerator, number.denominator):
            if not -_SHORT_BELOW < part < _SHORT_BELOW:
                bits = part.bit_length()
                # Three digits for ten bits.
                self._met += bits * 5 >> 4
                self._unpaid += work_of_writing(bits)

    def _meet(self, items: int) -> None:
        self._met += items
        self._unpaid += items
        if self._unpaid >= _PAY_EVERY:
            self._budget.work(self._unpaid)
            self._unpaid = 0


def _long_integers(items: list[Value], kinds: set[type]) -> list[int]:
    if kinds == {int} and min(items) > -_SHORT_BELOW and max(items) < _SHORT_BELOW:
        return []
    return [item for item in items if type(item) is int and not -_SHORT_BELOW < item < _SHORT_BELOW]


def _inside(container: Value) -> list[Value]:
    if isinstance(container, dict):
        return [part for item in container.items() for part in item]
    if isinstance(container, set):
        return list(set.__iter__(container))
    if isinstance(container, slice):
        return [container.start, container.stop, container.step]
    if isinstance(container, BaseException):
        return list(container.args)
    return list(frozenset.__iter__(container)) if isinstance(container, frozenset) else list(container)
