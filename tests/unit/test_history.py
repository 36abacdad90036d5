"""The incremental history must equal what a projection from scratch gives, whatever happened to the job."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from statek_sim import Agent, DialogAgent, LLM_Harness, Runtime, ScriptedLLM
from statek_sim.providers.script import code, fault, text
from statek_sim.runtime.agents.history import HistoryProjection
from statek_sim.runtime.jobs.job import Job
from statek_sim.values import Message

UNLIMITED = LLM_Harness(10**6, 10**6, 10**6, 10**9)


def from_scratch(job: Job) -> list[Message]:
    return list(HistoryProjection(job.history.current.meter).refresh(job).view())


def test_the_system_prompt_and_the_first_message_come_once() -> None:
    runtime = Runtime(ScriptedLLM([code("print(1)"), code("print(2)"), code("exit('ok')")]))
    job = runtime.create_job(Agent("worker", "Be brief."), message="Count.")
    runtime.run()
    assert job.get_chat_history() == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Count."},
        {"role": "assistant", "content": "```python\nprint(1)\n```"},
        {"role": "user", "content": "> 1"},
        {"role": "assistant", "content": "```python\nprint(2)\n```"},
        {"role": "user", "content": "> 2"},
        {"role": "assistant", "content": "```python\nexit('ok')\n```"},
        {"role": "user", "content": "> None"},
    ]


def test_two_messages_pushed_at_one_console_position_reach_the_model_as_a_list() -> None:
    runtime = Runtime(ScriptedLLM([code("print(1)").after(5), code("exit('ok')")]))
    job = runtime.create_job(Agent("worker"))
    runtime.at(1, lambda: job.push_user_message("one"))
    runtime.at(2, lambda: job.push_user_message("two"))
    runtime.run()
    assert job.get_chat_history()[0] == {"role": "user", "content": "['one', 'two']"}


def test_requests_that_were_sent_keep_their_messages_when_a_late_push_rewrites_the_past() -> None:
    llm = ScriptedLLM([code("x = 1").after(2), code("y = 2").after(2), code("exit('ok')")])
    runtime = Runtime(llm)
    job = runtime.create_job(Agent("worker"))
    # The console is still empty, so the message joins the opening, before the turn that was already sent.
    runtime.at(3, lambda: job.push_user_message("late"))
    runtime.run()
    assert list(llm.requests[1].messages) == [{"role": "assistant", "content": "```python\nx = 1\n```"}]
    assert llm.requests[2].messages[0] == {"role": "user", "content": "late"}
    assert [event.kept for event in job.trace.requests()] == [0, 0, 0]


REPLIES = ("x = 1", "print('a')", "print('b')\nprint('c')", "1/0", "# nothing")


@given(
    st.lists(st.sampled_from(REPLIES), min_size=1, max_size=6),
    st.lists(st.tuples(st.floats(0, 12), st.sampled_from(["one", "two", "three"])), max_size=5),
    st.sampled_from([None, "CONSOLE", "MARKDOWN"]),
)
def test_history_is_what_a_projection_from_scratch_gives(
    replies: list[str], pushes: list[tuple[float, str]], style: str | None
) -> None:
    llm = ScriptedLLM([*(code(reply).after(2) for reply in replies), code("exit('ok')").after(2).forever()])
    runtime = Runtime(llm, harness=UNLIMITED)
    job = runtime.create_job(Agent("worker", "Prompt."), chat_style=style, warmup_code="print('w')")
    for at, message in pushes:
        runtime.at(at, partial(job.push_user_message, message))
    for at in range(14):
        runtime.at(at + 0.5, partial(_same, job))
    runtime.run()
    _same(job)


@given(
    messages=st.lists(st.sampled_from(["hi", "more", "stop"]), min_size=1, max_size=4), failing=st.booleans()
)
def test_dialog_history_is_what_a_projection_from_scratch_gives(
    *, messages: list[str], failing: bool
) -> None:
    replies = [text("hello").after(1), *([fault(400)] if failing else []), text("again").after(1).forever()]
    runtime = Runtime(ScriptedLLM(replies), harness=UNLIMITED)
    agent = DialogAgent(lambda body, media=None: None, metadata={"CHAT_STYLE": "DIRECT"})
    job = runtime.create_job(agent, message="start")
    for at, message in enumerate(messages):
        runtime.at(at * 1.7, partial(job.push_user_message, message))
    runtime.run()
    _same(job)


def _same(job: Job) -> None:
    assert job.get_chat_history() == from_scratch(job)
