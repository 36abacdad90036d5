from __future__ import annotations

import pytest

from statek_sim import Agent, ScriptedLLM, tool
from statek_sim.runtime.execution.runtime import Runtime
from statek_sim.runtime.execution.services import parse_temperature, upstream
from tests.tables import table_test
from tests.unit.runtime_samples import UNLIMITED, idle_runtime, run_one


@table_test(("text", "value"), [(None, None), ("0", 0.0), ("0.7", 0.7), ("1.0", 1.0)])
def test_a_temperature_is_between_zero_and_one(text: str | None, value: float | None) -> None:
    assert parse_temperature(text) == value


@pytest.mark.parametrize("text", ["-0.1", "1.01", "nan"])
def test_another_temperature_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=rf"^TEMPERATURE must be between 0\.0 and 1\.0, got {float(text)}$"):
        parse_temperature(text)


def test_a_bad_temperature_ends_the_job_before_any_request() -> None:
    runtime = idle_runtime()
    job = runtime.create_job(Agent("worker", metadata={"TEMPERATURE": "2"}))
    runtime.run()
    assert (job.stop_reason, job.llm_calls) == ("crash", 0)


@table_test(
    ("metadata", "model"),
    [
        ({"MODEL": "gpt-4o"}, "gpt-4o"),
        ({"MODEL": "meta/llama-3"}, "meta/llama-3"),
        ({"MODEL": "openai/meta/llama-3"}, "llama-3"),
        ({"MODEL": "openrouter/meta/llama-3"}, "meta/llama-3"),
        ({"MODEL": "meta/llama-3", "PROVIDER": "GROQ"}, "llama-3"),
        ({"MODEL": "L:small,M:middle,H:large"}, "middle"),
        ({"MODEL": "L:small,M:middle,H:large", "DEFAULT_DIFFICULTY": "high"}, "large"),
    ],
)
def test_requests_carry_the_model_that_the_provider_knows(metadata: dict[str, str], model: str) -> None:
    job = idle_runtime().create_job(Agent("worker", metadata=metadata))
    assert upstream(job, "OPENROUTER")[1] == model


def test_a_harder_task_goes_to_another_model_at_once() -> None:
    runtime = idle_runtime(script=["panic()", "exit(1)"])
    metadata = {"MODEL": "L:small,M:middle,H:large", "DEFAULT_DIFFICULTY": "LOW"}
    job = runtime.create_job(Agent("worker", metadata=metadata))
    runtime.run()
    assert [request.model for request in job.trace.requests()] == ["small", "middle"]


def test_without_a_scope_requests_offer_no_tools() -> None:
    llm = ScriptedLLM(["exit(1)"])
    runtime = Runtime(llm)
    runtime.create_job(Agent("worker"))
    runtime.run()
    assert llm.requests[0].tools == ()


@tool
def fetch(**kwargs: object) -> None:
    """Fetch."""


@tool
def _internal(**kwargs: object) -> None:
    """Be internal."""


@pytest.mark.parametrize(
    ("profile", "names"), [("1.2", ["fetch", "_internal"]), ("1.4", ["fetch"]), ("docs", ["fetch"])]
)
def test_internal_tools_are_offered_before_1_3_only(profile: str, names: list[str]) -> None:
    llm = ScriptedLLM(["exit(1)"])
    runtime = Runtime(llm, harness=UNLIMITED, profile=profile)
    runtime.create_job(Agent("worker", tools=[fetch, _internal], metadata={"LLM_TOOLS_SCOPE": "APPLICATION"}))
    runtime.run()
    offered = [spec["function"] for spec in llm.requests[0].tools]
    assert [function["name"] for function in offered if isinstance(function, dict)] == names


def test_jobs_of_one_definition_share_the_fixed_part_of_their_requests() -> None:
    llm = ScriptedLLM(["exit(1)", "exit(1)"])
    runtime = Runtime(llm)
    agent = Agent("worker", tools=[fetch], metadata={"LLM_TOOLS_SCOPE": "ALL"})
    for _ in range(2):
        runtime.create_job(agent)
    runtime.run()
    assert llm.requests[0].tools is llm.requests[1].tools


def test_what_a_request_weighs_is_what_its_body_weighs() -> None:
    import json

    llm = ScriptedLLM(["print('zażółć')", "exit(1)"])
    runtime = Runtime(llm, harness=UNLIMITED)
    runtime.create_job(Agent("worker", "Prompt.", tools=[fetch], metadata={"LLM_TOOLS_SCOPE": "ALL"}))
    runtime.run()
    for request in llm.requests:
        assert request.bytes_sent == len(json.dumps(request.body()))


def test_usage_of_a_job_is_the_sum_of_its_turns() -> None:
    job = run_one("x = 1", "exit(1)")
    assert job.usage.total_bytes_sent == sum(request.bytes_sent for request in job.trace.requests())
    assert job.approx_token_usage == (job.usage.total_bytes_sent + job.usage.total_bytes_received) // 4
