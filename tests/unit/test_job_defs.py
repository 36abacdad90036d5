from __future__ import annotations

from typing import Any

import pytest

from statek_sim import Agent
from statek_sim.runtime.agents.agent import JobDef, JobDefError
from statek_sim.runtime.execution.job_registry import JobDefs, Work
from statek_sim.runtime.execution.runtime import Runtime
from tests.unit.runtime_samples import idle_runtime

AGENT = Agent("worker")


@pytest.fixture
def runtime() -> Runtime:
    return idle_runtime()


@pytest.mark.parametrize(
    "options",
    [{}, {"warmup_code": "x = 1"}, {"topic": "bees"}],
)
def test_jobs_that_ask_for_the_same_work_share_its_definition(
    runtime: Runtime, options: dict[str, Any]
) -> None:
    one, other = (runtime.create_job(AGENT, **options) for _ in range(2))
    assert one.job_def is other.job_def


@pytest.mark.parametrize(
    "options",
    [{"warmup_code": "x = 1"}, {"locale": "pl"}, {"chat_style": "CONSOLE"}, {"topic": "bees"}],
)
def test_jobs_that_differ_in_one_thing_do_not(runtime: Runtime, options: dict[str, Any]) -> None:
    assert runtime.create_job(AGENT).job_def is not runtime.create_job(AGENT, **options).job_def


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("L:gpt-4o,MH:gpt-5", {}),
        ("LMH:gpt-4o", {}),
        ("gpt-4o", {"locale": "pl"}),
        ("gpt-4o", {"chat_style": "CONSOLE"}),
        ("gpt-4o", {"warmup_code": "echo('x') #STATEK: as tool"}),
        ("gpt-4o", {"warmup_code": "echo(value=1) #STATEK: as tool"}),
    ],
)
def test_some_work_is_not_found_again_and_every_job_has_its_own_definition(
    runtime: Runtime, model: str, options: dict[str, Any]
) -> None:
    agent = Agent("worker", model=model)
    one, other = (runtime.create_job(agent, **options) for _ in range(2))
    assert one.job_def is not other.job_def


def test_agents_that_look_alike_are_two(runtime: Runtime) -> None:
    assert runtime.create_job(AGENT).job_def is not runtime.create_job(Agent("worker")).job_def


def test_runtimes_share_no_definitions() -> None:
    assert idle_runtime().create_job(AGENT).job_def is not idle_runtime().create_job(AGENT).job_def


def test_names_given_to_a_job_are_its_own(runtime: Runtime) -> None:
    one = runtime.create_job(AGENT, shared_vars={"x": 1})
    other = runtime.create_job(AGENT, shared_vars={"x": 2}, message="hello")
    assert one.job_def is other.job_def
    assert (one.py_env.local_state, other.py_env.local_state) == ({"x": 1}, {"x": 2})


def test_a_failed_warmup_shows_at_every_job_of_the_definition(runtime: Runtime) -> None:
    first, second = (runtime.create_job(AGENT, warmup_code="1/0") for _ in range(2))
    runtime.run()
    assert first.job_def.get_errors() == [JobDefError(ZeroDivisionError("division by zero"))] * 2
    assert second.job_def.has_errors()


def test_a_restarted_worker_forgets_failed_warmups_of_its_loops_alone(runtime: Runtime) -> None:
    clerk = Agent("clerk")
    runtime.add_loop(clerk, lambda: 0, warmup_code="1/0")
    looped, single = (runtime.create_job(agent, warmup_code="1/0") for agent in (clerk, AGENT))
    runtime.run()
    runtime.restart_worker()
    assert (looped.job_def.has_errors(), single.job_def.has_errors()) == (False, True)


def test_errors_are_handed_out_as_a_copy() -> None:
    definition = JobDef(AGENT, AGENT.metadata)
    definition.set_error(ValueError("no"))
    definition.get_errors().clear()
    assert definition.get_errors() == [JobDefError(ValueError("no"))]


def test_the_newest_error_comes_first_as_the_store_finds_it() -> None:
    definition = JobDef(AGENT, AGENT.metadata)
    definition.set_error(ValueError("first"))
    definition.set_error(KeyError("second"))
    assert [error.error_message for error in definition.get_errors()] == ["'second'", "first"]


def test_parameters_are_taken_as_they_are_at_creation() -> None:
    definitions, parameters = JobDefs(), {"topic": "bees"}
    definition = definitions.get(Work(AGENT, (), None, None, parameters))
    parameters["topic"] = "wasps"
    assert definition.job_params == {"topic": "bees"}
    assert definitions.get(Work(AGENT, (), None, None, parameters)) is not definition
