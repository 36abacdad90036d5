"""Every builtin, method and operator that model code can reach stands in the one list of costs."""

from __future__ import annotations

import ast
import builtins
import time
import tracemalloc
import types
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

import pytest
from RestrictedPython.transformer import INSPECT_ATTRIBUTES

from statek_sim.clock import VirtualClock
from statek_sim.sandbox import costs, transform
from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.exports import EXPORTED_NAMES
from statek_sim.sandbox.helpers import ALLOWED_BUILTINS
from statek_sim.sandbox.modules import sandbox_modules
from statek_sim.sandbox.paid_function import PaidFunction
from tests.unit.sandbox_session import Session

MODULES: Final = sandbox_modules(VirtualClock(), ExecutionBudget())
NO_OPERATIONS: Final = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ModuleType,
    PaidFunction,
    property,
)
SEEDS: Final = (
    "[1]", "(1,)", "{'a': 1}", "{1}", "frozenset([1])", "'a'", "b'a'", "1", "True", "1.5", "1j", "None", "range(3)",
    "slice(1)", "iter([1])", "(x for x in [1])", "lambda: 0", "ValueError('x')", "StopIteration(1)", "{}.keys()",
    "{}.values()", "{}.items()", "map(str, [1])", "the_compile('(?P<x>a)')", "print", "[].append",
    "the_match('(a)', 'a')", "the_finditer('a', 'a')", "the_Decimal('1.5')",
    "the_Fraction(1, 3)", "the_deque([1])", "the_Counter('a')",
    "the_defaultdict(list)", "the_OrderedDict(a=1)", "the_day_name",
    "the_datetime(2026, 3, 1)", "the_date(2026, 3, 1)", "the_time(1)",
    "the_timedelta(1)", "the_timezone.utc", "the_count()",
    "the_linear_regression([1, 2, 3], [1, 2, 4])",
)  # fmt: skip


def seed_values() -> Iterator[Any]:
    session = Session()
    for text in SEEDS:
        modules = {
            name: getattr(MODULES[module], name) for module in MODULES for name in EXPORTED_NAMES[module]
        }
        session.names.update({f"the_{name}": value for name, value in modules.items()})
        session.run(f"value = {text}")
        yield session.names["value"]
    yield from (session.names["__builtins__"][name] for name in ALLOWED_BUILTINS)
    yield from (getattr(MODULES[module], name) for module in MODULES for name in EXPORTED_NAMES[module])


def public(kind: type) -> list[str]:
    """Return the attributes that code may name; RestrictedPython refuses those that show frames and code."""
    return [name for name in dir(kind) if not name.startswith("_") and name not in INSPECT_ATTRIBUTES]


def reachable_types() -> set[type]:
    """Return the types of everything that attributes and small calls give, starting from what code has."""
    found: set[type] = set()
    pending = deque(seed_values())
    while pending:
        value = pending.popleft()
        kind = type(value)
        if isinstance(value, type):
            found.add(value)
        if kind in found or kind in NO_OPERATIONS:
            continue
        found.add(kind)
        for name in public(kind):
            with suppress(BaseException):
                member = getattr(value, name)
                pending.append(member)
                pending.extend(results_of(member))
        with suppress(BaseException):
            pending.append(iter(value))
    return found


def results_of(member: Any) -> Iterator[Any]:
    for args in ((), (1,), ("a",), ([1],), (1, "big"), ("a", "a")):
        with suppress(BaseException):
            yield member(*args)


def unlisted() -> list[str]:
    return sorted(
        f"{kind.__module__}.{kind.__qualname__}.{name}"
        for kind in reachable_types()
        for name in public(kind)
        if is_operation(kind, name) and costs.rule_for(kind, name) is None
    )


def is_operation(kind: type, name: str) -> bool:
    """Return whether an attribute can be called; what only shows a part of a value costs nothing."""
    with suppress(AttributeError):
        member = getattr(kind, name)
        return callable(member) and not isinstance(member, type)
    return False


def test_every_method_of_every_type_that_code_can_reach_is_in_the_list() -> None:
    assert len(reachable_types()) > 60
    assert unlisted() == []


def test_the_list_names_no_method_that_does_not_exist() -> None:
    kinds = {kind for known in costs.METHODS for kind in (known, *type.__subclasses__(known))}
    named = {name for rules in costs.METHODS.values() for name in rules}
    assert {name for name in named if not any(hasattr(kind, name) for kind in kinds)} == set()


def test_every_builtin_is_in_the_list() -> None:
    types_listed = {*costs.CALLED_TYPES, *costs.FREE_TYPES}
    missing = [
        name
        for name in ALLOWED_BUILTINS
        if name not in costs.BUILTINS and getattr(builtins, name) not in types_listed
    ]
    assert missing == []


