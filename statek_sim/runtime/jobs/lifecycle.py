"""A job's lifecycle ("Jobs"; behaviour 9): status, difficulty, and the inbox, which can restart a DONE job.

The difficulty determines the model. Since STATEK 1.4.1, increasing it extends the token limit.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from statek_sim import trace as events
from statek_sim.runtime.agents.agent import JobDef
from statek_sim.runtime.agents.dialog import LoggedJob
from statek_sim.runtime.agents.history import HistoryProjection
from statek_sim.runtime.jobs.job_log import JobLog, Keeping
from statek_sim.runtime.state.access import missing
from statek_sim.runtime.state.chat_log import (
    CodeBlock,
    LLM_LogItem,
    NotificationLogItem,
    SubTaskLogItem,
    UserLogItem,
)
from statek_sim.runtime.state.chat_style import ChatStyle
from statek_sim.runtime.state.context import CurrentJob
from statek_sim.runtime.state.error_handlers import HandlerList
from statek_sim.runtime.state.futures import Signal
from statek_sim.runtime.state.status import JobStatus, advance
from statek_sim.runtime.stored.containers import Kept
from statek_sim.sandbox.ordered_set import without_addresses


class Living(CurrentJob, Protocol):
    """The job interface that the lifecycle uses; implemented by `runtime.jobs.job.Job`."""

    num_completions: int | None


class Life:
    """A job's status, changed by `move_to`, or by `set` in applications.

    When the job becomes DONE, the signal `ended` fires. `stop_reason` is why the last unit of work ended:
    exit, final, the name of a limit, crash, warmup or contained.
    """

    __slots__ = ("_job", "ended", "status", "stop_reason")

    def __init__(self, job: Living) -> None:
        self._job = job
        self.status = JobStatus.READY
        self.stop_reason: str | None = None
        self.ended = Signal()

    def move_to(self, target: JobStatus) -> None:
        """Change the status to `target`; raises `TransitionError` for a transition that is not allowed.

        Does nothing if `target` is the current status.
        """
        if target is not self.status:
            self.set(advance(self.status, target, job_id=self._job.id))

    def set(self, target: JobStatus) -> None:
        """Change the status to `target` without checking the transition."""
        job, host = self._job, self._job.host
        old, self.status = self.status, target
        host.trace.add(events.StatusChanged(host.clock.now(), job.id, old, target))
        host.job_changed(job)
        if target is JobStatus.DONE:
            self.ended.fire()

    def finish(self, reason: str, detail: str | None = None) -> None:
        """Finish the current unit of work: set the status to DONE, and record `reason` and `detail`."""
        self.stop_reason = reason
        self.move_to(JobStatus.DONE)
        shown = None if detail is None else without_addresses(detail)
        host = self._job.host
        host.trace.add(events.JobStopped(host.clock.now(), self._job.id, reason, shown))

    def reopen(self, by: str) -> None:
        """Start a DONE job's next unit of work; `by` is the cause recorded in the trace."""
        job = self._job
        job.py_env.exit_status = None
        self.stop_reason = None
        self.move_to(JobStatus.STARTED)
        job.host.trace.add(events.Reactivated(job.host.clock.now(), job.id, by, job.num_completions))


LEVELS: Final = ("LOW", "MEDIUM", "HIGH")


class Difficulty:
    """A job's difficulty: the initial level from the definition or the settings, and later increases."""

    __slots__ = ("_default", "_job_def", "_raised", "token_extension")

    def __init__(self, job_def: JobDef, default: str) -> None:
        self._job_def = job_def
        self._default = default
        self._raised: str | None = None
        self.token_extension = 0

    @property
    def level(self) -> str:
        """The current level: LOW, MEDIUM or HIGH."""
        configured = self._raised or self._job_def.metadata.get("DEFAULT_DIFFICULTY")
        name = (configured or self._default).upper()
        return next((level for level in LEVELS if level.startswith(name)), name)

    @property
    def is_raised(self) -> bool:
        """Whether the level was ever increased."""
        return self._raised is not None

    def set_default(self, level: str) -> None:
        """Set the level for definitions without one."""
        self._default = level

    def rise(self, tokens: int) -> str:
        """Increase the level by one, extend the token limit by `tokens`, and return the new level.

        Raises RuntimeError if the level is already HIGH.
        """
        current = self.level
        if current == LEVELS[-1]:
            raise RuntimeError(f"Job is already at high difficulty: {current.lower()}")
        self._raised = LEVELS[LEVELS.index(current) + 1]
        self.token_extension += tokens
        return self._raised


DIALOG_STYLES: Final = frozenset({ChatStyle.MD_DIALOG, ChatStyle.DIRECT})


