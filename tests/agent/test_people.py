"""Asking a person from code: by a tool, before a call, under both drivers; and what a scenario may say about it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from statek_sim.agent.approvals import EXPIRED, Approvals, filled, tool_that_asks
from statek_sim.agent.async_driver import AsyncDriver, AsyncPerson, LoopClock, model_of
from statek_sim.agent.effects import (
    Ask,
    Delayed,
    GuardPoint,
    Parts,
    PersonSaid,
    Question,
    Receipt,
    Snapshot,
    Subject,
    ToolCall,
    ToolOutcome,
    Verdict,
)
from statek_sim.agent.harness import AgentHarness, Person
from statek_sim.agent.loop import AgentRun
from statek_sim.agent.tools.tool import Tool
from statek_sim.errors import BadScenario, PartBroke, Unanswered
from statek_sim.providers.script import Reply, ScriptedCall, text, tool_call, tool_calls
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.scenario.load import load_or_fail
from statek_sim.suite.run import run_one
from statek_sim.trace import ToolCalled
from statek_sim.virtual_loop import VirtualLoop, run_in
from tests.says import line_with
from tests.tables import table_test

ASKS = [tool_call("ask_person", question="Which city?"), text("done")]


def virtually(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return run_in(VirtualLoop(), coroutine)


def look() -> str:
    """Look."""
    return "seen"


def simulated(
    script: list[Reply], person: Person | None, *, seconds: float | None = None, **said: Any
) -> AgentRun:
    tools: list[Tool | Callable[..., Any]] = [tool_that_asks(seconds=seconds), look]
    return AgentHarness(ScriptedLLM(script), tools=tools, person=person, **said).run("Work.")


async def driven(
    script: list[Reply],
    person: AsyncPerson | None,
    *,
    seconds: float | None = None,
    committed: Callable[[Snapshot], Awaitable[None]] | None = None,
    receipted: Callable[[Receipt], Awaitable[None]] | None = None,
    **said: Any,
) -> AgentRun:
    clock = LoopClock()
    run = AgentHarness(tools=[tool_that_asks(seconds=seconds), look], **said).begin("Work.", clock=clock)
    driver = AsyncDriver(
        model_of(ScriptedLLM(script)),
        clock=clock.now,
        person=person,
        committed=committed,
        receipted=receipted,
    )
    await driver.run(run)
    run.ended = clock.now()  # type: ignore[attr-defined]  # the loop is gone when the test looks
    return run


def test_a_person_in_code_answers_with_a_text() -> None:
    run = simulated(ASKS, lambda question: f"Oslo, as to {question.text}")
    assert run.calls[0]["result"] == "Oslo, as to Which city?"


def test_a_person_takes_as_long_as_they_like_in_virtual_time() -> None:
    run = simulated(ASKS, lambda question: Delayed(3_600, "Oslo"))
    assert (run.calls[0]["result"], run.now()) == ("Oslo", 3_600)


def test_a_person_may_refuse() -> None:
    run = simulated(ASKS, lambda question: PersonSaid("refused", "Ask somebody else."))
    assert run.calls[0]["error"] == "a person refused: Ask somebody else."


def test_a_deadline_that_was_not_needed_takes_no_time() -> None:
    run = simulated(ASKS, lambda question: Delayed(5, "Oslo"), seconds=600)
    assert (run.status, run.now()) == ("DONE", 5)


@pytest.mark.parametrize("person", [None, lambda question: None], ids=["nobody", "never"])
def test_a_question_that_nobody_answers_fails_loudly(person: Person | None) -> None:
    with pytest.raises(Unanswered, match=line_with("run 'main'", "waits", "'Which city?'")):
        simulated(ASKS, person)


def test_an_answer_that_comes_after_the_deadline_is_for_nobody() -> None:
    run = simulated(ASKS, lambda question: Delayed(1_000_000, "Oslo"), seconds=60)
    assert (run.calls[0]["error"], run.now()) == ("nobody answered within 60 seconds: Which city?", 60)


def test_nobody_answers_until_the_deadline() -> None:
    run = simulated(ASKS, lambda question: None, seconds=60)
    assert (run.calls[0]["error"], run.now()) == ("nobody answered within 60 seconds: Which city?", 60)


BOOKS = [tool_call("look"), text("done")]
LOOKING = Parts(gates=[Approvals({"look": Ask(text="Look?")})])


@pytest.mark.parametrize("said", ["yes", "Y", " Yes\n"])
def test_a_text_gives_leave_as_yes(said: str) -> None:
    run = simulated(BOOKS, lambda question: said, parts=LOOKING)
    assert [call["result"] for call in run.calls] == ["seen"]
    assert [call["result"] for call in virtually(driven(BOOKS, _saying(said), parts=LOOKING)).calls] == [
        "seen"
    ]


@pytest.mark.parametrize(
    ("said", "results", "refused"), [(True, ["seen"], []), (False, [], ["Error: a person refused"])]
)
def test_true_gives_leave_and_false_does_not(said: bool, results: list[str], refused: list[str]) -> None:
    async def owner(question: Question) -> bool:
        return said

    for run in (
        simulated(BOOKS, lambda question: said, parts=LOOKING),
        virtually(driven(BOOKS, owner, parts=LOOKING)),
    ):
        assert [call["result"] for call in run.calls] == results
        assert [refusal["reason"] for refusal in run.refused] == refused


def test_a_person_whose_pager_fails_after_a_while_ends_the_run_with_its_error() -> None:
    late = Delayed(30.0, error=OSError("the pager is down"))

    async def owner(question: Question) -> Delayed:
        return late

    with pytest.raises(OSError, match=r"^the pager is down$"):
        simulated(BOOKS, lambda question: late, parts=LOOKING)
    with pytest.raises(OSError, match=r"^the pager is down$"):
        virtually(driven(BOOKS, owner, parts=LOOKING))


def test_a_coroutine_takes_as_long_as_it_says_it_was_delayed() -> None:
    async def owner(question: Question) -> Delayed:
        return Delayed(30.0, "Oslo")

    run = virtually(driven(ASKS, owner))
    assert (run.calls[0]["result"], run.ended) == ("Oslo", 30.0)
    run = virtually(driven(ASKS, owner, seconds=20))
    assert run.calls[0]["error"] == "nobody answered within 20 seconds: Which city?"


def test_what_says_nothing_is_no_answer() -> None:
    async def owner(question: Question) -> str:
        return "yes"

    forgotten: Any = owner(Question(token="t", job="main", tool="look", text="Look?"))
    try:
        with pytest.raises(
            PartBroke, match=line_with("'Look?'", "returned coroutine", "string", "PersonSaid")
        ):
            simulated(BOOKS, lambda question: forgotten, parts=LOOKING)
    finally:
        forgotten.close()


def test_a_commit_whose_own_client_was_cancelled_is_not_taken_for_the_runs_end() -> None:
    async def committed(snapshot: Snapshot) -> None:
        raise asyncio.CancelledError("the pool")

    said = r"^a part of the run raised CancelledError: the pool, but nothing cancelled the run$"
    with pytest.raises(PartBroke, match=said):
        virtually(driven(ASKS, _saying("Oslo"), committed=committed, parts=Parts(commits=True)))

    async def receipted(receipt: Receipt) -> None:
        raise asyncio.CancelledError("the pool")

    both = tool_calls(ScriptedCall("look", {}), ScriptedCall("look", {}))
    for script in (BOOKS, [both, text("done")]):
        with pytest.raises(PartBroke, match=said):
            virtually(driven(script, None, receipted=receipted))


def test_who_commits_can_still_be_cancelled() -> None:
    async def committed(snapshot: Snapshot) -> None:
        await asyncio.sleep(1_000)

    async def cancelled() -> bool:
        task = asyncio.ensure_future(
            driven(ASKS, _saying("Oslo"), committed=committed, parts=Parts(commits=True))
        )
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert virtually(cancelled())


@table_test("said", ["no", "", "yes, but not now", "None"])
def test_any_other_text_is_the_reason_why_not(said: str) -> None:
    why = f"Error: a person refused: {said}".removesuffix(": ")
    for run in (
        simulated(BOOKS, lambda question: said, parts=LOOKING),
        virtually(driven(BOOKS, _saying(said), parts=LOOKING)),
    ):
        assert (run.calls, [(one["name"], one["reason"]) for one in run.refused]) == ([], [("look", why)])


def _saying(said: str) -> Callable[[Question], Awaitable[str]]:
    async def person(question: Question) -> str:
        return said

    return person


# -- approvals --------------------------------------------------------------------------------------------------


def test_a_gate_of_ones_own_may_ask_and_is_told_when_the_person_refuses() -> None:
    withdrawn: list[str] = []

    class Careful:
        def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
            return Ask(text=f"Really {call.name}?")

        def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
            """A call ended."""

        def withdrawn(self, call: ToolCall, *, at: float) -> None:
            withdrawn.append(call.name)

    run = simulated(
        [tool_call("look"), text("done")],
        lambda question: PersonSaid("refused", "No."),
        parts=Parts(gates=[Careful()]),
    )
    assert (run.calls, withdrawn) == ([], ["look"])
    assert run.refused == [{"name": "look", "failure": "refused", "reason": "Error: a person refused: No."}]


def test_an_approval_without_a_question_of_its_own_shows_the_call() -> None:
    asked: list[str] = []

    def owner(question: Question) -> str:
        asked.append(question.text)
        return "yes"

    simulated(
        [tool_call("look"), text("done")],
        owner,
        parts=Parts(gates=[Approvals({"look": Ask(text="")})]),
    )
    assert asked == ["May look() be called?"]


def test_a_question_shows_arguments_as_they_are_even_where_they_look_like_its_blanks() -> None:
    arguments = {"path": "/etc/{reason}", "reason": "tidying {path}"}
    question = filled(Ask(text="May {path} go, for {reason}? {other}"), ToolCall("c1", "delete", arguments))
    assert question.text == "May /etc/{reason} go, for tidying {path}? {other}"


def test_a_call_that_a_person_refuses_is_no_step_of_the_budget() -> None:
    run = simulated(
        [tool_call("look"), text("done")],
        lambda question: PersonSaid("refused"),
        parts=Parts(gates=[Approvals({"look": Ask(text="Look?")})]),
    )
    assert run.budget.steps == 2


# -- asyncio ----------------------------------------------------------------------------------------------------


async def slow_owner(question: Question) -> str:
    await asyncio.sleep(20)
    return f"Oslo ({question.token})"


def test_a_coroutine_answers_under_asyncio() -> None:
    run = virtually(driven(ASKS, slow_owner))
    assert (run.calls[0]["result"], run.ended) == ("Oslo (main:1)", 20.0)


def test_a_coroutine_that_takes_longer_than_the_deadline_is_cancelled() -> None:
    left: list[str] = []

    async def owner(question: Question) -> str:
        try:
            await asyncio.sleep(1_000)
        finally:
            left.append("cancelled")
        return "late"

    run = virtually(driven(ASKS, owner, seconds=60))
    assert (left, run.calls[0]["error"]) == (["cancelled"], "nobody answered within 60 seconds: Which city?")


def test_a_persons_own_timeout_error_is_theirs() -> None:
    async def owner(question: Question) -> str:
        raise TimeoutError("the pager")

    with pytest.raises(TimeoutError, match=r"^the pager$"):
        virtually(driven(ASKS, owner, seconds=60))


def test_a_person_whose_client_was_cancelled_is_not_taken_for_the_runs_end() -> None:
    async def owner(question: Question) -> str:
        raise asyncio.CancelledError("the pager")

    both = tool_calls(*(ScriptedCall("ask_person", {"question": word}) for word in ("One?", "Two?")))
    for script in (ASKS, [both, text("done")]):
        with pytest.raises(
            PartBroke, match=r"raised CancelledError: the pager, but nothing cancelled the run$"
        ):
            virtually(driven(script, owner))


def test_a_person_that_gives_none_has_not_answered() -> None:
    async def owner(question: Question) -> Any:
        return None

    with pytest.raises(PartBroke, match=line_with("'Which city?'", "returned None", "string", "PersonSaid")):
        virtually(driven(ASKS, owner))


def test_a_person_may_let_a_question_without_a_deadline_expire() -> None:
    async def owner(question: Question) -> PersonSaid:
        return EXPIRED

    for run in (virtually(driven(ASKS, owner)), simulated(ASKS, lambda question: EXPIRED)):
        assert run.calls[0]["error"] == "nobody answered: Which city?"


def test_a_no_is_no_leave_whatever_a_gate_or_a_guard_forgot_to_say() -> None:
    class Gate:
        def admit(self, call: ToolCall, *, at: float) -> str | Ask | None:
            return Ask(text="Look?")

        def ended(self, call: ToolCall, outcome: ToolOutcome, *, at: float) -> None:
            """A call ended."""

        def withdrawn(self, call: ToolCall, *, at: float) -> None:
            """A call was not made."""

    def guard(subject: Subject) -> Verdict:
        return (
            Verdict(action="ask", asks=(Ask(text="Look?"),))
            if subject.point is GuardPoint.CALL
            else Verdict()
        )

    async def owner(question: Question) -> str:
        return "no"

    script = [tool_call("look"), text("done")]
    for parts in (Parts(gates=[Gate()]), Parts(guards=[guard])):
        for run in (
            simulated(script, lambda question: "no", parts=parts),
            virtually(driven(script, owner, parts=parts)),
        ):
            assert (run.calls, [call["reason"] for call in run.refused]) == (
                [],
                ["Error: a person refused: no"],
            )


@pytest.mark.parametrize("said", ["no", " No\n", "n", "false", "No.", '"no!"'])
def test_a_no_is_no_leave_as_an_answer_either(said: str, tmp_path: Path) -> None:
    run = simulated(BOOKS, lambda question: PersonSaid("answered", said), parts=LOOKING)
    assert [call["reason"] for call in run.refused] == [f"Error: a person refused: {said.strip()}"]
    assert simulated(ASKS, lambda question: PersonSaid("answered", said)).calls[0]["result"] == said
    assert simulated(BOOKS, lambda question: PersonSaid("answered", "Go."), parts=LOOKING).refused == []
    (tmp_path / "no.yaml").write_text(
        "scenarios:\n"
        "  - id: no\n"
        "    title: A no.\n"
        "    engine: agent\n"
        "    tools: {look: {description: Look., result: seen}}\n"
        "    agents: {assistant: {prompt: P., harness: {approvals: {look: {question: Look?}}}}}\n"
        "    jobs: {main: {message: Go.}}\n"
        "    script: {assistant: [{tools: [{name: look}]}, {text: done}]}\n"
        f"    events: [{{at: 5, answer: main, message: {json.dumps(said)}}}]\n"
    )
    (scenario,) = load_or_fail([tmp_path / "no.yaml"])
    record = run_one(scenario, "hardened").record
    assert not [event for event in record.events if isinstance(event, ToolCalled)]


def test_two_questions_are_out_at_the_same_time() -> None:
    asked: list[float] = []

    async def owner(question: Question) -> str:
        asked.append(asyncio.get_running_loop().time())
        await asyncio.sleep(30 if "city" in question.text else 10)
        return question.text

    both = tool_calls(
        ScriptedCall("ask_person", {"question": "Which city?"}),
        ScriptedCall("ask_person", {"question": "Which hotel?"}),
    )
    run = virtually(driven([both, text("done")], owner))
    assert asked == [0.0, 0.0]
    assert ([call["result"] for call in run.calls], run.ended) == (["Which city?", "Which hotel?"], 30.0)


def test_cancelling_a_run_that_waits_for_a_person_leaves_nothing_behind() -> None:
    left: list[str] = []

    async def owner(question: Question) -> str:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError:
            left.append(question.token)
            raise
        return "late"

    async def cancelled() -> set[asyncio.Task[Any]]:
        both = tool_calls(*(ScriptedCall("ask_person", {"question": word}) for word in ("One?", "Two?")))
        task = asyncio.create_task(driven([both, text("done")], owner))
        await asyncio.sleep(5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert virtually(cancelled()) == set()
    assert sorted(left) == ["main:1", "main:2"]


def test_a_driver_without_a_person_says_so() -> None:
    with pytest.raises(Unanswered, match=line_with("'Which city?'", "no person")):
        virtually(driven(ASKS, None))


def test_what_is_committed_before_the_wait_has_the_question_in_it() -> None:
    seen: list[Snapshot] = []

    async def commit(snapshot: Snapshot) -> None:
        seen.append(snapshot)

    virtually(driven(ASKS, slow_owner, seconds=60, committed=commit, parts=Parts(commits=True)))
    waiting = next(one for one in seen if one.point == "suspended")
    question = Question(token="main:1", job="main", tool="ask_person", text="Which city?", seconds=60)
    assert (waiting.questions, waiting.messages[-1]["role"]) == ((question,), "user")


# -- scenario files ---------------------------------------------------------------------------------------------

HEAD = """
scenarios:
  - id: people
    title: People.
    engine: {engine}
    {tools}
    agents: {{assistant: {{prompt: You work.{more}}}}}
    jobs: {{main: {{message: Work.}}}}
    script: {{assistant: [{{text: done}}]}}
    events: [{event}]
    expect: {{llm_calls: 1}}
