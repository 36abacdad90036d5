"""The helpers that compiled code calls, and the builtins that model-written code may use."""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, GeneratorType
from typing import Any, Final

from statek_sim.errors import SandboxViolation
from statek_sim.sandbox import compile as compiled
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.llm_repr import llm_repr
from statek_sim.sandbox.modules import BuiltinShim, SandboxModule, format_method
from statek_sim.sandbox.operators import (
    GuardedGenerator,
    LazyIterator,
    consumed,
    counting_operators,
    lazy_builtins,
)
from statek_sim.sandbox.ordered_set import (
    OrderedFrozenSet,
    OrderedSet,
    stable_hash,
    stable_set,
    without_addresses,
)
from statek_sim.sandbox.policy import FORMAT_METHODS, SandboxPolicy, check_import

# Any value in model-written code.
Value = Any

ALLOWED_BUILTINS: Final = (
    "abs", "all", "any", "bool", "bytes", "callable", "chr", "dict", "divmod", "enumerate", "filter", "float",
    "format", "frozenset", "hash", "hex", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max",
    "min", "next", "oct", "ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum",
    "tuple", "zip",
    "BaseException", "Exception", "RuntimeError", "ValueError", "TypeError", "KeyError", "IndexError", "LookupError",
    "NameError", "StopIteration",
)  # fmt: skip
"""Builtins available to restricted code. As in STATEK, all others are missing, including `hasattr` and
`ZeroDivisionError`.
"""

_CONSUMERS: Final = frozenset(
    {
        "Counter", "OrderedDict", "all", "any", "bytes", "countOf", "deque", "defaultdict", "dict", "difference",
        "difference_update", "dist", "extend", "extendleft", "frozenset", "fromkeys", "fsum", "indexOf", "intersection",
        "intersection_update", "isdisjoint", "issubset", "issuperset", "join", "list", "max", "min", "prod", "set",
        "sorted", "subtract", "sum", "symmetric_difference", "symmetric_difference_update", "tuple", "union", "update",
    }
)  # fmt: skip
"""Names of functions, types and methods whose C code iterates over the arguments."""

_REPR_CONVERSION: Final = ord("r")
_STR_CONVERSION: Final = ord("s")


def build_helpers(
    budget: ExecutionBudget,
    *,
    resolve: Callable[[Value], Value],
    call: Callable[[Callable[..., Value], tuple[Value, ...], dict[str, Value]], Value],
) -> dict[str, object]:
    """Return a mapping from names to helpers, for the namespace in which compiled code runs.

    `resolve` returns a future's value, and any other value unchanged. `call(function, args, kwargs)` calls a
    function.
    """
    helpers: dict[str, object] = {
        compiled.VALUE: resolve,
        compiled.CALL: _calling(budget, resolve, call),
        compiled.TICK: budget.tick,
        compiled.CHECK: budget.check,
        compiled.ENTER: budget.enter,
        compiled.LEAVE: budget.leave,
        compiled.ITERATE: stable_set,
        compiled.SET: OrderedSet,
        compiled.SPREAD: functools.partial(consumed, budget),
        compiled.SPREAD_IN_SET: functools.partial(_spread_in_set, budget),
        compiled.FORMAT_METHOD: functools.partial(format_method, budget),
        "_statek_syntax_error": SyntaxError,
    }
    helpers.update(_function_helpers(budget))
    helpers.update(_text_helpers(budget))
    helpers.update({compiled.OPERATOR + name: made for name, made in counting_operators(budget).items()})
    return helpers


def sandbox_builtins(
    policy: SandboxPolicy, modules: Callable[[], Mapping[str, SandboxModule]], budget: ExecutionBudget
) -> dict[str, object]:
    """Return `__builtins__` for code under `policy`; `modules` is called when code imports a module.

    Unrestricted code gets all of Python's builtins. Builtins that may never return, or whose results differ
    between processes, are replaced.
    """
    if not policy.restricted:
        return {**vars(builtins), **_replaced_builtins(budget), **_LOOKING_AROUND}
    return {**_restricted_builtins(budget), "__import__": _importing(policy, modules)}


@functools.lru_cache(maxsize=8)
def _restricted_builtins(budget: ExecutionBudget) -> Mapping[str, object]:
    replaced = _replaced_builtins(budget)
    return {name: replaced.get(name, getattr(builtins, name)) for name in ALLOWED_BUILTINS}


def _looking(function: Callable[..., Value], *, bound: bool = False) -> Callable[..., Value]:
    """Return a version of `vars`, `locals` or `dir` for agent code.

    Without arguments, these functions inspect their caller. In STATEK, the caller is one of STATEK's own
    functions, so this version returns that function's variables. `bound` adds the variables that exist only
    if Python can read the signature.
    """

    def look(*args: Value, **kwargs: Value) -> Value:
        if args or kwargs:
            return function(*args, **kwargs)
        names: dict[str, Value] = {"func": shim, "args": (), "kwargs": {}}
        if bound:
            signature = inspect.signature(function)
            names |= {"sig": signature, "bound": signature.bind()}
        return sorted(names) if function is dir else names

    shim = BuiltinShim(look, function)
    return shim


