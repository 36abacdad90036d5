"""Ladders: what climbs, what is carried, who is told, in one process or two, and what other ladders would have cost."""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import json
import multiprocessing
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from email.message import Message
from http.client import IncompleteRead, RemoteDisconnected
from io import UnsupportedOperation
from pathlib import Path
from threading import Barrier
from typing import Any
from urllib.error import HTTPError, URLError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statek_sim import trace as events
from statek_sim.agent.asynchronous import AsyncDriver, LoopClock, model_of
from statek_sim.agent.effects import Delayed, Parts, PersonSaid
from statek_sim.agent.escalation.causes import REACTIONS, Cause, cause_of_failure, cause_of_stop
from statek_sim.agent.escalation.climbing import Attempt, after, begun, climb_json, climb_of, task_text
from statek_sim.agent.escalation.controller import Escalation, Tried, Try, escalate, resume
from statek_sim.agent.escalation.ladder import Judgement, Ladder, Level, Price
from statek_sim.agent.escalation.tickets import (
    FileTickets,
    KeptTickets,
    Tickets,
    Word,
    by_webhook,
    on_terminal,
)
from statek_sim.agent.harness import AgentHarness
from statek_sim.agent.virtual_loop import VirtualLoop, run_in
from statek_sim.errors import BadInput, ProviderHTTPError, ProviderTimeout
from statek_sim.harness.harness import LLM_Harness
from statek_sim.providers.script import text, tool_call
from statek_sim.providers.scripted import ScriptedLLM
from statek_sim.scenario.agent import AGENT_STOPS
from tests.tables import table_test


def good(task: str, answer: str) -> Judgement:
    return Judgement("GOOD" in answer, "not GOOD", score=len(answer))


FAST = Level(name="fast", model="small", attempts=2, price=Price(per_million=Decimal(1)))
STRONG = Level(name="strong", model="large", carry="best")
PERSON = Level(name="person", question="{task}\n{attempts}", seconds=60.0)
LADDER = Ladder(levels=(FAST, STRONG, PERSON), checks=[good])


def climbed(
    *said: Tried | Exception, ladder: Ladder = LADDER, tickets: Tickets | None = None, **more: Any
) -> Any:
    """Return how a task stands, what was tried, and the seconds it took, when the attempts end like this."""
    tries: list[Try] = []
    left = list(said)

    async def work(wanted: Try) -> Tried:
        tries.append(wanted)
        told = left.pop(0)
        if isinstance(told, Exception):
            raise told
        return told

    async def go() -> tuple[Escalation, float]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        found = await escalate(
            ladder,
            "Write.",
            work,
            token="t1",
            tickets=tickets or KeptTickets(),
            now=loop.time,
            sleep=asyncio.sleep,
            **more,
        )
        return found, loop.time() - began

    found, seconds = run_in(VirtualLoop(), go())
    return found, tries, seconds


def http(status: int) -> ProviderHTTPError:
    return ProviderHTTPError(f"error {status}", status=status)


