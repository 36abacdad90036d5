from __future__ import annotations

from datetime import datetime

import pytest

from statek_sim import Agent, Runtime, ScriptedLLM, code
from statek_sim.jobs import SubTaskHandler
from statek_sim.runtime.state.chat_log import CallSpec, CodeBlock, LLM_LogItem, NotificationLogItem
from statek_sim.runtime.state.status import JobStatus
from statek_sim.trace import Notified, Reactivated
from tests.tables import table_test
from tests.unit.runtime_samples import UNLIMITED, idle_runtime

NOW = datetime(2026, 1, 1)
CALL = CodeBlock(None, (CallSpec("1", "f"),))
CALLS = CodeBlock(None, (CallSpec("1", "f"), CallSpec("2", "g")))


def test_a_notification_waits_while_its_job_works() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    job.send_notification("look")
    assert [type(item) for item in job.inbox.pending] == [NotificationLogItem]
    assert job.chat_log == []


def test_flushing_moves_everything_in_order_and_says_so() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    job.send_notification("one")
    job.send_notification("two")
    assert job.inbox.flush()
    assert not job.inbox.flush()
    assert [item.message for item in job.chat_log if isinstance(item, NotificationLogItem)] == ["one", "two"]
    assert [(event.text, event.queued) for event in job.trace.of_type(Notified)] == [
        ("one", True),
        ("two", True),
        ("one", False),
        ("two", False),
    ]


@table_test(
    ("item", "is_open"),
    [
        (LLM_LogItem(0, NOW, None), True),
        (LLM_LogItem(0, NOW, CALL), True),
        (LLM_LogItem(0, NOW, CALL, [""]), False),
        (LLM_LogItem(0, NOW, CALLS), True),
        (LLM_LogItem(0, NOW, CALLS, [""]), True),
        # STATEK takes several calls for open even when all have returned.
        (LLM_LogItem(0, NOW, CALLS, ["", ""]), True),
        (LLM_LogItem(0, NOW, "x = 1"), False),
    ],
)
def test_nothing_moves_while_a_tool_call_is_open(item: LLM_LogItem, is_open: bool) -> None:
    job = idle_runtime().create_job(Agent("worker"))
    job.log(item)
    job.send_notification("look")
    assert job.inbox.flush() is not is_open


def test_a_resting_job_starts_again_without_counting_a_completion() -> None:
    runtime = Runtime(ScriptedLLM([code("exit(1)"), code("exit(2)")]), harness=UNLIMITED)
    job = runtime.create_job(Agent("worker"))
    runtime.run()
    job.send_notification("more work")
    assert (job.status, job.num_completions) == (JobStatus.STARTED, None)
    assert [event.by for event in job.trace.of_type(Reactivated)] == ["notification"]
    runtime.run()
    assert job.py_env.exit_status == 2


def test_a_notification_at_the_end_keeps_the_job_going_and_the_exit_value_is_lost() -> None:
    runtime = Runtime(ScriptedLLM([code("notify('wait')\nexit(1)"), code("exit(2)")]), harness=UNLIMITED)
    job = runtime.create_job(Agent("worker"))
    job.py_env.global_state["notify"] = job.send_notification
    runtime.run()
    assert (job.py_env.exit_status, job.num_turns) == (2, 2)


@pytest.mark.parametrize(("profile", "position"), [("1.2", 0), ("1.4", 1), ("docs", 1)])
def test_profiles_disagree_on_the_console_position_of_a_late_delivery(profile: str, position: int) -> None:
    job = idle_runtime(profile).create_job(Agent("worker"))
    handler = SubTaskHandler(job, "t-1")
    handler.is_completed = True
    job.push_notification(handler)
    job.console_append("printed since")
    job.inbox.flush()
    assert [getattr(item, "console_pos", None) for item in job.chat_log] == [position]


def test_an_open_subtask_is_no_notification() -> None:
    job = idle_runtime().create_job(Agent("worker"))
    with pytest.raises(RuntimeError, match=r"^Subtask handler must be completed before notification$"):
        job.push_notification(SubTaskHandler(job))


def test_code_sees_a_notification_as_its_message() -> None:
    runtime = Runtime(ScriptedLLM([code("print(get_pending_notifications())").after(2), code("exit(1)")]))
    job = runtime.create_job(Agent("worker"))
    # After the request and before its reply is executed; later it is in the history.
    runtime.at(1, lambda: job.send_notification("look"))
    runtime.run()
    assert job.py_env.console[0] == "[NotificationLogItem(message='look')]"
