from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest

from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.compile import compile_block, transformed
from statek_sim.sandbox.helpers import build_helpers
from statek_sim.sandbox.policy import SandboxPolicy


class Future:
    def __init__(self, value: Any) -> None:
        self.value = value


def resolve(value: Any) -> Any:
    return value.value if isinstance(value, Future) else value


def run(source: str, call: Callable[..., Any] | None = None, **names: Any) -> dict[str, Any]:
    def plain_call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return function(*args, **kwargs)

    names.update(build_helpers(ExecutionBudget(), resolve=resolve, call=call or plain_call))
    for statement in compile_block(source, SandboxPolicy(restricted=False)).statements:
        exec(statement.code, names)
    return names


def written(source: str) -> str:
    return ast.unparse(transformed(ast.parse(source).body[0]))


def test_names_and_calls_go_through_the_helpers() -> None:
    assert written("y = f(x, g(x), k=x, j=[x])") == (
        "y = _statek_call(_statek_value(f), x, _statek_call(_statek_value(g), x), k=x, j=[_statek_value(x)])"
    )


def test_an_expression_is_kept_as_the_result() -> None:
    assert written("x.y") == "_statek_result = _statek_value(x).y"


def test_f_string_values_are_shown_as_agents_see_them_unless_a_format_is_given() -> None:
    names = run("a = f'{x}'\nb = f'{x!r:>12}'\nc = f'{1.5:.2f}'", x=["q"])
    assert (names["a"], names["b"], names["c"]) == ('["q"]', "       ['q']", "1.50")


def test_a_future_is_waited_for_where_its_value_is_needed() -> None:
    names = run("y = x + 1\nz = [x]\nw = x.bit_length()\nv = f'{x}'", x=Future(4))
    assert (names["y"], names["z"], names["w"], names["v"]) == (5, [4], 3, "4")


def test_a_call_sees_the_future_itself_as_an_argument() -> None:
    seen: list[Any] = []

    def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.append((function, args, kwargs))

    def tool(*args: Any, **kwargs: Any) -> None: ...

    future = Future(4)
    run("tool(x, [x], k=x)", call, x=future, tool=tool)
    assert seen == [(tool, (future, [4]), {"k": future})]


def test_functions_of_python_get_values_and_never_futures() -> None:
    names = run("y = str(x)\nz = ','.join(n)\nw = list(n)", x=Future(7), n=Future(["a", "b"]))
    assert (names["y"], names["z"], names["w"]) == ("7", "a,b", ["a", "b"])


def test_adding_to_a_future_is_a_type_error_as_in_statek() -> None:
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+=: 'Future' and 'int'"):
        run("y = 1\nx += y", x=Future(1))


def test_numbers_written_out_need_no_guard() -> None:
    assert written("x = i + 1") == "x = _statek_value(i) + 1"
    assert written("x = 2 * 3 ** 2") == "x = _statek_op_mul(2, 3 ** 2)"
    assert written("x = 'ab' * 10 ** 9").startswith("x = _statek_op_mul(")
    assert written("x += 1") == "x += 1"


def test_loops_pay_for_every_turn() -> None:
    assert written("while x: y = 1") == "while _statek_value(x):\n    _statek_tick()\n    y = 1"
    assert "for i in _statek_iter(_statek_value(x)) if _statek_tick()" in written("y = [i for i in x]")


def test_functions_count_as_calls_and_keep_their_docstring() -> None:
    names = run("def f(x):\n  'Doc.'\n  return x\ndef g(x):\n  'Lazy.'\n  yield x")
    assert (names["f"](3), names["f"].__doc__) == (3, "Doc.")
    assert (list(names["g"](3)), names["g"].__doc__, names["g"].__name__) == ([3], "Lazy.", "g")