"""


@pytest.mark.parametrize(
    ("engine", "tools", "more", "event", "facts"),
    [
        ("statek", "", "", "{at: 1, answer: main, message: Hi}", "'answer'; for the agent engine; `engine: statek`"),
        ("agent", "", "", "{at: 1, answer: main}", "events[0]: ; answer requires message"),
        ("agent", "", "", "{at: 1, answer: other, message: Hi}", "unknown job 'other'"),
        ("agent", "", "", "{at: 1, push: main, message: Hi, question: What}", "question; with answer; not with push"),
        (
            "agent",
            "tools: {ask: {asks: Well?, result: 1}}",
            "",
            "{at: 1, push: main, message: Hi}",
            "tools.ask: ; one of result, error, results, call, asks; got result and asks",
        ),
        (
            "agent",
            "tools: {ask: {result: 1, within: 3}}",
            "",
            "{at: 1, push: main, message: Hi}",
            "tools.ask: ; within requires asks",
        ),
        (
            "agent",
            "tools: {deploy: {result: 1}}",
            ", harness: {approvals: {deploi: {within: 3}}}",
            "{at: 1, push: main, message: Hi}",
            "tool 'deploi'; 'deploy'?",
        ),
        (
            "agent",
            "tools: {deploy: {result: 1, tags: [write]}}",
            ", offer: {all_tags: [read]}, workflow: {steps: [deploy]}",
            "{at: 1, push: main, message: Hi}",
            "agents.assistant.workflow.steps[0]: ; 'deploy'; never offered",
        ),
    ],
)  # fmt: skip
def test_a_scenario_that_makes_no_sense_is_refused_with_its_line(
    tmp_path: Path, engine: str, tools: str, more: str, event: str, facts: str
) -> None:
    file = tmp_path / "people.yaml"
    file.write_text(HEAD.format(engine=engine, tools=tools, more=more, event=event), encoding="utf-8")
    with pytest.raises(BadScenario, match=line_with(f"{file}:", *facts.split("; "))):
        load_or_fail([file])


def test_a_question_with_a_deadline_and_nobody_to_ask_is_refused_then_on_both_drivers() -> None:
    expected = simulated(ASKS, lambda question: None, seconds=600).calls
    nobody, on_asyncio = simulated(ASKS, None, seconds=600), virtually(driven(ASKS, None, seconds=600))
    assert (nobody.status, nobody.now(), nobody.calls) == ("DONE", 600, expected)
    assert (on_asyncio.status, on_asyncio.ended, on_asyncio.calls) == ("DONE", 600, expected)


def test_an_approval_may_be_written_as_its_question(tmp_path: Path) -> None:
    questions = ["{question: 'Look now?'}", "Look now?"]
    traces = []
    for question in questions:
        (tmp_path / "asks.yaml").write_text(
            "scenarios:\n"
            "  - id: asks\n"
            "    title: A call needs leave.\n"
            "    engine: agent\n"
            "    tools: {look: {description: Look., result: seen}}\n"
            f"    agents: {{assistant: {{prompt: P., harness: {{approvals: {{look: {question}}}}}}}}}\n"
            "    jobs: {main: {message: Go.}}\n"
            "    script: {assistant: [{tools: [{name: look}]}, {text: done}]}\n"
            "    events: [{at: 5, answer: main, message: yes}]\n"
        )
        (scenario,) = load_or_fail([tmp_path / "asks.yaml"])
        traces.append(run_one(scenario, "hardened").record.digest)
    assert traces[0] == traces[1]
