"""What compiled code refers to: its helpers, and the builtins it may use."""

from __future__ import annotations

import builtins
import functools
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, GeneratorType
from typing import Any, Final

from statek_sim.clock import Clock
from statek_sim.errors import SandboxViolation
from statek_sim.sandbox import numbers, transform
from statek_sim.sandbox.budget import LONG_INTEGER, ExecutionBudget
from statek_sim.sandbox.call_guard import UNBOUND, CallGuard
from statek_sim.sandbox.formatting import paid_format, paid_repr, paid_str, pay_for_error, pay_for_text
from statek_sim.sandbox.intake import pay_for_sorting
from statek_sim.sandbox.lazy import GuardedGenerator, LazyTypes, iterated, spread, spread_in_set
from statek_sim.sandbox.llm_repr import llm_repr
from statek_sim.sandbox.modules import SandboxModule
from statek_sim.sandbox.operators import (
    POINTER_BYTES,
    bound_range,
    length,
    paying_operators,
    size_in_bytes,
    size_of_exact,
)
from statek_sim.sandbox.ordered_set import (
    OrderedFrozenSet,
    OrderedSet,
    stable_hash,
    stable_set,
    without_addresses,
)
from statek_sim.sandbox.paid_function import PaidFunction
from statek_sim.sandbox.policy import SandboxPolicy, check_import
from statek_sim.sandbox.weigh import HASH_MODULUS, is_container, pay_for_hash, pay_for_walk

# Values are whatever model-written code holds.
Value = Any

ALLOWED_BUILTINS: Final = (
    "abs", "all", "any", "bool", "bytes", "callable", "chr", "dict", "divmod", "enumerate", "filter", "float",
    "format", "frozenset", "hash", "hex", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max",
    "min", "next", "oct", "ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum",
    "tuple", "zip",
    "BaseException", "Exception", "RuntimeError", "ValueError", "TypeError", "KeyError", "IndexError", "LookupError",
    "NameError", "StopIteration",
)  # fmt: skip
"""What restricted code finds without importing. STATEK leaves out the rest, `hasattr` and `ZeroDivisionError` too."""

_FORMATTING: Final = ("format", "format_map")
_CALLED_AGAIN: Final = 8
_NAMED_SHIFT: Final = 5
"""Handing on 2**5 named arguments, from dict to dict, takes as long as one iteration."""

REACHING_SHIFT: Final = 16
"""Going to the middle of a deque of 2**16 items, block by block, takes as long as one iteration."""

_REPR_CONVERSION: Final = ord("r")
_STR_CONVERSION: Final = ord("s")


def build_helpers(
    budget: ExecutionBudget,
    *,
    resolve: Callable[[Value], Value],
    call: Callable[[Callable[..., Value], tuple[Value, ...], dict[str, Value]], Value],
    clock: Clock | None = None,
) -> dict[str, object]:
    """Return the helpers of compiled code by name, to be put into its namespace.

    `resolve` returns the value of a future and anything else as it is; `call(function, args, kwargs)` makes the
    call. A runtime that replaces `_statek_call` must pass the arguments of anything that is not a plain function
    through `CallGuard.prepare` first. `clock` is not read: no helper shows the time.
    """
    helpers: dict[str, object] = {
        transform.VALUE: resolve,
        transform.CALL: _calling(budget, CallGuard(budget, resolve), call),
        transform.TICK: budget.tick,
        transform.CHECK: budget.check,
        transform.ENTER: budget.enter,
        transform.LEAVE: budget.leave,
        transform.ITERATE: functools.partial(iterated, budget),
        "_statek_syntax_error": SyntaxError,
    }
    helpers.update(_function_helpers(budget))
    helpers.update(_item_helpers(budget))
    helpers.update(_data_helpers(budget))
    helpers.update(_text_helpers(budget))
    helpers.update({transform.OPERATOR + name: paid for name, paid in paying_operators(budget).items()})
    return helpers


def sandbox_builtins(
    policy: SandboxPolicy, modules: Mapping[str, SandboxModule], budget: ExecutionBudget
) -> dict[str, object]:
    """Return `__builtins__` for code under `policy`.

    Unrestricted code gets all of Python's, but those that can be endless or differ between processes are ours.
    """
    if not policy.restricted:
        return {**vars(builtins), **_paid_builtins(budget), **_LOOKING_AROUND}
    return {**_restricted_builtins(budget), "__import__": _importing(policy, modules)}


@functools.lru_cache(maxsize=8)
def _restricted_builtins(budget: ExecutionBudget) -> Mapping[str, object]:
    paid = _paid_builtins(budget)
    return {name: paid.get(name, getattr(builtins, name)) for name in ALLOWED_BUILTINS}


def _looking(function: Callable[..., Value], *, bound: bool = False) -> Callable[..., Value]:
    """Return `vars`, `locals` or `dir` for agent code: called without arguments they look at who calls them.

    That is STATEK's own function, which has the signature if Python could read one.
    """

    def look(*args: Value, **kwargs: Value) -> Value:
        if args or kwargs:
            return function(*args, **kwargs)
        names: dict[str, Value] = {"func": paid, "args": (), "kwargs": {}}
        if bound:
            signature = inspect.signature(function)
            names |= {"sig": signature, "bound": signature.bind()}
        return sorted(names) if function is dir else names

    paid = PaidFunction(function.__name__, look, function)
    return paid


