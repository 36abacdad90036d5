from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from statek_sim.runtime.tools.future_calls import smart_call
from statek_sim.sandbox.modules import BuiltinShim


class Refusing:
    """A function that notes each call and then raises `error`."""

    def __init__(self, error: Exception) -> None:
        self.calls: list[Any] = []
        self._error = error

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self.calls.append((args, kwargs))
        raise self._error


@pytest.mark.parametrize("error", [ValueError("refused"), TypeError("refused")])
def test_a_call_that_fits_and_then_refuses_is_made_again(error: Exception) -> None:
    function = Refusing(error)
    with pytest.raises(type(error), match=r"^refused$"):
        smart_call(function, (1,), {"x": 2})
    assert function.calls == [((1,), {"x": 2})] * 2


def test_any_other_error_is_final() -> None:
    function = Refusing(RuntimeError("no"))
    with pytest.raises(RuntimeError, match=r"^no$"):
        smart_call(function, (), {})
    assert len(function.calls) == 1


def test_a_call_whose_arguments_do_not_fit_is_made_once() -> None:
    function: Any = Refusing(TypeError("refused"))
    function.__signature__ = inspect.signature(lambda text: None)
    with pytest.raises(TypeError, match=r"^refused$"):
        smart_call(function, ("one", "two"), {})
    assert function.calls == [(("one", "two"), {})]


def test_a_function_without_a_readable_signature_is_called_once() -> None:
    with pytest.raises(ValueError, match=r"^no signature"):
        inspect.signature(dict)
    function: Any = Refusing(ValueError("refused"))
    standing_for_dict = BuiltinShim(function, dict)
    with pytest.raises(ValueError, match=r"^refused$"):
        smart_call(standing_for_dict, ([],), {})
    assert len(function.calls) == 1


@pytest.mark.parametrize("name", ["sum", "sorted"])
def test_what_stands_for_a_builtin_function_has_its_signature(name: str) -> None:
    original: Callable[..., Any] = getattr(builtins, name)
    standing_for_it = BuiltinShim(lambda *args: args, original)
    assert inspect.signature(standing_for_it) == inspect.signature(original)


def test_a_second_call_finds_the_generator_where_the_first_left_it() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("refused")

    assert smart_call(sum, (numbers(),), {}) == 0


def test_a_method_of_a_base_class_has_a_signature_of_its_own() -> None:
    asked: list[object] = []

    class Sought:
        def __eq__(self, other: object) -> bool:
            asked.append(other)
            return False

        __hash__ = object.__hash__

    class Titles(list[str]):
        def index(self) -> int:  # type: ignore[override]  # it takes less than the base class's
            raise AssertionError("nobody calls it")

        @property
        def place_of(self) -> Callable[..., int]:
            return super().index

    with pytest.raises(ValueError, match="is not in list"):
        smart_call(Titles(["first"]).place_of, (Sought(),), {})
    # The arguments fit, so STATEK calls twice.
    assert asked == ["first", "first"]