_LOOKING_AROUND: Final = {
    "vars": _looking(vars),
    "locals": _looking(locals, bound=True),
    "dir": _looking(dir),
}


CALLING: Final = "call_helper"
"""The name (in Python's frames) of the function through which compiled code calls other functions."""


def _calling(
    budget: ExecutionBudget, resolve: Callable[[Value], Value], call: Callable[..., Value]
) -> Callable[..., Value]:
    def prepared(func: Value, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """Remove differences between processes (set order, memory addresses) from arguments for a C function."""
        if getattr(func, "__name__", None) in _CONSUMERS:
            return tuple(consumed(budget, resolve(value)) for value in args)
        if func is str and len(args) == 1 and type(args[0]) not in _SHOWN_AS_THEY_ARE:
            return (without_addresses(str(resolve(args[0]))),)
        return args

    def call_helper(func: Value, *args: Value, **kwargs: Value) -> Value:
        if type(func) is not FunctionType and args:
            args = prepared(func, args)
        result = call(func, args, kwargs)
        kind = type(result)
        if kind is set or kind is frozenset:
            return stable_set(result)
        if kind is itertools.chain:
            # `Counter.elements` returns a chain, which may be practically endless.
            return LazyIterator(budget, result)
        if kind is str and type(func) is BuiltinFunctionType and func.__name__ in FORMAT_METHODS:
            return without_addresses(result)
        return result

    # Errors contain this name, for example if agent code passes an argument named `func`.
    call_helper.__module__, call_helper.__qualname__ = "statek.executors.utils", "_smart_call"
    return call_helper


_SHOWN_AS_THEY_ARE: Final = frozenset({str, int, float, bool})
"""Types whose `str` is the same in every process."""


def _function_helpers(budget: ExecutionBudget) -> dict[str, object]:
    def run(body: Callable[[], Value]) -> Value:
        budget.enter()
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
        compiled.RUN: run,
        compiled.GENERATOR: generator,
        compiled.COROUTINE: coroutine,
        compiled.GENERATED: functools.partial(GuardedGenerator, budget),
    }


def _spread_in_set(budget: ExecutionBudget, value: Value) -> Iterator[Value]:
    """Return an iterator for `{*value}`. If `value` is not iterable, Python raises the same error as in a loop."""
    return iter(consumed(budget, value))


def _text_helpers(budget: ExecutionBudget) -> dict[str, object]:
    def text(value: Value) -> str:
        shown: Value = value if isinstance(value, str) else llm_repr(value, budget=budget)
        # The `__llm_repr__` of an object may return another type than a string.
        budget.allocate(len(shown) if isinstance(shown, str) else 0)
        return shown  # type: ignore[no-any-return]  # see above

    def formatted(value: Value, conversion: int, spec: str) -> str:
        if conversion == _REPR_CONVERSION:
            value = _repr(value)
        elif conversion == _STR_CONVERSION:
            value = value if type(value) is str else without_addresses(str(value))
        elif conversion > 0:
            value = ascii(_repr(value))[1:-1] if not isinstance(value, str) else ascii(value)
        text = _format(value, spec)
        budget.allocate(len(text))
        return text

    return {compiled.TEXT: text, compiled.FORMAT: formatted}


@functools.lru_cache(maxsize=8)
def _replaced_builtins(budget: ExecutionBudget) -> dict[str, object]:
    """Return replacements for builtins that must count their work, or whose results differ between processes."""
    lazy = lazy_builtins(budget)
    functions: dict[str, Callable[..., Value]] = {
        "repr": lambda *args: _repr(*args) if len(args) == 1 else repr(*args),
        "format": lambda *args: _format(*args) if len(args) in (1, 2) else format(*args),
        "hash": lambda *args: stable_hash(*args) if len(args) == 1 else hash(*args),
        "iter": lazy.pop("iter"),
    }
    shims = {name: BuiltinShim(function, getattr(builtins, name)) for name, function in functions.items()}
    return {**shims, **lazy, "set": OrderedSet, "frozenset": OrderedFrozenSet}


def _repr(value: Value) -> str:
    text = repr(value)
    return text if isinstance(value, str) else without_addresses(text)


def _format(value: Value, spec: Value = "") -> str:
    text = format(value, spec)
    return text if isinstance(value, str) else without_addresses(text)


def _importing(
    policy: SandboxPolicy, modules: Callable[[], Mapping[str, SandboxModule]]
) -> Callable[..., SandboxModule]:
    def import_module(
        name: str, _globals: Value = None, _locals: Value = None, _fromlist: Value = (), level: int = 0
    ) -> SandboxModule:
        check_import(name, policy.allowed_imports, level)
        if name not in modules():
            raise SandboxViolation(f"import '{name}' is not available in the sandbox")
        return modules()[name]

    return import_module