class ClientError(Exception):
    """What the client of a provider raises: the status of the answer is in it."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code


# -- what climbs -----------------------------------------------------------------------------------------------


def test_every_cause_has_a_reaction_and_every_stop_of_a_run_a_cause() -> None:
    assert set(REACTIONS) == set(Cause)
    known = {cause_of_stop(stop) for stop in AGENT_STOPS}
    assert {Cause.BUDGET, Cause.STUCK, Cause.BLOCKED, Cause.MAX_NUDGES} <= known
    assert cause_of_stop("max_token_usage") is Cause.LIMIT


@table_test(
    ("failure", "cause"),
    [
        (http(401), Cause.UNAUTHORISED),
        (http(402), Cause.UNAUTHORISED),
        (http(429), Cause.RATE_LIMITED),
        (http(408), Cause.UNAVAILABLE),
        (http(503), Cause.UNAVAILABLE),
        (http(400), Cause.BAD_REQUEST),
        (ProviderTimeout(""), Cause.UNAVAILABLE),
        (TimeoutError("slow"), Cause.UNAVAILABLE),
        (ConnectionResetError("gone"), Cause.UNAVAILABLE),
        (ClientError(429), Cause.RATE_LIMITED),
        (ClientError(401), Cause.UNAUTHORISED),
        (ClientError(200), Cause.BUG),
        (KeyError("x"), Cause.BUG),
    ],
)
def test_a_failure_has_a_cause(failure: Exception, cause: Cause) -> None:
    assert cause_of_failure(failure) is cause


def test_failures_of_the_clients_people_use_have_causes() -> None:
    openai, httpx = pytest.importorskip("openai"), pytest.importorskip("httpx")
    request = httpx.Request("POST", "http://far.invalid")
    refused = httpx.HTTPStatusError("no", request=request, response=httpx.Response(429, request=request))
    unreached = (
        openai.APITimeoutError(request=request),
        openai.APIConnectionError(request=request),
        httpx.ConnectError("nobody there"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("Server disconnected without sending a response."),
        httpx.ProxyError("502"),
        IncompleteRead(b"half of an answer"),
        RemoteDisconnected("Remote end closed connection without response"),
    )
    assert {cause_of_failure(error) for error in unreached} == {Cause.UNAVAILABLE}
    assert cause_of_failure(httpx.LocalProtocolError("a header of ours is no header")) is Cause.BUG
    assert cause_of_failure(refused) is Cause.RATE_LIMITED


def test_a_network_that_is_not_there_is_waited_for_and_a_file_that_is_not_is_a_bug() -> None:
    unreached = (
        socket.gaierror(-2, "Name or service not known"),
        OSError(errno.EHOSTUNREACH, "No route to host"),
        OSError("Multiple exceptions: [Errno 111] Connect call failed"),
        URLError(socket.gaierror(-2, "Name or service not known")),
    )
    assert {cause_of_failure(error) for error in unreached} == {Cause.UNAVAILABLE}
    own = (FileNotFoundError(errno.ENOENT, "x"), OSError(errno.ENOSPC, "x"), UnsupportedOperation("read"))
    assert {cause_of_failure(error) for error in own} == {Cause.BUG}
    told = HTTPError("http://far.invalid", 401, "no", Message(), None)
    assert cause_of_failure(told) is Cause.UNAUTHORISED


@pytest.mark.parametrize("failure", [http(401), http(400), KeyError("x")])
def test_what_a_stronger_model_cannot_help_with_ends_the_climb(failure: Exception) -> None:
    found, tries, _ = climbed(failure)
    assert (found.kind, len(tries)) == ("unsolved", 1)


def test_a_provider_that_is_down_is_waited_for_longer_each_time() -> None:
    patient = replace(LADDER, levels=(replace(FAST, attempts=5),), backoff=4.0, longest=10.0)
    assert climbed(*[http(503)] * 4, Tried(answer="GOOD"), ladder=patient)[2] == 4 + 8 + 10 + 10


def test_an_attempt_is_told_what_its_level_declares() -> None:
    found, tries, _ = climbed(Tried(answer="bad"), Tried(answer="less bad"), Tried(answer="GOOD"))
    assert (found.kind, found.answer) == ("solved", "GOOD")
    assert [one.task for one in tries] == [
        "Write.",
        "Write.",
        "Write.\n\nAn earlier attempt failed: not GOOD.\nThe best answer so far:\nless bad",
    ]


def test_every_attempt_has_its_tokens_and_its_cost() -> None:
    found, _, _ = climbed(Tried(answer="bad", tokens=500_000), Tried(answer="GOOD", tokens=250_000))
    assert [(one.tokens, one.cost, one.cause.value) for one in found.climb.attempts] == [
        (500_000, Decimal("0.5"), "poor_quality"),
        (250_000, Decimal("0.25"), "solved"),
    ]
    assert (found.climb.tokens, found.climb.cost) == (750_000, Decimal("0.75"))


def test_the_best_answer_is_kept_where_none_was_good_enough() -> None:
    short = replace(LADDER, levels=(FAST, STRONG))
    answers = [Tried(answer="aaa"), Tried(answer="a"), Tried(answer="aa")]
    assert climbed(*answers, ladder=short)[0].answer == "aaa"


def test_cancelling_a_task_goes_through() -> None:
    async def work(wanted: Try) -> Tried:
        await asyncio.sleep(1000)
        return Tried()

    async def go() -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(5):
            await escalate(
                LADDER, "Write.", work, token="t", tickets=KeptTickets(), now=loop.time, sleep=asyncio.sleep
            )

    with pytest.raises(TimeoutError):
        run_in(VirtualLoop(), go())


@given(st.lists(st.sampled_from([cause for cause in Cause if cause is not Cause.SOLVED]), max_size=12))
def test_a_climb_ends_and_never_comes_down(causes: list[Cause]) -> None:
    state, places = begun("Write."), []
    for cause in causes:
        level = LADDER.levels[state.level]
        state, decision = after(
            state, Attempt(level=level.name, number=state.number, model=level.model, cause=cause), LADDER
        )
        assert climb_of(json.loads(json.dumps(climb_json(state)))) == state
        if decision.kind == "stop":
            break
        places.append((state.level, state.number))
    assert places == sorted(set(places))
    assert len(state.attempts) <= sum(level.attempts for level in LADDER.levels)


def test_a_ladder_that_cannot_be_climbed_is_bad_input() -> None:
    with pytest.raises(BadInput, match=r"^a ladder has at least one level$"):
        Ladder(levels=())
    with pytest.raises(
        BadInput, match=r"^level 'fast' is there twice; expected levels to have names of their own$"
    ):
        Ladder(levels=(FAST, FAST))
    with pytest.raises(BadInput, match=r"^level 'fast': attempts is 0, expected 1 or more$"):
        Ladder(levels=(replace(FAST, attempts=0),))
    with pytest.raises(BadInput, match=r"^level 'person': a person is the last level$"):
        Ladder(levels=(PERSON, FAST))
    with pytest.raises(BadInput, match=r"^backoff is 90 s, expected 0 to longest, 60 s$"):
        Ladder(levels=(FAST,), backoff=90)


TYPO: Any
HALF: Any
ENDLESS: Any
YES: Any
TYPO, HALF, ENDLESS, YES = "bset", 1.5, float("inf"), "yes"


@table_test(
    ("make", "problem"),
    [
        (lambda: replace(STRONG, carry=TYPO), r"^level 'strong': carry is 'bset', expected nothing, reason, best"),
        (lambda: replace(PERSON, seconds=-1.0), r"^level 'person': seconds is -1, expected more than 0, or None"),
        (lambda: replace(PERSON, seconds=float("nan")), r"^level 'person': seconds is nan, expected more than 0"),
        (lambda: Price(per_million=Decimal(-1)), r"^price is -1 USD per million tokens, expected a Decimal"),
        (lambda: Ladder(levels=(replace(FAST, attempts=HALF),)), r"^level 'fast': attempts is 1.5, expected 1 or"),
        (lambda: Ladder(levels=(replace(FAST, attempts=ENDLESS),)), r"^level 'fast': attempts is inf, expected 1 or"),
        (lambda: Ladder(levels=(replace(FAST, attempts=YES),)), r"^level 'fast': attempts is 'yes', expected 1 or"),
        (lambda: replace(PERSON, seconds=YES), r"^level 'person': seconds is 'yes', expected more than 0"),
        (lambda: Ladder(levels=(FAST,), backoff=YES), r"^backoff is 'yes' s, expected a number$"),
        (lambda: Price(per_million=HALF), r"^price is 1.5 USD per million tokens, expected a Decimal"),
        (lambda: Word(kind=YES, text="", at=0.0), r"^a person said something of the kind 'yes'; expected answered"),
    ],
    ids=["carry", "seconds", "nan", "price", "attempts", "endless", "text", "when", "backoff", "float", "word"],
)  # fmt: skip
def test_what_a_level_or_a_word_cannot_have_is_bad_input(make: Callable[[], object], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        make()


def test_a_question_is_filled_in_at_once() -> None:
    ladder = Ladder(
        levels=(FAST, replace(PERSON, question="{task}: {attempts}")), checks=[lambda task, answer: False]
    )
    found, _, _ = climbed(Tried(cause=Cause.STUCK, detail="{task}?"), ladder=ladder)
    assert found.ticket.question == "Write.: fast #1: {task}?"


def test_checks_and_notifications_may_be_coroutine_functions() -> None:
    seen: list[str] = []

    async def judge(task: str, answer: str) -> Judgement:
        await asyncio.sleep(1.0)
        return good(task, answer)

    async def post(address: str, body: bytes) -> None:
        await asyncio.sleep(1.0)
        seen.append(address)

    async def broken(ticket: object) -> None:
        raise OSError("the mail server is down")

    found, tries, _ = climbed(
        *BAD, ladder=replace(LADDER, checks=[judge]), notify=[broken, by_webhook("http://hook", post)]
    )
    assert (found.kind, len(tries), seen) == ("suspended", 3, ["http://hook"])
    assert found.untold == ("OSError: the mail server is down",)


def _breaks(*_: object) -> Any:
    raise ValueError("it broke")


def _gives_none(*_: object) -> Any:
    return None


@table_test(
    ("ladder", "tried", "detail", "answer"),
    [
        (replace(LADDER, checks=[_breaks]), Tried(answer="a", tokens=7), "ValueError: it broke", "a"),
        (
            replace(LADDER, checks=[_gives_none]),
            Tried(answer="a", tokens=7),
            "BadInput: check '_gives_none' returned NoneType, expected a Judgement, True or False",
            "a",
        ),
        (replace(LADDER, levels=(replace(FAST, strategy=_breaks),)), Tried(), "ValueError: it broke", None),
        (
            replace(LADDER, levels=(replace(FAST, strategy=_gives_none),)),
            Tried(),
            "BadInput: level 'fast': its strategy returned NoneType, expected a text",
            None,
        ),
        (LADDER, "an answer", "the attempt returned str, expected Tried", None),
    ],
    ids=["check", "no judgement", "strategy", "no text", "no Tried"],
)
def test_what_breaks_in_a_users_part_of_a_ladder_ends_the_climb_with_the_best_answer(
    ladder: Ladder, tried: Any, detail: str, answer: str | None
) -> None:
    found, _, _ = climbed(tried, ladder=ladder)
    (attempt,) = found.climb.attempts
    assert (found.kind, found.answer, attempt.cause, attempt.detail) == (
        "unsolved",
        answer,
        Cause.BUG,
        detail,
    )


async def _waited_for(task: str, answer: str) -> bool:
    return False


@table_test(
    ("check", "given"),
    [
        (lambda task, answer: 0.1, "float"),
        (lambda task, answer: "no", "str"),
        (lambda task, answer: Judgement("no"), "a Judgement whose good is str"),  # type: ignore[arg-type]  # a mistake
        (_waited_for, "coroutine"),
    ],
    ids=["score", "text", "text in a judgement", "coroutine"],
)
def test_what_is_neither_true_nor_false_is_no_judgement(check: Any, given: str) -> None:
    with pytest.raises(BadInput, match=rf"returned {given}, expected a Judgement, True or False$"):
        replace(LADDER, checks=[check]).judged("Write.", "Nothing.")
    gc.collect()  # a coroutine that was never awaited would warn here


def test_an_attempt_without_an_answer_has_not_solved_the_task() -> None:
    found, tries, _ = climbed(Tried(), Tried(answer="GOOD"), ladder=Ladder(levels=(FAST,)))
    assert (found.answer, len(tries)) == ("GOOD", 2)
    assert found.climb.attempts[0].detail == "there is no answer"


def test_a_token_that_is_taken_is_refused_before_a_model_is_asked() -> None:
    tickets = KeptTickets()
    climbed(*BAD, tickets=tickets)
    with pytest.raises(BadInput, match=r"^token 't1' is taken; expected one that no other ticket has$"):
        climbed(AssertionError("a model was asked"), tickets=tickets)


# -- people ----------------------------------------------------------------------------------------------------


BAD = (Tried(answer="a"), Tried(answer="b"), Tried(answer="c"))


def test_a_person_is_told_after_the_ticket_is_stored_and_a_failing_notification_hides_nothing() -> None:
    stream, posted = io.StringIO(), list[tuple[str, bytes]]()
    tickets = KeptTickets()

    def broken(ticket: object) -> None:
        assert tickets.load("t1") is not None
        raise OSError("the mail server is down")

    found, _, _ = climbed(
        *BAD,
        tickets=tickets,
        notify=[broken, on_terminal(stream), by_webhook("http://hook", lambda *said: posted.append(said))],
    )
    assert (found.kind, found.untold) == ("suspended", ("OSError: the mail server is down",))
    assert stream.getvalue().startswith("[t1] person is asked (until 60 s): Write.\nfast #1: not GOOD\n")
    ((address, body),) = posted
    told = json.loads(body)
    assert (address, told["token"], told["deadline"], len(told["attempts"])) == ("http://hook", "t1", 60.0, 3)


@pytest.mark.parametrize("make", [lambda folder: KeptTickets(), FileTickets], ids=["kept", "files"])
def test_a_ticket_is_answered_once_and_the_first_word_counts(
    make: Callable[[Path], Tickets], tmp_path: Path
) -> None:
    tickets = make(tmp_path)
    climbed(*BAD, tickets=tickets)
    first = resume(LADDER, "t1", Word(kind="answered", text="mine", at=30.0), tickets)
    second = resume(LADDER, "t1", Word(kind="answered", text="no, mine", at=31.0), tickets)
    assert (first.kind, first.answer) == ("solved", "mine")
    assert second == first
    assert first.climb.attempts[-1].seconds == 30.0
    with pytest.raises(
        BadInput, match=r"^nobody was asked with token 't2'; expected one of a ticket that was saved$"
    ):
        resume(LADDER, "t2", Word(kind="answered", text="", at=0.0), tickets)
    with pytest.raises(BadInput, match=r"^token 't1' is taken; expected one that no other ticket has$"):
        climbed(*BAD, tickets=tickets)


def test_a_refusal_and_a_word_after_the_deadline_leave_the_best_answer() -> None:
    for word, cause in (
        (Word(kind="refused", text="no", at=1.0), Cause.REFUSED),
        (Word(kind="answered", text="late", at=61.0), Cause.EXPIRED),
        (Word(kind="expired", text="", at=60.0), Cause.EXPIRED),
    ):
        tickets = KeptTickets()
        climbed(*BAD, tickets=tickets)
        found = resume(LADDER, "t1", word, tickets)
        assert (found.kind, found.answer, found.climb.attempts[-1].cause) == ("unsolved", "a", cause)


def test_another_process_goes_on_with_the_answer(tmp_path: Path) -> None:
    climbed(*BAD, tickets=FileTickets(tmp_path))
    code = (
        "import sys; from pathlib import Path\n"
        "from statek_sim.agent.escalation.controller import resume\n"
        "from statek_sim.agent.escalation.ladder import Ladder, Level\n"
        "from statek_sim.agent.escalation.tickets import FileTickets, Word\n"
        "ladder = Ladder(levels=(Level(name='fast', model='small'), Level(name='person')))\n"
        "found = resume(ladder, 't1', Word(kind='answered', text='done', at=5.0), FileTickets(Path(sys.argv[1])))\n"
        "print(found.kind, found.answer, len(found.climb.attempts))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "solved done 4\n"


def _settle(folder: str, name: str, results: Any) -> None:
    results.put(FileTickets(Path(folder)).settle("t1", Word(kind="answered", text=name, at=1.0)).text)


def test_of_processes_that_answer_at_once_one_wins(tmp_path: Path) -> None:
    climbed(*BAD, tickets=FileTickets(tmp_path))
    spawn = multiprocessing.get_context("fork")
    results = spawn.SimpleQueue()
    workers = [spawn.Process(target=_settle, args=(str(tmp_path), f"p{at}", results)) for at in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len({results.get() for _ in workers}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t1.ticket.json", "t1.word.json"]


def test_of_threads_that_answer_at_once_one_wins(tmp_path: Path) -> None:
    climbed(*BAD, tickets=FileTickets(tmp_path))
    together = Barrier(8)

    def answer(name: str) -> str:
        together.wait(10)
        # Long, so that it is not written at once.
        word = Word(kind="answered", text=f"{name} " * 20_000, at=1.0)
        return FileTickets(tmp_path).settle("t1", word).text

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(answer, "abcdefgh"))
    assert len(set(said)) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t1.ticket.json", "t1.word.json"]


def test_a_broken_ticket_and_a_token_that_is_a_path_are_bad_input(tmp_path: Path) -> None:
    tickets = FileTickets(tmp_path)
    (tmp_path / "x.ticket.json").write_text("{")
    (tmp_path / "y.ticket.json").write_text("{}")
    with pytest.raises(BadInput, match=r"x\.ticket\.json: is no JSON: "):
        tickets.load("x")
    with pytest.raises(BadInput, match=r"y\.ticket\.json: is no ticket: it has no 'climb'$"):
        tickets.load("y")
    climbed(*BAD, tickets=tickets)
    (tmp_path / "t1.word.json").write_text('{"said": "yes"}')
    with pytest.raises(BadInput, match=r"t1\.word\.json: is no word of a person: .*argument"):
        resume(LADDER, "t1", Word(kind="answered", text="mine", at=1.0), tickets)
    with pytest.raises(BadInput, match=r"^token '\.\./x': expected letters, digits"):
        tickets.load("../x")


# -- in the loop -----------------------------------------------------------------------------------------------


def look(place: str) -> str:
    """Look."""
    return f"{place} is fine"


def told(agent: AgentHarness, kind: type[Any]) -> list[Any]:
    return [event for event in agent.trace.events if isinstance(event, kind)]


def test_an_attempt_begins_without_what_the_one_before_said() -> None:
    agent = AgentHarness(
        ScriptedLLM([tool_call("look", place="a"), text("bad"), text("GOOD")]),
        tools=[look],
        parts=Parts(ladder=replace(LADDER, levels=(replace(FAST, attempts=1), STRONG))),
    )
    run = agent.run("Write.")
    assert (run.stop, run.answer, run.spec.model) == ("final", "GOOD", "large")
    assert [message["role"] for message in run.conversation.messages] == ["user", "assistant"]
    assert [(one.level, one.cause) for one in told(agent, events.AttemptEnded)] == [
        ("fast", "poor_quality"),
        ("strong", "solved"),
    ]
    (up,) = told(agent, events.Escalated)
    assert (up.from_level, up.to_level, up.detail) == ("fast", "strong", "not GOOD")
    assert run.num_completions == 1


def test_a_later_message_climbs_again_and_keeps_the_conversation() -> None:
    agent = AgentHarness(
        ScriptedLLM([text("GOOD 1"), text("bad"), text("GOOD 2")]),
        parts=Parts(ladder=replace(LADDER, levels=(FAST,))),
    )
    run = agent.run("First.", then={5.0: "Second."})
    assert run.answer == "GOOD 2"
    assert [message["content"] for message in run.conversation.messages] == [
        "First.",
        "GOOD 1",
        "Second.",
        "GOOD 2",
    ]
    assert [one.cause for one in told(agent, events.AttemptEnded)] == ["solved", "poor_quality", "solved"]


def test_a_person_at_the_end_answers_under_both_drivers() -> None:
    parts = Parts(ladder=replace(LADDER, levels=(replace(FAST, attempts=1), PERSON)), commits=True)
    agent = AgentHarness(
        ScriptedLLM([text("bad")]), parts=parts, person=lambda question: Delayed(9, value="I did it.")
    )
    assert agent.run("Write.").answer == "I did it."

    async def person(question: object) -> PersonSaid:
        await asyncio.sleep(9)
        return PersonSaid("answered", "I did it.")

    async def go() -> AgentHarness:
        clock = LoopClock()
        other = AgentHarness(parts=parts)
        run = other.begin("Write.", clock=clock)
        await AsyncDriver(model_of(ScriptedLLM([text("bad")])), clock=clock.now, person=person).run(run)
        return other

    assert list(run_in(VirtualLoop(), go()).trace.lines()) == list(agent.trace.lines())


def test_strategies_are_code_and_are_asked_of_every_attempt() -> None:
    shouted = Ladder(levels=(replace(FAST, strategy=str.upper),))
    assert task_text(begun("write"), shouted) == "WRITE"


def test_a_task_that_an_attempt_did_not_take_is_not_asked_twice() -> None:
    agent = AgentHarness(
        ScriptedLLM([text("one"), text("two")]),
        parts=Parts(ladder=replace(LADDER, levels=(FAST, STRONG))),
        limits=LLM_Harness(1, None, None, None),
    )
    run = agent.run("Write.")
    assert [one.cause for one in told(agent, events.AttemptEnded)] == [
        "poor_quality",
        "poor_quality",
        "limit",
    ]
    assert run.inbox == []
