"""Plain notifications between jobs and from the application: they exist from 1.4.0 (behaviour 9)."""

from __future__ import annotations

from typing import Final

from tests.conformance.job import (
    END,
    AgentPlan,
    ConformanceJob,
    Notify,
    Reply,
    Resolve,
    call,
    calls,
    cli,
    console,
    dialog,
)

CHILD = AgentPlan(
    replies=("tell_parent('news')\nprint('told')", "exit('child done')"), tools=("tell_parent", "note")
)

JOBS: Final[tuple[ConformanceJob, ...]] = (
    console(
        "notified_when_done",
        "a notification starts a DONE job again",
        "exit('one')",
        "print('awake')\nexit('two')",
        happens=(Notify("news"),),
    ),
    console(
        "notified_while_waiting",
        "a notification waits for a job that waits",
        "print(wait_for('a'))",
        "print('next')",
        END,
        happens=(Notify("news"), Resolve("a", 7)),
    ),
    console(
        "notified_during_request",
        "a notification that comes while the model thinks",
        Reply(text="print(1)", meanwhile=(Notify("news"),)),
        "print(get_pending_notifications())",
        END,
    ),
    console(
        "notified_before_exit",
        "a notification that waits at an exit keeps the job going; the exit value is lost",
        Reply(text="exit('lost')", meanwhile=(Notify("news"),)),
        "exit('kept')",
    ),
    console(
        "notified_twice",
        "two notifications at once",
        Reply(text="print(1)", meanwhile=(Notify("one"), Notify("two"))),
        "print(2)",
        END,
    ),
    dialog(
        "notified_dialog",
        "a notification before the last words of a dialog",
        Reply(text="bye", meanwhile=(Notify("news"),)),
        "bye again",
    ),
    dialog(
        "notified_between_calls",
        "a notification while tool calls are open",
        Reply(calls=(call("note", text="a"),), meanwhile=(Notify("news"),)),
        calls(cli("print(get_pending_notifications())")),
        "bye",
        "bye",
        scope="ALL",
    ),
    dialog(
        "notified_dialog_done",
        "a notification after the last words, in MD_DIALOG",
        "bye",
        "still here",
        style="MD_DIALOG",
        happens=(Notify("news"),),
    ),
    console(
        "child_tells_parent",
        "a child sends a notification to its parent",
        "task = start_task('child')",
        "print('busy')",
        "print('busy')",
        END,
        tools=("start_task", "note"),
        others={"child": CHILD},
    ),
    console(
        "system_tool_tells_child",
        "the system tool reaches a child through its handler",
        "task = start_task('child')\nsend_notification_to(task, 'hello child')",
        "send_notification_to('nobody', 'x')",
        END,
        tools=("start_task", "note"),
        others={"child": AgentPlan(replies=("print(1)", "print(2)", "exit('end')"))},
    ),
)
