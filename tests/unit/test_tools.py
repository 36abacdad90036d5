from __future__ import annotations

import datetime
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from statek_sim import Agent, Runtime, ScriptedLLM, error_handler, tool, tool_call
from statek_sim.errors import BadTool
from statek_sim.harness.settings import StatekSettings
from statek_sim.jobs import subtask
from statek_sim.trace import ToolCalled, ToolReturned
from tests.tables import table_test
from tests.unit.runtime_samples import idle_runtime, run_one


@pytest.mark.parametrize("tools", [print, 3, "print"])
def test_tools_of_an_agent_that_are_no_list_are_refused(tools: Any) -> None:
    with pytest.raises(
        BadTool,
        match=rf"^agent 'writer': expected tools to be a list of functions, got {re.escape(repr(tools))}$",
    ):
        Agent("writer", tools=tools)


def without_kwargs(a: int, b: str = "x") -> None:
    """Lack `**kwargs`."""


def claim(**kwargs: object) -> None:
    """Claim something."""


@error_handler
def _good(context: object, error: BaseException | None = None) -> None:
    """Follow the protocol."""


@error_handler
def _variadic(context: object, error: BaseException | None = None, *args: object, **kwargs: object) -> None:
    """Follow the protocol and take more."""


@error_handler
def public(context: object, error: BaseException | None = None) -> None:
    """Lack the underscore."""


@error_handler
def _one(context: object) -> None:
    """Lack the error."""


@error_handler
def _three(context: object, error: BaseException | None = None, more: object = None) -> None:
    """Take too much."""


@error_handler
def _required(context: object, error: BaseException | None) -> None:
    """Lack the default."""


def _undecorated(context: object, error: BaseException | None = None) -> None:
    """Lack the decorator."""


def test_a_tool_without_kwargs_is_refused_with_its_signature() -> None:
    with pytest.raises(
        BadTool,
        match=r"^Function 'without_kwargs' must accept \*\*kwargs to be used as a tool\. "
        r"Current signature: \(a: 'int', b: 'str' = 'x'\) -> 'None'$",
    ):
        tool(without_kwargs)


def test_a_subtask_without_kwargs_is_refused() -> None:
    with pytest.raises(
        BadTool, match=r"^Function 'without_kwargs' must accept \*\*kwargs to be used as a sub"
    ):
        subtask(without_kwargs)


def test_a_subtask_with_its_own_id_is_refused() -> None:
    def start(id: str, **kwargs: object) -> None:  # noqa: A002
        """Define what the framework owns."""

    with pytest.raises(
        BadTool,
        match=r"^Function 'start' cannot define parameter 'id'; subtask id is reserved for framework-managed kwargs\.$",
    ):
        subtask(start)


def test_a_bad_tool_is_a_type_error_too() -> None:
    assert issubclass(BadTool, TypeError)


@table_test(
    ("handler", "problem"),
    [
        (42, r"'42' of tool 'claim' is int, expected a function"),
        (_undecorated, r"'_undecorated' of tool 'claim' is not decorated with @error_handler"),
        (public, r"'public' of tool 'claim' needs a name that starts with '_'"),
        (_one, r"'_one' of tool 'claim' takes 1 parameters, expected \(context, error=None\)"),
        (_three, r"'_three' of tool 'claim' takes 3 parameters, expected \(context, error=None\)"),
        (
            _required,
            r"'_required' of tool 'claim' needs a default for 'error', expected \(context, error=None\)",
        ),
    ],
)
def test_a_handler_that_breaks_the_protocol_is_refused_with_the_reason(handler: Any, problem: str) -> None:
    with pytest.raises(BadTool, match=rf"^error_handler {problem}$"):
        tool(error_handler=handler)(claim)


@pytest.mark.parametrize("handler", [_good, _variadic])
def test_a_handler_that_follows_the_protocol_is_taken(handler: Callable[..., object]) -> None:
    assert tool(error_handler=handler)(claim).__name__ == "claim"


def test_a_tool_keeps_name_docstring_and_signature() -> None:
    decorated = tool(claim)
    assert (decorated.__name__, decorated.__doc__) == ("claim", "Claim something.")
    assert inspect.signature(decorated) == inspect.signature(claim)