class Recipient(LoggedJob, Living, Protocol):
    """The job interface that the inbox uses; implemented by `runtime.jobs.job.Job`."""

    error_handlers: HandlerList
    history: HistoryProjection
    job_log: JobLog
    keeping: Keeping
    life: Life


class Inbox:
    """Receives a job's messages and notifications; notifications are pending until the next safe boundary."""

    __slots__ = ("_job", "pending")

    def __init__(self, job: Recipient) -> None:
        self._job = job
        self.pending: list[SubTaskLogItem | NotificationLogItem] = []

    def push_user_message(self, message: object) -> bool:
        """Send the job a user message; return whether that restarted a DONE job ("Jobs", Lifecycle).

        Objects are converted to text with the agent's `message_adapter` or `str`. A reactivation counts as
        one completion and one placeholder turn.
        """
        job = self._job
        adapter = None if isinstance(message, str) else job.agent.get_adapter("message_adapter")
        stored = self._written(str(message if adapter is None else adapter(message)))
        if stored.error is not None:
            raise stored.error
        restarted = job.life.status is JobStatus.DONE
        if restarted:
            job.num_completions = (job.num_completions or 0) + 1
            job.life.reopen("message")
            job.job_log.add(LLM_LogItem(job.console_pos, job.host.timestamp(), None))
        if job.host.profile.latest_input_is_bound:
            adapter = job.agent.get_adapter("critical_error_handler")
            job.error_handlers.bind_latest_input(adapter, message)
        return restarted

    def _written(self, text: str) -> Kept:
        """Add a user message to the job's chat log or console; return its stored form."""
        job = self._job
        dialog, opened = job.chat_style in DIALOG_STYLES, bool(job.job_log.items)
        if dialog and opened:
            stored = Kept(job.keeping.constructor_argument("user message", text, "UserLogItem"), None)
        else:
            stored = job.keeping.keeps("user message", text)
        text = stored.value
        job.host.trace.add(events.UserMessage(job.host.clock.now(), job.id, text))
        if not dialog:
            job.py_env.push(job.console_pos, text)
            job.history.pushed(job.console_pos)
        elif opened:
            job.job_log.add(UserLogItem(text, job.host.timestamp()))
        else:
            job.history.pushed(0)
            job.job_log.add(text)
        return stored

    def push_notification(self, handler: Any) -> None:
        """Deliver a completed subtask: immediately if the job is DONE, else at the next safe boundary (behaviour 9)."""
        if not handler.is_completed:
            raise RuntimeError("Subtask handler must be completed before notification")
        result = None if handler.failed else str(handler)
        self.deliver(SubTaskLogItem(self._job.console_pos, result, self._job.host.timestamp(), handler))

    def send_notification(self, message: str) -> None:
        """Deliver plain text at the next safe boundary; not available before 1.4.0."""
        job = self._job
        if not job.host.profile.plain_notifications:
            raise missing(job, "send_notification")
        text = job.keeping.constructor_argument("notification", message, "NotificationLogItem")
        self.deliver(NotificationLogItem(job.console_pos, job.host.timestamp(), text))

    def deliver(self, item: SubTaskLogItem | NotificationLogItem) -> None:
        """Restart a DONE job with `item` in its history; for other jobs, hold `item` until the next safe boundary."""
        job = self._job
        resting = job.life.status is JobStatus.DONE
        kind, text = _describe(item)
        job.host.trace.add(events.Notified(job.host.clock.now(), job.id, kind, text, not resting))
        if not resting:
            self.pending.append(item)
            return
        job.job_log.add(item)
        job.life.reopen(kind)

    def flush(self) -> bool:
        """Move pending notifications into the history, unless a tool call is open; return whether any were moved."""
        if not self.pending or self._tool_call_open():
            return False
        moved, self.pending = self.pending, []
        job = self._job
        for item in moved:
            if job.host.profile.notification_takes_console_position == "delivered":
                item.console_pos = job.console_pos
            job.job_log.add(item)
            kind, text = _describe(item)
            job.host.trace.add(events.Notified(job.host.clock.now(), job.id, kind, text, False))
        return True

    def _tool_call_open(self) -> bool:
        last = self._job.job_log.last
        if not isinstance(last, LLM_LogItem):
            return False
        if last.llm_resp is None:
            return True
        if isinstance(last.llm_resp, CodeBlock) and last.llm_resp.tool_calls:
            # In STATEK, results are a dbzero list, which is not a `list`, so more than one call counts as
            # open until another item follows.
            return last.tool_log is None or len(last.llm_resp.tool_calls) > 1
        return False


def _describe(item: SubTaskLogItem | NotificationLogItem) -> tuple[str, str]:
    if isinstance(item, NotificationLogItem):
        return "notification", str(item.message)
    return "subtask", item.handler.get_log_message()
