"""Notifications: how subtask outcomes and plain texts reach a job at safe boundaries (behaviour 9)."""

from __future__ import annotations

from typing import Protocol

from statek_sim import trace as events
from statek_sim.runtime.state.calls import CodeBlock
from statek_sim.runtime.state.chat_log import ChatItem, LLM_LogItem, NotificationLogItem, SubTaskLogItem
from statek_sim.runtime.state.host import Host
from statek_sim.runtime.state.status import JobStatus


class Recipient(Protocol):
    """A job, as far as what reaches it is concerned; `runtime.jobs.job.Job` is one."""

    host: Host
    id: str

    @property
    def status(self) -> JobStatus:
        """Where the job is in its life."""

    @property
    def console_pos(self) -> int:
        """The length of the console."""

    @property
    def last_item(self) -> ChatItem | None:
        """The newest chat log item."""

    def log(self, item: ChatItem) -> None:
        """Append to the chat log."""

    def reopen(self, by: str) -> None:
        """Start the next unit of a DONE job."""


class Inbox:
    """Notifications that wait for their job."""

    __slots__ = ("_job", "pending")

    def __init__(self, job: Recipient) -> None:
        self._job = job
        self.pending: list[SubTaskLogItem | NotificationLogItem] = []

    def deliver_text(self, message: str) -> None:
        """Deliver plain text."""
        self.deliver(NotificationLogItem(self._job.console_pos, self._job.host.timestamp(), message))

    def deliver(self, item: SubTaskLogItem | NotificationLogItem) -> None:
        """Start a DONE job again with `item` in its history; otherwise keep it for the next safe boundary."""
        job = self._job
        resting = job.status is JobStatus.DONE
        kind, text = _describe(item)
        job.host.trace.add(events.Notified(job.host.clock.now(), job.id, kind, text, not resting))
        if not resting:
            self.pending.append(item)
            return
        job.log(item)
        job.reopen(kind)

    def flush(self) -> bool:
        """Move waiting notifications into the history if no tool call is open; return whether any moved."""
        if not self.pending or self._tool_call_open():
            return False
        moved, self.pending = self.pending, []
        job = self._job
        for item in moved:
            if job.host.profile.notification_takes_console_position == "delivered":
                item.console_pos = job.console_pos
            job.log(item)
            kind, text = _describe(item)
            job.host.trace.add(events.Notified(job.host.clock.now(), job.id, kind, text, False))
        return True

    def _tool_call_open(self) -> bool:
        last = self._job.last_item
        if not isinstance(last, LLM_LogItem):
            return False
        if last.llm_resp is None:
            return True
        if isinstance(last.llm_resp, CodeBlock) and last.llm_resp.tool_calls:
            # Results are a list of the store there, which is no `list`: more than one call is taken for open for
            # as long as nothing comes after it.
            return last.tool_log is None or len(last.llm_resp.tool_calls) > 1
        return False


def _describe(item: SubTaskLogItem | NotificationLogItem) -> tuple[str, str]:
    if isinstance(item, NotificationLogItem):
        return "notification", str(item.message)
    return "subtask", item.handler.get_log_message()