def test_a_tool_called_outside_of_jobs_just_runs() -> None:
    @tool(error_handler=_good)
    def double(n: int, **kwargs: object) -> int:
        """Double a number."""
        return 2 * n

    assert double(21) == 42


def test_the_context_of_a_handler_is_what_the_tool_returned() -> None:
    @tool(error_handler=_good)
    def nothing(**kwargs: object) -> None:
        """Claim nothing."""

    job = run_one("nothing()", "nothing()", "exit(1)", tools=(nothing,))
    assert [(entry.name, entry.context) for entry in job.error_handlers] == [("_good", None), ("_good", None)]


def test_a_tool_that_fails_registers_no_handler() -> None:
    @tool(error_handler=_good)
    def fail(**kwargs: object) -> None:
        """Fail."""
        raise RuntimeError("no")

    job = run_one("fail()", "exit(1)", tools=(fail,))
    assert list(job.error_handlers) == []
    assert [event.error for event in job.trace.of_type(ToolReturned)] == ["RuntimeError: no"]


def kind_of(value: object, **kwargs: object) -> str:
    """Return the class of what arrived."""
    return type(value).__name__


# Hints are read as objects, as in STATEK; the postponed ones of this file are text.
kind_of.__annotations__["value"] = int | datetime.date | list


@table_test(
    ("argument", "kind"),
    [("'numbers'", "list"), ("'2026-02-03'", "date"), ("'unknown'", "str"), ("7", "int")],
)
def test_a_string_that_names_a_variable_stands_for_it_where_no_string_is_wanted(
    argument: str, kind: str
) -> None:
    job = run_one(f"numbers = [1]\nprint(kind_of({argument}))", "exit(1)", tools=(tool(kind_of),))
    assert job.py_env.console[0] == kind


def test_an_argument_that_wants_a_string_stays_a_string() -> None:
    @tool
    def echo(value: str, **kwargs: object) -> str:
        """Return the value."""
        return value

    job = run_one("numbers = [1]\nprint(echo('numbers'))", "exit(1)", tools=(echo,))
    assert job.py_env.console[0] == "numbers"


@pytest.mark.parametrize(("mode", "handed"), [("restricted", False), ("off", True)])
def test_only_unrestricted_code_hands_its_variables_to_the_tools_it_calls(mode: str, handed: bool) -> None:
    seen: list[object] = []

    @tool
    def look(**kwargs: Any) -> None:
        """Look at the caller's names."""
        seen.append([name in kwargs["_local_context"] for name in ("x", "look")])

    runtime = Runtime(
        ScriptedLLM(["x = 1\nlook()", "exit(1)"]), settings=StatekSettings(python_sandbox_mode=mode)
    )
    runtime.create_job(Agent("worker", tools=[look]))
    runtime.run()
    assert seen == [[handed, True]]


def test_code_may_not_set_the_names_itself() -> None:
    job = run_one("claim(_local_context=1)", "exit(1)", tools=(tool(claim),))
    assert job.py_env.console[0] == "RuntimeError: _local_context is already set"


def test_a_subtask_shows_an_id_instead_of_kwargs() -> None:
    @subtask
    def start(topic: str, *, deep: bool = False, **kwargs: object) -> None:
        """Start a task."""

    assert list(inspect.signature(start).parameters) == ["topic", "id", "deep"]


def test_a_subtask_that_returns_something_else_than_a_job_is_refused() -> None:
    @subtask
    def start(**kwargs: object) -> str:
        """Start nothing."""
        return "job"

    with pytest.raises(TypeError, match=r"^@subtask functions must return Job or SubTaskHandler, got str$"):
        start()


def test_a_subtask_called_with_an_id_has_it() -> None:
    runtime = idle_runtime()

    @subtask
    def start(**kwargs: object) -> object:
        """Start a job."""
        return runtime.create_job(Agent("worker"))

    handler: Any = start(id="t-1")
    assert handler.id == "t-1"
    assert handler.job.py_env.local_state == {"sub_task_handler": handler}


def test_calls_from_code_and_requested_calls_are_told_apart() -> None:
    job = run_one("claim()", tool_call("claim"), "exit(1)", tools=(tool(claim),))
    assert [event.via for event in job.trace.of_type(ToolCalled)] == ["code", "call"]
