"""What reaches STATEK's jobs is watched: messages of users, notifications, and outcomes of subtasks."""

from __future__ import annotations

from functools import wraps
from typing import Any

from statek.executors.job import Job, JobStatus
from statek.task import SubTaskHandler

from statek_sim import trace as events
from statek_sim.backends.installed.witness import Witness


class WatchedMessages:
    """Tells of what reaches jobs. `reopened_by` is the kind of the newest: message, subtask or notification."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._completing: Any = None
        self.reopened_by = ""

    def install(self) -> None:
        """Watch STATEK from now on."""
        self._watch_users()
        self._watch_notifications()
        self._watch_subtasks()

    def _watch_users(self) -> None:
        push = Job.push_user_message

        @wraps(push)
        def pushed(job: Any, message: Any) -> bool:
            self._witness.tell(events.UserMessage, job, _as_stored(job._resolve_user_message(message)))
            self.reopened_by = "message"
            restarted: bool = push(job, message)
            return restarted

        Job.push_user_message = pushed

    def _watch_notifications(self) -> None:
        notify, flush = Job.push_notification, Job._process_pending_notifications

        @wraps(notify)
        def notified(job: Any, handler: Any) -> None:
            self._tell_completion(handler)
            if handler.is_completed:
                queued = job.status != JobStatus.DONE
                self._witness.tell(events.Notified, job, "subtask", handler.get_log_message(), queued)
            self.reopened_by = "subtask"
            notify(job, handler)

        @wraps(flush)
        def flushed(job: Any) -> bool:
            pending = list(job._pending_notifications())
            moved: bool = flush(job)
            for item in pending if moved else ():
                self._witness.tell(events.Notified, job, *_described(item), False)
            return moved

        Job.push_notification, Job._process_pending_notifications = notified, flushed
        if hasattr(Job, "send_notification"):
            self._watch_plain_notifications()

    def _watch_plain_notifications(self) -> None:
        send = Job.send_notification

        @wraps(send)
        def sent(job: Any, message: str) -> None:
            text = _as_stored(str(message))
            self._witness.tell(events.Notified, job, "notification", text, job.status != JobStatus.DONE)
            self.reopened_by = "notification"
            send(job, message)

        Job.send_notification = sent

    def _watch_subtasks(self) -> None:
        complete = SubTaskHandler.complete

        @wraps(complete)
        def completed(handler: Any, result: Any = None, error: str | None = None) -> None:
            self._completing = handler
            try:
                complete(handler, result, error)
                self._tell_completion(handler)
            finally:
                self._completing = None

        SubTaskHandler.complete = completed

    def _tell_completion(self, handler: Any) -> None:
        """Tell of the subtask that is being completed, once, with what the store kept of its result."""
        if self._completing is handler:
            self._completing = None
            failed = handler.error is not None
            result, error = (None, handler.error.err_message) if failed else (str(handler), None)
            self._witness.tell(events.SubtaskCompleted, handler.job, str(handler.id or ""), result, error)


def _as_stored(text: str) -> str:
    """Return a text as it comes back from the store."""
    return text.partition("\0")[0]


def _described(item: Any) -> tuple[str, str]:
    handler = getattr(item, "handler", None)
    return ("notification", item.message) if handler is None else ("subtask", handler.get_log_message())
