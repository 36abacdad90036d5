from __future__ import annotations

import builtins

import pytest

from statek_sim.clock import VirtualClock
from statek_sim.errors import SandboxViolation
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.helpers import ALLOWED_BUILTINS, sandbox_builtins
from statek_sim.sandbox.modules import sandbox_modules
from statek_sim.sandbox.policy import SandboxPolicy
from tests.tables import table_test
from tests.unit.sandbox_session import Session


def test_restricted_builtins_are_those_of_statek() -> None:
    session = Session()
    assert set(session.names["__builtins__"]) == {*ALLOWED_BUILTINS, "__import__"}
    assert len(ALLOWED_BUILTINS) == 50


@table_test("name", ["hasattr", "id", "object", "ZeroDivisionError", "AttributeError", "KeyboardInterrupt"])
def test_what_statek_leaves_out_is_left_out(name: str) -> None:
    assert Session().shown(name) == [f"NameError: name '{name}' is not defined"]


def test_an_unknown_exception_name_fails_only_when_it_is_needed() -> None:
    code = "try:\n  {}\nexcept ZeroDivisionError:\n  print('caught')"
    assert Session().shown(code.format("x = 1")) == []
    assert Session().shown(code.format("1 / 0")) == ["NameError: name 'ZeroDivisionError' is not defined"]


def test_imports_follow_the_policy_when_they_run() -> None:
    policy = SandboxPolicy(allowed_imports=frozenset({"math", "numpy"}))
    budget = ExecutionBudget()
    found = sandbox_builtins(policy, lambda: sandbox_modules(VirtualClock(), budget), budget)
    import_module = found["__import__"]
    assert callable(import_module)
    assert repr(import_module("math")) == "<sandbox module math>"
    for name, level, message in (
        ("re", 0, "import 're' is not allowed"),
        ("numpy", 0, "import 'numpy' is not available in the sandbox"),
        ("math", 1, "relative imports are not allowed"),
    ):
        with pytest.raises(SandboxViolation, match=f"^{message}$"):
            import_module(name, None, None, (), level)


def test_unrestricted_code_gets_all_builtins() -> None:
    budget = ExecutionBudget()
    found = sandbox_builtins(SandboxPolicy(restricted=False), dict, budget)
    assert set(found) == set(vars(builtins))
    assert found["open"] is open


def test_calling_with_an_argument_named_func_fails_as_in_statek() -> None:
    shown = Session().shown("f = lambda **k: k\nf(func=1)")
    assert shown == ["TypeError: _smart_call() got multiple values for argument 'func'"]


def test_results_of_calls_are_sets_in_order() -> None:
    session = Session()
    session.names["tool"] = lambda: {"c", "a", "b"}
    assert session.run("for x in tool(): print(x)") == ["a", "b", "c"]
