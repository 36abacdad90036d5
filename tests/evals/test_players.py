"""Agents of any make on evals: judged by the world's log, never by what they claim."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from statek_sim.evals.instance_server import ServedEval
from statek_sim.evals.players import Assignment, TooManyCalls, follower, play, replies
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.suite import load_suite
from statek_sim.evals.verdict import Verdict, judge
from statek_sim.evals.world import ToolError
from statek_sim.providers.live import LiveTransport
from statek_sim.server.exchange import Incoming, Whole
from statek_sim.server.llm_server import RunningServer
from tests.tables import table_test

FOLDER = Path(__file__).parents[2] / "scenarios" / "evals"
SUITE = {one.id: one for one in load_suite([FOLDER])}


def verdict_of(name: str, agent: Callable[[Assignment], Any], **options: Any) -> Verdict:
    instance = SUITE[name].instance(4)
    return judge(instance, play(instance, agent, **options))


@table_test("scenario", [pytest.param(one, id=one.id) for one in SUITE.values()])
def test_a_callable_that_does_what_is_right_passes_every_eval(scenario: EvalScenario) -> None:
    for seed in range(3):
        instance = scenario.instance(seed)
        assert judge(instance, play(instance, follower(instance.plan))).problems == ()


def test_a_coroutine_function_works_in_virtual_time() -> None:
    instance = SUITE["weather-now"].instance(0)

    async def agent(job: Assignment) -> str:
        await asyncio.sleep(3600)
        return str(follower(instance.plan)(job))

    assert judge(instance, play(instance, agent)).passed


def test_an_agent_that_lies_about_its_calls_fails() -> None:
    told = verdict_of("weather-now", lambda job: f"I called get_weather, and here it is: {job.task}")
    assert (told.completed, told.passed) == (True, False)
    assert told.problems[0].startswith("get_weather(city=")


def test_what_an_agent_raises_ends_its_run_without_an_answer() -> None:
    def agent(job: Assignment) -> str:
        raise RuntimeError("no key")

    told = verdict_of("weather-now", agent)
    assert (told.completed, told.score) == (False, 0.0)
    assert told.problems[0] == "no final answer: stopped by 'error: RuntimeError: no key'"


def test_an_answer_that_is_no_text_is_none() -> None:
    told = verdict_of("weather-now", lambda job: {"city": "Lima"})
    assert told.problems[0] == "no final answer: stopped by 'no text: dict'"


def test_an_agent_that_calls_for_ever_is_stopped_and_its_answer_does_not_count() -> None:
    def agent(job: Assignment) -> str:
        for _ in range(30):
            with suppress(TooManyCalls):
                job.tools["get_weather"](city="Lima")
        return "done"

    told = verdict_of("weather-now", agent, most_calls=20)
    assert told.problems[0] == "no final answer: stopped by 'calls'"


def test_a_person_who_refuses_is_an_error_of_the_tool_and_is_in_the_log() -> None:
    instance = SUITE["the-person-says-no"].instance(0)

    def agent(job: Assignment) -> str:
        with pytest.raises(ToolError, match=r"^a person refused: The branch is frozen; see NO-\w+-7\.$"):
            job.tools["push"](branch="main")
        return "refused"

    record = play(instance, agent)
    assert [(call.name, call.error is None) for call in record.calls] == [("push", False)]
    assert instance.world.tables["pushes"] == []


# -- pydantic-ai ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["weather-now", "stock-in-three-places", "recover-from-api-error"])
def test_a_real_agent_of_pydantic_ai_passes_with_an_ideal_model(name: str) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="it comes with the dev extra")
    from statek_sim.evals.guest_agents import from_pydantic_ai, model_for_pydantic_ai

    instance = SUITE[name].instance(2)
    model = model_for_pydantic_ai(replies(instance.plan))
    agent = from_pydantic_ai(
        lambda job, tools: pydantic_ai.Agent(model, system_prompt=job.prompt, tools=tools)
    )
    record = play(instance, agent)
    assert judge(instance, record).problems == ()
    assert len(record.calls) >= len(instance.steps.steps)


def test_a_real_agent_of_pydantic_ai_fails_with_a_wrong_model() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="it comes with the dev extra")
    from statek_sim.evals.guest_agents import from_pydantic_ai, model_for_pydantic_ai

    instance = SUITE["stock-in-three-places"].instance(2)
    model = model_for_pydantic_ai(replies(instance.plan_of("first-name")))
    record = play(instance, from_pydantic_ai(lambda job, tools: pydantic_ai.Agent(model, tools=tools)))
    assert not judge(instance, record).passed


# -- over HTTP --------------------------------------------------------------------------------------------------


def http_agent(url: str) -> None:
    """An agent in its own right: it knows an address, and speaks HTTP with it."""
    httpx.post(f"{url}/answer", json={"answer": worked(url)}).raise_for_status()


def worked(url: str) -> str:
    """The answer of an agent that asks the LLM and calls the tools which are at an address."""
    with httpx.Client(base_url=url) as client:
        job = client.get("/task").json()
        messages: list[dict[str, Any]] = [{"role": "user", "content": job["task"]}]
        while True:
            body = {"model": "gpt-4o", "messages": messages, "tools": job["tools"]}
            said = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
            messages.append(said)
            if not said.get("tool_calls"):
                return str(said["content"])
            for call in said["tool_calls"]:
                function = call["function"]
                told = client.post(f"/tools/{function['name']}", content=function["arguments"]).json()
                content = told.get("result") or f"Error: {told['error']}"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})


@pytest.mark.parametrize("name", ["move-money", "one-of-three-fails", "the-person-says-no"])
def test_an_agent_over_http_passes_with_an_ideal_model(name: str) -> None:
    instance = SUITE[name].instance(1)
    with ServedEval(instance, replies(instance.plan)) as served:
        http_agent(served.url)
    record = served.record()
    assert judge(instance, record).problems == ()
    assert record.model_calls >= 2


def test_an_agent_that_is_an_endpoint_is_asked_and_works_with_the_worlds_tools() -> None:
    def endpoint(request: Incoming) -> Whole:
        job = json.loads(request.body)
        return Whole(status=200, body=json.dumps({"answer": worked(job["url"])}).encode())

    instance = SUITE["move-money"].instance(1)
    with RunningServer(endpoint) as theirs, ServedEval(instance, replies(instance.plan)) as served:
        served.ask(f"{theirs.url}/agent", LiveTransport())
    assert judge(instance, served.record()).problems == ()


def test_an_endpoint_that_breaks_has_given_no_answer() -> None:
    instance = SUITE["move-money"].instance(1)
    with (
        RunningServer(lambda request: Whole(status=500, body=b"oops")) as theirs,
        ServedEval(instance, replies(instance.plan)) as served,
    ):
        served.ask(theirs.url, LiveTransport())
    told = judge(instance, served.record())
    assert told.problems[0] == "no final answer: stopped by \"the endpoint gave no answer: HTTP 500 b'oops'\""
    with ServedEval(instance, replies(instance.plan)) as alone:
        alone.ask(theirs.url, LiveTransport())
    assert "ProviderUnreachable" in alone.record().stop


@table_test(("method", "path"), [("GET", "/"), ("GET", "/tools"), ("GET", "/answer"), ("POST", "/task")])
def test_an_address_that_is_none_is_told_the_others(method: str, path: str) -> None:
    instance = SUITE["weather-now"].instance(0)
    with ServedEval(instance, replies(instance.plan)) as served, httpx.Client(base_url=served.url) as client:
        said = client.request(method, path)
    assert said.status_code == 404
    assert said.json()["error"].startswith(
        f"nothing at {method} {path}; there are GET /task, POST /tools/NAME"
    )


def test_an_agent_over_http_that_posts_no_answer_has_none() -> None:
    instance = SUITE["weather-now"].instance(1)
    with ServedEval(instance, replies(instance.plan)) as served, httpx.Client(base_url=served.url) as client:
        assert client.post("/tools/get_weather", content=b"[1]").status_code == 400
        assert "error" in client.post("/tools/nothing", json={}).json()
        assert client.post("/answer", json={"answer": 3}).status_code == 400
    told = judge(instance, served.record())
    assert told.problems[0] == "no final answer: stopped by 'no answer was posted'"


def test_after_its_answer_an_agent_over_http_changes_nothing() -> None:
    instance = SUITE["file-a-ticket"].instance(1)
    with ServedEval(instance, replies(instance.plan)) as served, httpx.Client(base_url=served.url) as client:
        assert client.post("/answer", json={"answer": "Filed."}).status_code == 200
        call = {"machine": "a", "fault": "b", "priority": "low"}
        assert client.post("/tools/create_ticket", content=json.dumps(call)).status_code == 409
        assert client.post("/answer", json={"answer": "Not filed."}).status_code == 409
    assert served.record().answer == "Filed."
    assert served.record().calls == ()