_LOOKING_AROUND: Final = {
    "vars": _looking(vars),
    "locals": _looking(locals, bound=True),
    "dir": _looking(dir),
}


CALLING: Final = "call_helper"
"""The name of the function through which compiled code makes its calls, in Python's frames."""


def _calling(budget: ExecutionBudget, guard: CallGuard, call: Callable[..., Value]) -> Callable[..., Value]:
    prepare = guard.prepare

    def call_helper(func: Value, *args: Value, **kwargs: Value) -> Value:
        if type(func) is not FunctionType or func in UNBOUND:
            args = prepare(func, args, kwargs)
        if kwargs:
            budget.work(len(kwargs) >> _NAMED_SHIFT)
        try:
            result = call(func, args, kwargs)
        except (ValueError, TypeError):
            # STATEK reads the signature then, and calls once more.
            budget.work(_CALLED_AGAIN)
            raise
        kind = type(result)
        if kind is int:
            if result.bit_length() > LONG_INTEGER:
                budget.made_integer(result.bit_length())
        elif kind is set or kind is frozenset:
            return stable_set(result)
        elif kind is Decimal or kind is Fraction:
            budget.allocate(size_of_exact(result))
        elif kind is str and type(func) is BuiltinFunctionType and func.__name__ in _FORMATTING:
            return without_addresses(result)
        return result

    # Agents meet the name when they spread a non-mapping, or pass an argument named `func`.
    call_helper.__module__, call_helper.__qualname__ = "statek.executors.utils", "_smart_call"
    return call_helper


def _function_helpers(budget: ExecutionBudget) -> dict[str, object]:
    def run(body: Callable[[], Value], extra: int = 0) -> Value:
        budget.enter(extra)
        try:
            result = body()
        finally:
            budget.leave()
        return GuardedGenerator(budget, result) if type(result) is GeneratorType else result

    def generator(function: Callable[..., Value]) -> Callable[..., Value]:
        @functools.wraps(function)
        def guarded(*args: Value, **kwargs: Value) -> GuardedGenerator:
            return GuardedGenerator(budget, function(*args, **kwargs))

        return guarded

    def coroutine(function: Callable[..., Value]) -> Callable[..., Value]:
        @functools.wraps(function)
        def tracked(*args: Value, **kwargs: Value) -> Value:
            made = function(*args, **kwargs)
            budget.opened.append(made)
            return made

        return tracked

    return {
        transform.RUN: run,
        transform.GENERATOR: generator,
        transform.COROUTINE: coroutine,
        transform.GENERATED: functools.partial(GuardedGenerator, budget),
    }


def _item_helpers(budget: ExecutionBudget) -> dict[str, object]:
    def key(index: Value) -> Value:
        kind = type(index)
        if (
            kind is tuple
            or (kind is int and not -HASH_MODULUS < index < HASH_MODULUS)
            or isinstance(index, frozenset)
        ):
            pay_for_hash(budget, index)
        return index

    def item(container: Value, index: Value) -> Value:
        if type(container) is deque:
            budget.work(len(container) >> REACHING_SHIFT)
        return container[key(index)]

    def reached(container: Value) -> Value:
        if type(container) is deque:
            budget.work(len(container) >> REACHING_SHIFT)
        return container

    return {transform.KEY: key, transform.ITEM: item, transform.REACHED: reached}


def _data_helpers(budget: ExecutionBudget) -> dict[str, object]:
    def rows(iterable: Iterable[Value], depth: int = 0) -> Iterator[Value]:
        return (spread(budget, row, depth) for row in iterated(budget, iterable))

    def copied(value: Value) -> Value:
        if isinstance(value, str | bytes):
            budget.copied(len(value))
        elif isinstance(value, range):
            bound_range(budget, value.start, value.stop, value.step)
        else:
            budget.allocate(size_in_bytes(value))
        return value

    def made(display: Value, size: int) -> Value:
        budget.allocate(POINTER_BYTES * size)
        return display

    def moved(container: Value) -> Value:
        if isinstance(container, list | deque):
            budget.scan(len(container) >> 3)
        return container

    def operand(value: Value) -> Value:
        if is_container(value):
            pay_for_walk(budget, value, "in comparison")
        elif isinstance(value, str | bytes):
            budget.allocate(len(value))
        return value

    def ordered_set(items: list[Value]) -> OrderedSet:
        for item in items:
            pay_for_hash(budget, item)
        return OrderedSet(items)

    return {
        transform.ROWS: rows,
        transform.COPIED: copied,
        transform.MADE: made,
        transform.MOVED: moved,
        transform.OPERAND: operand,
        transform.SET: ordered_set,
        transform.SPREAD: functools.partial(spread, budget),
        transform.SPREAD_IN_SET: functools.partial(spread_in_set, budget),
    }


