"""Agents of any make on evals: judged by the world's log, never by what they claim."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from typer.testing import CliRunner

from statek_sim.cli.app import app, load_commands
from statek_sim.errors import BadInput
from statek_sim.evals.arms import beside_agent, parse_arms
from statek_sim.evals.experiment import Experiment, run_experiment
from statek_sim.evals.outcome import FailureClass, Outcome
from statek_sim.evals.players import Assignment, TooManyCalls, play, replies
from statek_sim.evals.profile import Profile, load_profile
from statek_sim.evals.scenario import EvalScenario
from statek_sim.evals.suite import load_suite
from statek_sim.evals.verdict import Verdict, judge
from statek_sim.evals.world import ToolError
from statek_sim.executors.executor import SerialExecutor
from statek_sim.reporting.artifact import schema_named
from tests.evals.weak_models import failing, follower
from tests.tables import table_test

load_commands()

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
    assert told.problems[0] == "no final answer: stopped by 'not a string: dict'"


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
    from statek_sim.evals.frameworks import from_pydantic_ai
    from statek_sim.guests.guest import Guest
    from statek_sim.guests.pydantic_ai import scripted_model
    from statek_sim.providers.script import computed

    instance = SUITE[name].instance(2)
    model = scripted_model(Guest([computed(replies(instance.plan)).forever()]))
    agent = from_pydantic_ai(
        lambda job, tools: pydantic_ai.Agent(model, system_prompt=job.prompt, tools=tools)
    )
    record = play(instance, agent)
    assert judge(instance, record).problems == ()
    assert len(record.calls) >= len(instance.steps.steps)


def test_a_real_agent_of_pydantic_ai_fails_with_a_wrong_model() -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="it comes with the dev extra")
    from statek_sim.evals.frameworks import from_pydantic_ai
    from statek_sim.guests.guest import Guest
    from statek_sim.guests.pydantic_ai import scripted_model
    from statek_sim.providers.script import computed

    instance = SUITE["stock-in-three-places"].instance(2)
    model = scripted_model(Guest([computed(replies(instance.plan_of("first-name"))).forever()]))
    record = play(instance, from_pydantic_ai(lambda job, tools: pydantic_ai.Agent(model, tools=tools)))
    assert not judge(instance, record).passed


# -- an agent with a simulated model ----------------------------------------------------------------------------


def http_agent(job: Assignment) -> str:
    """An agent that knows nothing of ours but its assignment: it asks its model over HTTP."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": job.task}]
    with httpx.Client(base_url=os.environ["OPENAI_BASE_URL"]) as client:
        for _ in range(12):
            body = {
                "model": job.llm.model,
                "messages": messages,
                "tools": [one.spec for one in job.tools.values()],
            }
            said = (
                client.post("chat/completions", json=body).raise_for_status().json()["choices"][0]["message"]
            )
            messages.append(said)
            if not said.get("tool_calls"):
                return str(said["content"])
            messages += [_told(job, call) for call in said["tool_calls"]]
    raise RuntimeError("too many turns")


def _told(job: Assignment, call: dict[str, Any]) -> dict[str, Any]:
    try:
        content = job.tools[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
    except Exception as error:  # noqa: BLE001  # as agents do
        content = f"Error: {error}"
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


HERE = "tests.evals.test_players:http_agent"
AGENT, FULL, BARE = beside_agent(HERE, parse_arms(["full", "bare"]))[:3]


def of_agent(
    *evals: str, ideal: bool = True, profile: Profile | None = None, agent: str = HERE
) -> list[Outcome]:
    arms = (replace(AGENT, agent=agent, ideal=ideal),)
    one = Experiment(
        suite=tuple(SUITE[name] for name in evals),
        model=profile or load_profile("gemma-4-31b-it"),
        arms=arms,
        seeds=2,
    )
    return run_experiment(one, SerialExecutor())


def test_an_agent_of_ones_own_passes_with_a_model_that_never_fails() -> None:
    found = of_agent("move-money", "one-of-three-fails", "the-person-says-no")
    assert [outcome.problems for outcome in found] == [()] * 6
    assert all(
        outcome.seconds and outcome.model_calls >= 2 and outcome.tokens.measured.prompt for outcome in found
    )
    assert "OPENAI_BASE_URL" not in os.environ


def test_an_agent_of_ones_own_meets_the_failures_of_a_weak_model() -> None:
    (early, _) = of_agent("move-money", ideal=False, profile=failing(FailureClass.EARLY_ANSWER))
    assert (early.completed, early.passed) == (True, False)
    assert [turn.failure for turn in early.turns] == ["early_answer"]


@pytest.mark.parametrize("name", ["pydantic_ai", "anthropic"])
def test_clients_of_real_sdks_read_what_the_simulated_model_says(name: str) -> None:
    pytest.importorskip(name, reason="it comes with the dev extra")
    found = of_agent("move-money", "two-cities-at-once", agent=f"statek_sim.evals:{name}")
    assert [outcome.problems for outcome in found] == [()] * 4


@pytest.mark.parametrize(
    ("name", "packages"), [("langgraph", "langchain langchain-openai"), ("openai_agents", "openai-agents")]
)
def test_an_agent_of_a_framework_that_is_not_installed_ends_the_evals(
    monkeypatch: pytest.MonkeyPatch, name: str, packages: str
) -> None:
    for module in ("langchain", "agents"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(BadInput, match=f"this agent needs: pip install {packages}$"):
        of_agent("move-money", agent=f"statek_sim.evals:{name}")


def test_a_prompt_that_is_too_long_is_refused_over_http_too() -> None:
    (refused, _) = of_agent("move-money", ideal=False, profile=failing().model_copy(update={"window": 256}))
    assert refused.stop.startswith("error: HTTPStatusError: Client error '400 Bad Request'")


def test_the_table_has_the_agent_beside_our_harness_with_intervals_tiers_and_seconds(tmp_path: Path) -> None:
    words = ("evals", "run", "--agent", HERE, "--seeds", "1", "--eval", "move-money", "--eval", "weather-now")
    done = CliRunner().invoke(app, [*words, "--json", str(tmp_path / "a.json")])
    assert done.exit_code == 0
    head, *rows = done.output.splitlines()[1:8]
    assert head.split()[-5:] == ["easy", "medium", "calls", "wasted", "seconds"]
    assert [row.partition("  1")[0].split("  ")[1] for row in rows[:6]] == [
        *("agent", "full", "bare"),
        *("agent, ideal", "full, ideal", "bare, ideal"),
    ]
    document = json.loads((tmp_path / "a.json").read_text())
    jsonschema.validate(document, schema_named("evals"))
    ours = document["arms"][1]
    assert (document["arms"][0]["agent"], ours["agent"], ours["seconds"]) == (HERE, None, None)
    assert document["arms"][3]["tiers"] == {
        "easy": {"runs": 1, "passed": 1},
        "medium": {"runs": 1, "passed": 1},
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--agent", "tests.evals.test_players:HERE"), "HERE: expected a callable that takes an Assignment, got str"),
        (("--agent", "tests.evals.test_players:nothing"), "module 'tests.evals.test_players' has no 'nothing'"),
    ],
)  # fmt: skip
def test_an_agent_that_cannot_be_run_is_refused_before_anything_is(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        CliRunner().invoke(app, ["evals", "run", *words], catch_exceptions=False)
