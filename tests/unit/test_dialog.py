from __future__ import annotations

import pytest

from statek_sim import Agent, DialogAgent, Runtime, ScriptedLLM, text
from statek_sim.jobs import RecurringReminder
from statek_sim.runtime.agents.dialog import deliver
from statek_sim.runtime.state.status import JobStatus
from tests.unit.runtime_samples import UNLIMITED, idle_runtime

Sent = list[tuple[str, str | None]]


def agent_to(sent: Sent, **options: object) -> DialogAgent:
    def send_message(body: str, media: str | None = None) -> None:
        sent.append((body, media))

    return DialogAgent(send_message, **options)  # type: ignore[arg-type]


def test_only_a_dialog_agent_can_deliver() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    with pytest.raises(TypeError, match=r"^MD_DIALOG/DIRECT chat style requires a DialogAgent, got Agent\.$"):
        list(deliver(job, "hello"))


def test_text_is_sent_and_traced_and_media_are_cut_out() -> None:
    sent: Sent = []
    job = idle_runtime().create_job(agent_to(sent))
    list(deliver(job, "Look at this: images/cat.png and smile"))
    assert [media for _, media in sent if media] == ["images/cat.png"]
    assert len(sent) >= 1


def test_a_final_text_is_delivered_and_ends_the_job() -> None:
    sent: Sent = []
    runtime = idle_runtime(script=[text("Hello there.")])
    job = runtime.create_job(agent_to(sent), message="hi")
    runtime.run()
    assert sent == [("Hello there.", None)]
    assert (job.status, job.stop_reason, job.py_env.exit_status) == (JobStatus.DONE, "final", None)


def test_a_failed_delivery_is_an_exception_and_the_job_goes_on() -> None:
    def send_message(body: str, media: str | None = None) -> None:
        if body == "one":
            raise ConnectionError("no line")

    runtime = idle_runtime(script=[text("one"), text("two")])
    job = runtime.create_job(DialogAgent(send_message), message="hi")
    runtime.run()
    assert job.py_env.console[0] == "ConnectionError: no line"
    assert [event.body for event in job.trace.delivered()] == ["two"]


def test_a_message_starts_the_next_unit_and_counts_a_completion() -> None:
    sent: Sent = []
    runtime = Runtime(ScriptedLLM([text("one"), text("two")]), harness=UNLIMITED)
    job = runtime.create_job(agent_to(sent), message="hi")
    runtime.run()
    assert job.push_user_message("more")
    runtime.run()
    assert [body for body, _ in sent] == ["one", "two"]
    assert (job.num_completions, job.num_turns) == (1, 3)


def test_a_reminder_fires_instead_of_the_end() -> None:
    sent: Sent = []
    runtime = idle_runtime(script=[text("one"), text("answer it"), "answer('bye')"])
    agent = agent_to(sent, reminder=RecurringReminder("Anything else?", min_dialog_len=1))
    job = runtime.create_job(agent, message="hi")
    runtime.run()
    assert job.py_env.console[:2] == ["Anything else?", "Anything else?"]
    assert job.py_env.exit_status == "Success"


@pytest.mark.parametrize(
    ("send_message", "kind", "message"),
    [
        (None, TypeError, r"^send_message must be callable$"),
        (lambda text: None, ValueError, r"^send_message must accept a 'body' parameter$"),
    ],
)
def test_a_dialog_agent_needs_a_way_to_reach_its_user(
    send_message: object, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        DialogAgent(send_message)  # type: ignore[arg-type]
