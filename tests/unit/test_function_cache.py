"""Something worked out once per function lives as long as the function does."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from statek_sim.runtime.tools.declaration import tool
from statek_sim.runtime.tools.future_calls import once_per_function
from statek_sim.runtime.tools.spec import tool_spec


class World:
    """Something that a tool closes over."""


def counting() -> tuple[list[object], Callable[[Callable[..., Any]], inspect.Signature]]:
    """Return the functions that were worked on, and what does it."""
    worked_on: list[object] = []

    @once_per_function
    def signature(function: Callable[..., Any]) -> inspect.Signature:
        worked_on.append(function)
        return inspect.signature(function)

    return worked_on, signature


def test_a_function_is_worked_on_once() -> None:
    worked_on, signature = counting()
    assert signature(counting) is signature(counting)
    assert worked_on == [counting]


def test_a_callable_without_a_hash_is_worked_on_every_time() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, item: str) -> None: ...

    worked_on, signature = counting()
    call = Unhashable()
    assert signature(call) == signature(call)
    assert len(worked_on) == 2


def test_an_error_while_working_is_passed_on() -> None:
    @once_per_function
    def fails(function: Callable[..., Any]) -> None:
        raise KeyError(function.__name__)

    with pytest.raises(KeyError, match=r"^'counting'$"):
        fails(counting)


def test_a_tool_and_the_world_it_closes_over_are_let_go() -> None:
    def use() -> weakref.ref[World]:
        world = World()

        @tool
        def look(at: str, **_: object) -> str:
            """Look.

            Args:
                at: where
            """
            return f"{at} {world}"

        tool_spec(look, union_hints=True)
        look("here")
        return weakref.ref(world)

    left = use()
    gc.collect()
    assert left() is None
