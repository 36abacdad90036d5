"""Executors: the same results in the same order, whoever does the work; and the words that choose one."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from statek_sim.errors import BadInput
from statek_sim.executors.by_name import executor_for
from statek_sim.executors.executor import Executor, ProcessExecutor, SerialExecutor
from statek_sim.executors.pool import Killed
from tests.tables import table_test


def squared(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} is below 0")
    return number * number


def dies(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.fixture(params=["serial", "processes:1", "processes:3"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    with executor_for(request.param) as made:
        yield made


def test_every_executor_yields_the_results_in_the_order_of_the_tasks(executor: Executor) -> None:
    assert list(executor.map(squared, ((number,) for number in range(50)))) == [n * n for n in range(50)]


def test_what_work_raises_is_raised_in_its_turn(executor: Executor) -> None:
    came = executor.map(squared, ((number,) for number in (2, -1, 3)))
    assert next(came) == 4
    with pytest.raises(ValueError, match=r"^-1 is below 0$"):
        next(came)


def test_submitted_work_is_done_once_and_its_result_is_there_in_any_order(executor: Executor) -> None:
    first, second = executor.submit(squared, 2), executor.submit(squared, 3)
    assert (second.result(), first.result()) == (9, 4)


def test_no_tasks_are_no_results(executor: Executor) -> None:
    assert list(executor.map(squared, ())) == []


def test_work_that_kills_its_process_is_named_and_the_rest_is_done() -> None:
    with ProcessExecutor(2) as executor:
        came = list(executor.map(dies, ((number,) for number in range(6))))
    assert came == [0, 1, 2, Killed("its process was killed by SIGKILL", ""), 4, 5]


@pytest.mark.parametrize(
    ("text", "kind", "width"),
    [("serial", SerialExecutor, 1), ("processes:4", ProcessExecutor, 4)],
)
def test_words_choose_an_executor(text: str, kind: type, width: int) -> None:
    chosen = executor_for(text)
    assert isinstance(chosen, kind)
    assert chosen.width == width


def test_without_words_it_is_processes() -> None:
    assert isinstance(executor_for(None), ProcessExecutor)


@table_test(
    ("text", "message"),
    [
        (
            "serail",
            "--executor serail: expected serial, processes, processes:N or dask:HOST:PORT. Did you mean",
        ),
        ("serial:2", "--executor serial:2: expected serial, processes"),
        (
            "processes:0",
            "--executor processes:0: expected 1 or more processes, such as processes:4",
        ),
        ("processes:two", "expected 1 or more processes"),
        ("dask", "--executor dask: expected the scheduler's address, such as dask:127.0.0.1:8786"),
        ("dask:localhost", "expected the scheduler's address"),
    ],
)
def test_other_words_are_bad_input(text: str, message: str) -> None:
    with pytest.raises(BadInput) as raised:
        executor_for(text)
    assert message in str(raised.value)
