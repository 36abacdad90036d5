from __future__ import annotations

import pytest

from statek_sim import Agent, code, tool, tool_call
from statek_sim.jobs import StatekSettings
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.jobs.job import Job
from tests.unit.runtime_samples import UNLIMITED, run_one


@tool(hidden=True)
def reset(**kwargs: object) -> str:
    """Reset everything."""
    return "reset"


@tool
def greet(name: str = "you", **kwargs: object) -> str:
    """Greet somebody."""
    return f"hello {name}"


def run_hidden(warmup: str | None = None, *, settings: StatekSettings | None = None) -> Job:
    script = [code("print(reset())"), tool_call("reset"), code("exit(1)")]
    runtime = Runtime(ScriptedLLM(script), harness=UNLIMITED, settings=settings)
    job = runtime.create_job(Agent("worker", tools=[reset]), warmup_code=warmup)
    runtime.run()
    return job


def errors(job: Job) -> list[str]:
    return [line.text for line in job.trace if hasattr(line, "text") and "not exposed" in str(line.text)]


def test_a_hidden_tool_is_closed_to_code_and_calls() -> None:
    job = run_hidden()
    assert job.py_env.console[0] == "SandboxViolation: tool 'reset' is not exposed to this job"
    assert "> NameError: tool 'reset' is not exposed to this job" in [
        message["content"] for message in job.get_chat_history()
    ]


def test_a_hidden_warmup_block_may_use_a_hidden_tool() -> None:
    job = run_hidden("#STATEK: hidden = True\nprint(reset())")
    assert job.py_env.console[0] == "reset"


def test_a_warmup_block_that_is_shown_may_not() -> None:
    assert run_hidden("print(reset())").stop_reason == "warmup"


def test_settings_open_a_hidden_tool_by_name() -> None:
    job = run_hidden(settings=StatekSettings(python_sandbox_allowed_tools="reset"))
    assert errors(job) == []
    assert job.exception_count == 0


def test_a_hidden_tool_of_one_agent_is_closed_to_the_code_of_another() -> None:
    runtime = Runtime(ScriptedLLM(["reset()", "exit(1)"]))
    runtime.create_job(Agent("owner", tools=[reset]), warmup_code="exit(1)")
    job = runtime.create_job(Agent("worker", context={"reset": lambda: "mine"}))
    runtime.run()
    assert job.py_env.console[0] == "SandboxViolation: tool 'reset' is not exposed to this job"


def test_a_jobs_own_name_hides_a_tool() -> None:
    job = run_one("greet = 'taken'", "exit(greet)", tools=(greet,))
    assert job.py_env.exit_status == "taken"


def test_the_first_tool_of_a_name_stays() -> None:
    @tool
    def panic(**kwargs: object) -> str:
        """Be an own tool with the name of a system tool."""
        return "mine"

    job = run_one("print(panic())", "exit(1)", tools=(panic,))
    assert job.py_env.console[0] == "mine"


def test_names_of_the_agents_context_are_there() -> None:
    runtime = Runtime(ScriptedLLM(["exit(limit + 1)"]))
    job = runtime.create_job(Agent("worker", context={"limit": 41}))
    runtime.run()
    assert job.py_env.exit_status == 42


@pytest.mark.parametrize(("source", "said"), [("greet()", "hello you"), ("greet(name='me')", "hello me")])
def test_code_calls_tools_like_functions(source: str, said: str) -> None:
    assert run_one(f"print({source})", "exit(1)", tools=(greet,)).py_env.console[0] == said
