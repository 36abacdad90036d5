from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator

import pytest

from statek_sim import Agent
from statek_sim.jobs import get_current_agent, get_current_agent_name, get_current_job
from statek_sim.runtime.jobs.job import job_context
from statek_sim.runtime.state.context import (
    Execution,
    captured_builtins,
    reset_execution,
    set_execution,
    write_line,
)
from tests.tables import table_test
from tests.unit.runtime_samples import idle_runtime


@pytest.fixture
def execution() -> Iterator[tuple[list[str], list[object]]]:
    """Yield what an execution that is active during the test writes, and its exits."""
    lines: list[str] = []
    exits: list[object] = []
    token = set_execution(
        Execution(idle_runtime().create_job(Agent("worker")), lines.append, exits.append, {})
    )
    try:
        with captured_builtins(str):
            yield lines, exits
    finally:
        reset_execution(token)


def test_outside_of_jobs_there_is_no_current_job() -> None:
    assert (get_current_job(), get_current_agent(), get_current_agent_name()) == (None, None, None)


def test_inside_a_job_its_agent_is_known_and_afterwards_not() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    with job_context(job):
        assert (get_current_job(), get_current_agent(), get_current_agent_name()) == (
            job,
            job.agent,
            "Agent",
        )
    assert get_current_job() is None


def test_contexts_of_jobs_nest() -> None:
    runtime = idle_runtime()
    outer, inner = runtime.create_job(Agent("outer")), runtime.create_job(Agent("inner"))
    with job_context(outer):
        with job_context(inner):
            assert get_current_job() is inner
        assert get_current_job() is outer


def test_print_and_exit_go_to_the_executing_job(execution: tuple[list[str], list[object]]) -> None:
    print("a", 1, sep="-")
    exit("done")  # noqa: PLR1722  # as tools do
    assert execution == (["a-1"], ["done"])


def test_a_print_to_a_file_goes_to_the_console_like_any_other(
    execution: tuple[list[str], list[object]], capsys: pytest.CaptureFixture[str]
) -> None:
    print("warning", file=sys.stderr)
    assert execution[0] == ["warning"]
    assert capsys.readouterr().err == ""


def test_outside_of_jobs_print_prints_and_exit_exits(capsys: pytest.CaptureFixture[str]) -> None:
    with captured_builtins(str):
        print("hello", end="!")
        with pytest.raises(SystemExit, match=r"^3$"):
            exit(3)  # noqa: PLR1722  # as tools do
    assert capsys.readouterr().out == "hello!"


def test_print_and_exit_are_restored_even_after_an_error() -> None:
    before = builtins.print, builtins.exit
    with pytest.raises(ZeroDivisionError), captured_builtins(str):
        1 // 0  # noqa: B018
    assert (builtins.print, builtins.exit) == before


@table_test(
    ("arguments", "options", "line"),
    [
        ((), {}, ""),
        (("a", 1), {}, "a 1"),
        (("a", "b"), {"sep": ""}, "ab"),
        (("a",), {"end": "!\n\n"}, "a!"),
        (("a\nb",), {"end": ""}, "a\nb"),
    ],
)
def test_one_print_writes_one_entry_without_its_line_end(
    arguments: tuple[object, ...], options: dict[str, str], line: str
) -> None:
    lines: list[str] = []
    job = idle_runtime().create_job(Agent("worker"))
    said = {"sep": " ", "end": "\n", **options}
    write_line(Execution(job, lines.append, print, {}), arguments, said["sep"], said["end"], str)
    assert lines == [line]
