from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from statek_sim.runtime.state.error_handlers import ErrorHandler
from statek_sim.runtime.state.futures import (
    FutureError,
    FutureResult,
    Signal,
    get_all_future,
    get_any_future,
    signals_of,
    temporal,
)
from tests.tables import table_test
from tests.unit.runtime_samples import Gate, idle_runtime, run_one


def ready(future: FutureResult) -> bool:
    return bool(future.state_num)


def value(future: FutureResult) -> tuple[str, int]:
    if not ready(future):
        raise FutureError(future)
    return "done", 2


@temporal(complement=value, condition=ready)
def start(*, is_ready: bool) -> FutureResult:
    """Return a future."""
    return FutureResult(state_num=int(is_ready))


def test_a_future_that_is_not_ready_raises_itself() -> None:
    future = start(is_ready=False)
    with pytest.raises(FutureError) as caught:
        _ = future.value
    assert caught.value.future_result is future
    assert caught.value.instr_num is None


def test_a_ready_future_has_its_value() -> None:
    future = start(is_ready=True)
    assert future.check_condition()
    assert future.value == ("done", 2)


@table_test(
    ("arguments", "message"),
    [
        ({}, r"^Must specify either 'extends' or both 'complement' and 'condition'$"),
        ({"complement": value}, r"^Must specify either 'extends' or both 'complement' and 'condition'$"),
        ({"condition": ready}, r"^Must specify either 'extends' or both 'complement' and 'condition'$"),
        (
            {"extends": start, "complement": value},
            r"^Cannot specify both 'extends' and 'complement'/'condition'$",
        ),
        (
            {"extends": start, "condition": ready},
            r"^Cannot specify both 'extends' and 'complement'/'condition'$",
        ),
        ({"extends": ready}, r"^Cannot extend ready: it is not a temporal function$"),
    ],
)
def test_temporal_wants_both_functions_or_one_to_extend(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        temporal(**arguments)


def test_an_extended_function_waits_like_the_one_it_extends() -> None:
    @temporal(extends=start)
    def again() -> FutureResult:
        return FutureResult(state_num=1)

    assert again().value == ("done", 2)


def test_a_temporal_function_passes_plain_values_through() -> None:
    @temporal(complement=value, condition=ready)
    def at_once() -> str:
        return "here"

    assert at_once() == "here"


@pytest.mark.parametrize("use", [lambda future: future.value, FutureResult.check_condition])
def test_a_future_made_by_hand_has_no_functions(use: Callable[[FutureResult], object]) -> None:
    with pytest.raises(TypeError, match=r"^'NoneType' object is not callable$"):
        use(FutureResult())


def test_a_declared_tuple_unpacks_into_lazy_members() -> None:
    first, second = start(is_ready=False)
    assert not first.check_condition()
    with pytest.raises(FutureError):
        _ = second.value
    first, second = start(is_ready=True)
    assert (first.value, second.value) == ("done", 2)


def test_a_result_that_is_not_declared_a_tuple_does_not_unpack() -> None:
    @temporal(complement=lambda future: None, condition=ready)
    def undeclared() -> FutureResult:
        return FutureResult()

    with pytest.raises(FutureError) as caught:
        _first, _second = undeclared()
    assert caught.value.instr_num == "Cannot unpack FutureResult: return type is not a tuple"


def test_a_handler_is_registered_when_the_value_is_first_fetched_and_only_then() -> None:
    job = idle_runtime().create_job(run_one("exit(1)").agent)
    future = start(is_ready=False)
    future.bind_error_handler(lambda context, error=None: None, job)
    with pytest.raises(FutureError):
        _ = future.value
    assert list(job.error_handlers) == []
    future.state_num = 1
    _ = future.value, future.value
    (handler,) = job.error_handlers
    assert isinstance(handler, ErrorHandler)
    assert handler.context == ("done", 2)


class Thing:
    """Something with a signal."""

    def __init__(self) -> None:
        self.signal = Signal()


SIGNAL, THING = Signal(), Thing()


@table_test(
    ("deps", "signals"),
    [
        (SIGNAL, (SIGNAL,)),
        (THING, (THING.signal,)),
        ((SIGNAL, THING), (SIGNAL, THING.signal)),
        ([[SIGNAL]], (SIGNAL,)),
        (None, None),
        ((), None),
        ((SIGNAL, "unknown"), None),
        (object(), None),
    ],
)
def test_signals_are_found_in_whatever_a_future_depends_on(
    deps: object, signals: tuple[Signal, ...] | None
) -> None:
    assert signals_of(deps) == signals
    assert FutureResult(deps).signals() == signals


def test_any_future_takes_the_first_ready_one() -> None:
    future = get_any_future(start(is_ready=False), start(is_ready=True))
    assert future.check_condition()
    assert future.value == ("done", 2)


def test_any_and_all_wait_while_nothing_is_ready() -> None:
    for combine in (get_any_future, get_all_future):
        future = combine(start(is_ready=False), start(is_ready=False))
        assert not future.check_condition()
        with pytest.raises(FutureError):
            _ = future.value


def test_all_futures_wait_for_the_last_one() -> None:
    one, other = start(is_ready=True), start(is_ready=False)
    future = get_all_future(one, other)
    assert not future.check_condition()
    other.state_num = 1
    assert future.value == (("done", 2), ("done", 2))


@pytest.mark.parametrize("combine", [get_any_future, get_all_future])
def test_combining_nothing_is_refused(combine: Callable[..., object]) -> None:
    name = getattr(combine, "__name__", "")
    with pytest.raises(TypeError, match=rf"^{name} requires at least one argument$"):
        combine()


def test_a_combination_knows_its_signals_only_if_all_members_do() -> None:
    one, other = FutureResult(SIGNAL), FutureResult(THING)
    assert get_all_future(one, other).signals() == (SIGNAL, THING.signal)
    assert get_all_future(one, FutureResult()).signals() is None


def test_an_exception_in_a_condition_goes_up() -> None:
    gate = Gate()
    gate.break_("the service is gone")
    future = gate.tool()
    assert isinstance(future, FutureResult)
    with pytest.raises(RuntimeError, match=r"^the service is gone$"):
        future.check_condition()
