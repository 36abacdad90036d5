"""What methods of Python's own types cost: `'x'.ljust(n)`, `items.extend(more)`, `text.replace(a, b)`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Final

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.formatting import pay_for_template
from statek_sim.sandbox.intake import (
    Args,
    CallPayment,
    Value,
    in_fixed_order,
    paid_entries,
    pay_for_comparing,
    pay_for_items,
)
from statek_sim.sandbox.operators import POINTER_BYTES, length, size_in_bytes
from statek_sim.sandbox.ordered_set import stable_set
from statek_sim.sandbox.weigh import pay_for_hash

_PIECE_BYTES: Final = 16
_MUCH_TEXT: Final = 65_536


def _copying(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    size = size_in_bytes(owner)
    if isinstance(owner, str | bytes):
        budget.copied(size)
    else:
        budget.allocate(size)
    budget.scan(size >> 4)
    return args


def _searching(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    pay_for_comparing(budget, args)
    if isinstance(owner, list | tuple | deque):
        budget.scan(2 * len(owner))
    elif isinstance(owner, str | bytes):
        budget.scan(len(owner) >> 4)
    elif isinstance(owner, range) and args and not isinstance(args[0], int):
        budget.scan(length(owner))
    return args


def _hashing(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    for value in args[:1]:
        pay_for_hash(budget, value)
    return args


def _moving(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """`insert` and `pop` move the items behind, which is quick; `pop` of a dict hashes."""
    pay_for_hash(budget, args[0] if args else None)
    if isinstance(owner, list | deque):
        budget.scan(len(owner) >> 3)
    return args


def _sorting(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    if kwargs.get("key") is None:
        pay_for_comparing(budget, (owner,))
    budget.scan(4 * length(owner))
    return args


def _splitting(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    size = size_in_bytes(owner)
    budget.allocate(size if size < _MUCH_TEXT else _PIECE_BYTES * size)
    return args


def _padding(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    if args and isinstance(args[0], int) and args[0] > length(owner):
        budget.allocate(args[0])
    return args


def _expanding_tabs(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    width = args[0] if args else kwargs.get("tabsize", 8)
    if isinstance(width, int):
        budget.allocate(length(owner) + _tabs(owner) * max(0, width))
    return args


def _tabs(text: Value) -> int:
    return sum(char in ("\t", 9) for char in text)


def _occurrences(text: Value, part: Value) -> int:
    return int(text.count(part))


def _replacing(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    if len(args) >= 2 and isinstance(owner, str | bytes) and type(args[0]) is type(args[1]) is type(owner):
        found = _occurrences(owner, args[0])
        limit = args[2] if len(args) > 2 else kwargs.get("count", -1)
        if isinstance(limit, int) and limit >= 0:
            found = min(found, limit)
        budget.allocate(max(0, found * (len(args[1]) - len(args[0]))))
        budget.copied(len(owner))
    return args


def _joining(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    if len(args) != 1 or not isinstance(args[0], Iterable):
        return args
    pay_for_items(budget, args, 0)
    items = args[0] if isinstance(args[0], list | tuple) else list(stable_set(args[0]))
    try:
        budget.allocate(sum(map(len, items)) + length(owner) * len(items))
    except TypeError:
        # An item that is no text: join says so better.
        pass
    return (items,)


def _translating(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    table = args[0] if args else None
    if isinstance(owner, str) and isinstance(table, dict):
        longest = max((len(value) for value in table.values() if isinstance(value, str)), default=1)
        budget.allocate(len(owner) * longest)
    return args


def _formatting(budget: ExecutionBudget, owner: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    if isinstance(owner, str):
        pay_for_template(budget, owner, (*args, *kwargs.values()))
    return args


def _taking_in(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    if not isinstance(owner, type) and isinstance(owner, set | frozenset):
        budget.allocate(size_in_bytes(owner))
    return paid_entries(budget, args)


def _extending(budget: ExecutionBudget, _: Value, args: Args, __: Mapping[str, Value]) -> Args:
    pay_for_items(budget, args, POINTER_BYTES)
    return in_fixed_order(args)


def _to_bytes(budget: ExecutionBudget, _: Value, args: Args, kwargs: Mapping[str, Value]) -> Args:
    size = args[0] if args else kwargs.get("length", 1)
    if isinstance(size, int) and size > 0:
        budget.allocate(size)
    return args


def _repeating(budget: ExecutionBudget, owner: Value, args: Args, _: Mapping[str, Value]) -> Args:
    """`Counter.elements` gives each key as often as it was counted."""
    if isinstance(owner, Counter):
        counts: Iterable[Value] = owner.values()
        budget.work(sum(max(0, count) for count in counts if isinstance(count, int)))
    return args


def _named(payment: CallPayment, names: str) -> dict[str, CallPayment]:
    return dict.fromkeys(names.split(), payment)


METHODS: Final[Mapping[str, CallPayment]] = {
    **_named(
        _copying,
        "upper lower title swapcase capitalize casefold strip lstrip rstrip encode decode hex copy removeprefix"
        " removesuffix fromhex from_bytes rotate partition rpartition",
    ),
    **_named(
        _searching, "count index rindex find rfind remove isdigit isalpha isalnum isspace isupper islower"
    ),
    **_named(_hashing, "add get setdefault discard"),
    **_named(_moving, "insert pop"),
    **_named(_sorting, "sort"),
    **_named(_splitting, "split rsplit splitlines"),
    **_named(_padding, "ljust rjust center zfill"),
    **_named(_expanding_tabs, "expandtabs"),
    **_named(_replacing, "replace"),
    **_named(_joining, "join"),
    **_named(_translating, "translate"),
    **_named(_formatting, "format format_map"),
    **_named(
        _taking_in,
        "update union intersection difference symmetric_difference intersection_update difference_update"
        " symmetric_difference_update issubset issuperset isdisjoint fromkeys subtract most_common",
    ),
    **_named(_extending, "extend extendleft"),
    **_named(_to_bytes, "to_bytes"),
    **_named(_repeating, "elements"),
}
"""Method name -> payment, for methods of Python's own types."""