def test_builtins_that_pay_for_themselves_are_not_pythons_own() -> None:
    mine = Session().names["__builtins__"]
    own = [name for name, rule in costs.BUILTINS.items() if rule is costs.OWN and name in ALLOWED_BUILTINS]
    assert [name for name in own if mine[name] is getattr(builtins, name)] == []


def test_every_export_of_every_module_is_in_the_list() -> None:
    missing = [
        f"{module}.{name}"
        for module, rules in costs.EXPORTS.items()
        for name in EXPORTED_NAMES[module]
        if name not in rules and not is_constant_or_type(getattr(MODULES[module], name))
    ]
    assert missing == []
    assert set(costs.EXPORTS) == set(MODULES)


def is_constant_or_type(value: Any) -> bool:
    if isinstance(value, type):
        real = {kind.__name__ for kind in (*costs.CALLED_TYPES, *costs.FREE_TYPES)}
        return value.__name__ in real | {"date", "datetime"}
    return not callable(value)


def test_exports_that_pay_for_themselves_are_not_the_modules_own() -> None:
    same = [
        f"{module}.{name}"
        for module, rules in costs.EXPORTS.items()
        for name, rule in rules.items()
        if rule is costs.OWN and getattr(MODULES[module], name) is getattr(import_module(module), name)
    ]
    assert same == []


def test_every_operator_of_the_language_is_paid_for_or_free_by_name() -> None:
    kinds = {
        kind for base in (ast.operator, ast.unaryop, ast.cmpop, ast.boolop) for kind in base.__subclasses__()
    }
    listed = {
        *transform.OPERATORS,
        *transform.UNARY_OPERATORS,
        *transform.COMPARISONS,
        *transform.FREE_OPERATORS,
    }
    assert kinds == listed


def big_values() -> dict[str, Any]:
    session = Session(budget=ExecutionBudget(10**12, 10**12))
    session.run(
        "from decimal import Decimal\nfrom fractions import Fraction\nfrom collections import deque, Counter\n"
        "import re\n"
        "from datetime import datetime, date, time\n"
        "s = 'ab ' * 100_000\nb = b'ab ' * 100_000\nl = list(range(50_000))\nt = tuple(l)\nq = deque(l)\n"
        "d = dict.fromkeys(l, 1)\nu = {str(i) for i in range(20_000)}\nf = frozenset(l)\n"
        "n = 3 ** 130_000\nr = range(10**6)\n"
        "e = Decimal('7' * 200_000)\nh = Fraction(3 ** 60_000, 7 ** 40_000)\nc = Counter(l)\nm = re.match('(.*)', s)\n"
        "w = datetime(2026, 3, 1)\nx = date(2026, 3, 1)\ny = time(1)\nk = d.keys()\ni = d.items()\n"
        "p = re.compile('a')\n"
        "g = '{0}' * 9\nz = '%Y' * 100_000"
    )
    return {name: value for name, value in session.names.items() if len(name) == 1}


BIG: Final = big_values()
METHOD_CALLS: Final = [
    pytest.param(owner, name, id=f"{type(value).__name__}.{name}")
    for owner, value in BIG.items()
    if owner not in "gz"
    for name in public(type(value))
    if is_operation(type(value), name)
]
LONG: Final = 0.04
"""Seconds of processor time that a call may take without having paid for it."""

PAID_BY_ITERATION: Final = 20e-6
MUCH: Final = 8_000_000
"""Bytes that a call may take without having paid for them."""


@pytest.mark.parametrize(("owner", "name"), METHOD_CALLS)
def test_no_method_is_free_when_its_values_are_large(owner: str, name: str) -> None:
    for arguments in ("", "s", "n", "l", "s, s", "n, n"):
        check_paid(f"{owner}.{name}({arguments})")


MEASURING: Final = Session(budget=ExecutionBudget(10**7, 10**9))
MUTABLE: Final = "lqduc"


def check_paid(text: str) -> None:
    # Another process may slow this one down: the quickest of some runs tells what it costs.
    took = float("inf")
    for _ in range(4):
        began = time.process_time()
        run_on_fresh_values(text)
        took = min(took, time.process_time() - began)
        if took < LONG:
            break
    assert took < LONG + PAID_BY_ITERATION * MEASURING.budget.iterations, (text, took)
    tracemalloc.start()
    try:
        run_on_fresh_values(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MUCH + 16 * MEASURING.budget.allocated, (text, peak)


def run_on_fresh_values(text: str) -> None:
    owner = text[0]
    MEASURING.names.update({**BIG, "got": None})
    if owner in MUTABLE:
        MEASURING.names[owner] = BIG[owner].copy()
    with suppress(Exception, BudgetExceeded):
        MEASURING.run(f"got = {text}")