def _text_helpers(budget: ExecutionBudget) -> dict[str, object]:
    def text(value: Value) -> str:
        shown: Value = value if isinstance(value, str) else llm_repr(value, budget=budget)
        # What an object says of itself may be no text.
        budget.allocate(len(shown) if isinstance(shown, str) else 0)
        return shown  # type: ignore[no-any-return]  # as said above

    def formatted(value: Value, conversion: int, spec: str) -> str:
        if conversion == _REPR_CONVERSION:
            value = paid_repr(budget, value)
        elif conversion == _STR_CONVERSION:
            value = paid_str(budget, value)
        elif conversion > 0:
            value = ascii(paid_repr(budget, value))[1:-1] if not isinstance(value, str) else ascii(value)
        return paid_format(budget, value, spec)

    def message(value: Value) -> Value:
        # Consoles show errors, so an error pays for its text when it is made.
        pay_for_error(budget, value)
        return value

    return {transform.TEXT: text, transform.FORMAT: formatted, transform.MESSAGE: message}


@functools.lru_cache(maxsize=8)
def _paid_builtins(budget: ExecutionBudget) -> dict[str, object]:
    lazy = LazyTypes(budget, CallGuard(budget).guarded).builtins()
    functions: dict[str, Callable[..., Value]] = {
        "sum": numbers.paid_sum(budget),
        "pow": numbers.paid_pow(budget),
        "divmod": numbers.paid_divmod(budget),
        "round": numbers.paid_round(budget),
        "repr": lambda *args: paid_repr(budget, *args) if len(args) == 1 else repr(*args),
        "format": lambda *args: paid_format(budget, *args) if len(args) in (1, 2) else format(*args),
        "hash": _paid_hash(budget),
        "isinstance": _paying_for_classes(budget, isinstance),
        "issubclass": _paying_for_classes(budget, issubclass),
        "iter": lazy.pop("iter"),  # type: ignore[dict-item]  # the one that is a function
        "abs": numbers.paid_abs(budget),
        "hex": _paying_for_digits(budget, hex),
        "oct": _paying_for_digits(budget, oct),
        "all": _paying_to_walk(budget, all),
        "any": _paying_to_walk(budget, any),
        "max": _paying_to_walk(budget, max),
        "min": _paying_to_walk(budget, min),
        "sorted": _paying_to_walk(budget, sorted, copies=True),
    }
    paid: dict[str, object] = {
        name: PaidFunction(name, function, getattr(builtins, name)) for name, function in functions.items()
    }
    return {**paid, **lazy, "set": OrderedSet, "frozenset": OrderedFrozenSet}


def _paid_hash(budget: ExecutionBudget) -> Callable[..., int]:
    def paid(*args: Value) -> int:
        if len(args) != 1:
            return hash(*args)
        pay_for_hash(budget, args[0])
        if isinstance(args[0], str | bytes):
            budget.scan(len(args[0]) >> 2)
        elif isinstance(args[0], Decimal | Fraction):
            budget.work(size_of_exact(args[0]) >> 7)
        return stable_hash(args[0])

    return paid


def _paying_for_classes(budget: ExecutionBudget, function: Callable[..., bool]) -> Callable[..., bool]:
    """Return `isinstance` or `issubclass`: tuples of tuples of classes may have more in them than memory has."""

    def paid(*args: Value, **kwargs: Value) -> bool:
        waiting = [args[1]] if len(args) == 2 and type(args[1]) is tuple else []
        while waiting:
            for kind in waiting.pop():
                if type(kind) is tuple:
                    budget.tick()
                    waiting.append(kind)
        return function(*args, **kwargs)

    return paid


def _paying_for_digits(budget: ExecutionBudget, function: Callable[..., str]) -> Callable[..., str]:
    def paid(*args: Value) -> str:
        for value in args:
            pay_for_text(budget, value)
        return function(*args)

    return paid


def _paying_to_walk(
    budget: ExecutionBudget, function: Callable[..., Value], *, copies: bool = False
) -> Callable[..., Value]:
    guard = CallGuard(budget)

    def paid(*args: Value, **kwargs: Value) -> Value:
        if kwargs.get("key") is not None:
            kwargs["key"] = guard.comparable(kwargs["key"])
        elif copies:
            for value in args:
                pay_for_sorting(budget, value)
        elif function not in (all, any):
            pay_for_walk(budget, args, "in comparison")
        if len(args) == 1:
            size = length(args[0])
            budget.scan(4 * size if copies else size)
            budget.allocate(POINTER_BYTES * size if copies else 0)
            args = (iterated(budget, args[0]),)
        return function(*args, **kwargs)

    return paid


def _importing(policy: SandboxPolicy, modules: Mapping[str, SandboxModule]) -> Callable[..., SandboxModule]:
    def import_module(
        name: str, _globals: Value = None, _locals: Value = None, _fromlist: Value = (), level: int = 0
    ) -> SandboxModule:
        check_import(name, policy.allowed_imports, level)
        if name not in modules:
            raise SandboxViolation(f"import '{name}' is not available in the sandbox")
        return modules[name]

    return import_module
