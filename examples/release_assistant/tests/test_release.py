"""Tests a release without a real model; all time is virtual, except in the last test."""

import asyncio

import pytest
from release_assistant import tracker
from release_assistant.assistant import HOUR, assistant
from release_assistant.repository import Repository

from statek_sim import ScriptedLLM, text, tool_call
from statek_sim import trace as events
from statek_sim.agents import Delayed, PersonSaid, Registry, model_of
from statek_sim.mcp import McpServer, fault_from
from statek_sim.mcp_client import McpServerSpec, McpSource, ScriptedConnection, Stdio, served

MERGED = tool_call("tracker__merged", since="1.1.0")
TESTS = tool_call("run_tests")
NOTES = tool_call("write_notes", version="1.2.0", text="- A token is no longer logged")
PUBLISH = tool_call("publish", version="1.2.0")
DONE = text("1.2.0 is out.")


@pytest.fixture
def repository():
    return Repository()


@pytest.fixture
def release(statek_agent, repository):
    """Plays a release with the tracker as an in-process MCP server."""

    def play(*script, person=lambda question: Delayed(60, "yes"), faults=()):
        server = McpServer(served(Registry(tracker.TOOLS)), faults=[fault_from(fault) for fault in faults])
        spec = McpServerSpec(name="tracker", at=Stdio(command="tracker"))
        parts = assistant(repository, McpSource(ScriptedConnection(spec, server)))
        agent = statek_agent(script=list(script), person=person, **parts)
        return agent.run("Release what follows 1.1.0.")

    return play


def test_a_release_is_published_when_a_person_allows_it(release, repository):
    run = release(MERGED, TESTS, NOTES, PUBLISH, DONE)
    assert (run.answer, run.now()) == ("1.2.0 is out.", 60.0)
    assert repository.published == ["1.2.0"]
    assert run.enforcer.done == ("run_tests", "write_notes", "publish")


def test_nothing_is_published_before_its_steps(release, repository):
    run = release(PUBLISH, NOTES, TESTS, NOTES, PUBLISH, DONE)
    assert run.nudged == ["prerequisite", "wrong_tool"]
    assert repository.published == ["1.2.0"]


def test_the_answer_waits_for_the_release(release, repository):
    run = release(DONE, TESTS, NOTES, PUBLISH, DONE)
    assert run.nudged == ["unfinished"]
    assert repository.published == ["1.2.0"]


def test_tests_that_fail_are_run_again_and_nothing_else_goes_on(release, repository):
    results = iter([AssertionError("1 failed"), "412 passed"])

    def tests():
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return result

    repository.tests = tests
    run = release(TESTS, NOTES, TESTS, NOTES, PUBLISH, DONE)
    assert run.nudged == ["wrong_tool"]
    assert run.calls[0]["error"] == "AssertionError: 1 failed"
    assert repository.published == ["1.2.0"]


def test_a_person_who_refuses_is_told_to_the_model_and_may_be_asked_again(release, repository):
    answers = iter([PersonSaid("refused", "Not on a Friday."), Delayed(3 * 24 * HOUR, "yes"), "yes"])
    run = release(TESTS, NOTES, PUBLISH, PUBLISH, PUBLISH, DONE, person=lambda question: next(answers))
    assert [refusal["reason"] for refusal in run.refused] == [
        "Error: a person refused: Not on a Friday.",
        "Error: nobody answered within 3600 seconds: Publish 1.2.0?",
    ]
    assert (repository.published, run.now()) == (["1.2.0"], HOUR)


def test_a_tracker_that_dies_is_told_and_asked_again(release, repository):
    run = release(MERGED, MERGED, TESTS, NOTES, PUBLISH, DONE, faults=["dies:merged@1"])
    assert run.calls[0]["error"].startswith("McpServerDied: ")
    assert "#101" in run.calls[1]["result"]
    assert repository.published == ["1.2.0"]


def test_issues_that_were_read_make_room_and_no_step_is_forgotten(release, repository):
    reads = [tool_call("tracker__details", number=number) for number in (101, 102, 103)]
    run = release(TESTS, *reads, NOTES, PUBLISH, DONE)
    shorter = run.trace.of_job("main").of_type(events.Compacted)
    assert shorter
    assert all(event.tokens_after < 1100 < event.tokens_before for event in shorter)
    assert repository.published == ["1.2.0"]


def test_a_call_that_was_written_as_text_is_read(release, repository):
    written = text('<tool_call>{"name": "run_tests", "arguments": {},}</tool_call>')
    release(written, NOTES, PUBLISH, DONE)
    assert repository.published == ["1.2.0"]


def test_the_program_works_with_the_tracker_as_a_process(repository):
    pytest.importorskip("mcp", reason="pip install 'pytest-statek[mcp]'")
    from release_assistant.program import release  # noqa: PLC0415  # it needs the SDK

    async def person(question):
        return "yes"

    model = model_of(ScriptedLLM([MERGED, TESTS, NOTES, PUBLISH, DONE]))
    run = asyncio.run(release(repository, model, person))
    assert (run.answer, repository.published) == ("1.2.0 is out.", ["1.2.0"])
    assert "#102" in run.calls[0]["result"]
