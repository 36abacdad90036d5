from __future__ import annotations

from statek_sim import tool, tool_call
from statek_sim.trace import ToolCalled, ToolReturned
from tests.unit.runtime_samples import run_one


class Opaque:
    """An object whose text carries its address."""

    def __init__(self) -> None:
        self._hidden = 1


@tool
def echo(value: object, **kwargs: object) -> object:
    """Return the value."""
    return value


@tool
def fail(**kwargs: object) -> None:
    """Print and fail with an address in the text."""
    print(f"looking at {object()!r}")
    raise ValueError(f"no such thing: {object()!r}")


def test_arguments_are_shown_as_code_would_write_them() -> None:
    job = run_one("echo('a')\necho([1, 'b'])\necho(value=None)", "exit(1)", tools=(echo,))
    assert [event.arguments for event in job.trace.of_type(ToolCalled)] == ["'a'", '[1,"b"]', "value=None"]


def test_results_are_shown_as_the_agent_sees_them() -> None:
    job = run_one("echo('a')\necho({'k': 1.5})\necho(None)", "exit(1)", tools=(echo,))
    assert [event.result for event in job.trace.of_type(ToolReturned)] == ["a", '{"k":1.5}', "None"]


def test_every_call_that_began_has_an_end() -> None:
    job = run_one(
        "echo(1)\nfail()", tool_call("echo", value=2), tool_call("fail"), "exit(1)", tools=(echo, fail)
    )
    kinds = [type(event).__name__ for event in job.trace if isinstance(event, ToolCalled | ToolReturned)]
    assert kinds == ["ToolCalled", "ToolReturned"] * 5


def test_no_memory_address_of_a_failing_tool_reaches_the_trace() -> None:
    job = run_one("fail()", tool_call("fail"), "exit(1)", tools=(fail,))
    lines = "\n".join(job.host.trace.lines())
    assert "ValueError: no such thing: <object object at 0x...>" in lines
    assert " at 0x" not in lines.replace(" at 0x...", "")


def test_no_memory_address_of_a_printed_object_reaches_the_model() -> None:
    job = run_one(tool_call("fail"), "exit(1)", tools=(fail,))
    assert [message["content"] for message in job.get_chat_history() if message["role"] == "tool"] == [
        "> ValueError: no such thing: <object object at 0x...>"
    ]


def test_an_exit_status_is_shown_without_its_address() -> None:
    @tool
    def make(**kwargs: object) -> object:
        """Return an object without text."""
        return Opaque()

    job = run_one("exit(make())", tools=(make,))
    assert "0x" not in "\n".join(job.host.trace.lines())
