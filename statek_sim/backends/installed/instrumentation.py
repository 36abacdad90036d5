"""Records STATEK's jobs, and the messages that reach them, as trace events.

Wrappers replace the package's functions; they call the original functions and report what happened, without
changing arguments, results or exceptions. `compare.facts` lists what cannot be observed from outside.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from types import CodeType, FrameType
from typing import Any, Final

from statek.exceptions import FutureError, LLM_HarnessError
from statek.executors import utils
from statek.executors.job import ErrorHandler, Job, JobStatus
from statek.task import SubTaskHandler

from statek_sim import trace as events
from statek_sim.backends.facts import label
from statek_sim.backends.installed.event_recorder import Recorder, current_job
from statek_sim.backends.installed.stored_jobs import JobRegistry, shown
from statek_sim.harness.limits import EXCEEDED

AGENT_CODE: Final = "<string>"
"""The file name under which STATEK compiles agent code."""

_WORKER: Final[CodeType] = utils.job_worker.__code__


AnswerTo = Callable[[str], tuple[int, int | None, int | None]]
"""Returns the number of a job's latest request, and the provider's prompt and completion token counts."""


class Watching:
    """Observes jobs: their status, console, code, replies, handlers and messages."""

    def __init__(self, recorder: Recorder, jobs: JobRegistry, answer_to: AnswerTo) -> None:
        self._recorder = recorder
        self._jobs = jobs
        self._answer_to = answer_to
        self._messages = WatchedMessages(recorder)
        self._handlers = WatchedHandlers(recorder)

    def install(self) -> None:
        """Wrap the STATEK functions that this class observes."""
        self._watch_status()
        self._watch_console()
        self._watch_code()
        self._watch_replies()
        self._messages.install()
        self._handlers.install()

    def _watch_status(self) -> None:
        create, move = Job.__init__, Job.set_status

        @wraps(create)
        def created(job: Any, *args: Any, **kwargs: Any) -> None:
            create(job, *args, **kwargs)
            self._jobs.born(job)

        @wraps(move)
        def moved(job: Any, new_status: Any) -> None:
            old = job.status
            move(job, new_status)
            if old != new_status:
                self._changed(job, old, new_status)

        Job.__init__, Job.set_status = created, moved

    def _changed(self, job: Any, old: Any, new: Any) -> None:
        if old == JobStatus.SUSPENDED and new == JobStatus.STARTED:
            self._recorder.tell(events.Released, job)
        self._recorder.tell(events.StatusChanged, job, label(old), label(new))
        if new == JobStatus.DONE:
            self._recorder.tell(events.JobStopped, job, *_reason(job, old))
        elif old == JobStatus.DONE:
            self._recorder.tell(events.Reactivated, job, self._messages.reopened_by, job.num_completions)
        elif new == JobStatus.SUSPENDED:
            self._recorder.tell(events.Waiting, job, str(job.next_instr_num))

    def _watch_console(self) -> None:
        append, remind = Job.console_append, Job.handle_reminder

        @wraps(append)
        def appended(job: Any, output: object, *args: Any, **kwargs: Any) -> None:
            index = len(job.py_env.console or ())
            append(job, output, *args, **kwargs)
            # The output may be any object. The store keeps strings up to the first NUL character.
            kept = (output if isinstance(output, str) else shown(output)).partition("\0")[0]
            self._recorder.tell(events.ConsoleLine, job, index, kept, _kind(*args, *kwargs.values()))

        @wraps(remind)
        def reminded(job: Any, reminder: Any) -> bool:
            fired: bool = remind(job, reminder)
            if fired:
                index = len(job.py_env.console) - 1
                self._recorder.tell(events.ConsoleLine, job, index, job.py_env.console[index], None)
            return fired

        Job.console_append, Job.handle_reminder = appended, reminded

    def _watch_code(self) -> None:
        run, leave, all_steps = utils._exec_code_body, utils.custom_exit, utils.exec_all_steps

        @wraps(run)
        def ran(code_str: str, job: Any, *args: Any, **kwargs: Any) -> None:
            outcome = "contained"
            try:
                run(code_str, job, *args, **kwargs)
                outcome = "done" if job.py_env.exit_status is None else "exited"
            except FutureError:
                outcome = "waiting"
                raise
            except Exception:
                outcome = "raised"
                raise
            finally:
                self._recorder.tell(events.CodeExecuted, job, "code", code_str, outcome)

        @wraps(leave)
        def left(job: Any, status: Any = None) -> None:
            leave(job, status)
            if status is not None:
                # The text as the store returns it.
                self._recorder.tell(events.ExitCalled, job, shown(job.py_env.exit_status))

        @wraps(all_steps)
        async def stepped(code: Any, job: Any, *args: Any, **kwargs: Any) -> bool:
            try:
                ended: bool = await all_steps(code, job, *args, **kwargs)
            except FutureError as waiting:
                if job.status == JobStatus.WARMING_UP:
                    # The job stays in this status while it waits.
                    self._recorder.tell(events.Waiting, job, str(waiting.instr_num))
                raise
            return ended

        utils._exec_code_body, utils.custom_exit, utils.exec_all_steps = ran, left, stepped
        if hasattr(utils, "_release_ready_continuation"):
            self._watch_warmup_waits()

    def _watch_warmup_waits(self) -> None:
        release = utils._release_ready_continuation

        @wraps(release)
        def released(job: Any) -> bool:
            waits = job.awaited_result is not None and job.status == JobStatus.WARMING_UP
            may_run: bool = release(job)
            if waits and may_run:
                self._recorder.tell(events.Released, job)
            return may_run

        utils._release_ready_continuation = released

    def _watch_replies(self) -> None:
        append_log, panic = Job.append_chat_log, Job.panic

        @wraps(append_log)
        def logged(job: Any, request: Any, llm_resp: Any, *args: Any, **kwargs: Any) -> None:
            self.replied(job, llm_resp)
            append_log(job, request, llm_resp, *args, **kwargs)

        @wraps(panic)
        def panicked(job: Any) -> None:
            panic(job)
            self._recorder.tell(
                events.DifficultyRaised,
                job,
                label(job.get_current_difficulty()).upper(),
                job.approx_token_usage,
            )

        Job.append_chat_log, Job.panic = logged, panicked

    def replied(self, job: Any, response: Any) -> None:
        """Report a reply that STATEK could read."""
        step, stats = response.step_data, response.stats
        calls = tuple(f"{call.name}({dict(call.kwargs or {})!r})" for call in step.call_requests or ())
        turn, prompt, completion = self._answer_to(self._jobs.name_of(job))
        self._recorder.tell(
            events.LLMReplied,
            job,
            turn,
            stats.total_bytes_received,
            0,
            0,
            prompt,
            completion,
            step.text or "",
            calls,
        )


def _kind(error: Any = None) -> str | None:
    """Return a console error's kind, or None. In 1.2.5, an error is a string that starts with its kind."""
    if isinstance(error, str):
        return "HARNESS" if error.startswith("LLM_HarnessError: ") else "EXECUTION"
    return None if error is None else label(error.kind)


def _handled() -> BaseException | None:
    """Return the exception that STATEK is handling in this step, or None.

    If another job's tool is waiting below this step, that job's exception is ignored.
    """
    error = sys.exception()
    caught_by = None if error is None or error.__traceback__ is None else error.__traceback__.tb_frame
    if caught_by is None:
        return error
    return error if caught_by.f_code.co_filename != AGENT_CODE and _of_this_step(caught_by) else None


def _of_this_step(wanted: FrameType) -> bool:
    """Return whether a frame belongs to the running step. The search ends at the nearest worker frame below."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame is not wanted:
        if frame.f_code is _WORKER:
            return False
        frame = frame.f_back
    return frame is not None


def _reason(job: Any, old: Any) -> tuple[str, str | None]:
    """Return why a job is DONE, with details. Both come from the exception that STATEK is handling, if any."""
    error = _handled()
    if error is None:
        status = job.py_env.exit_status
        return ("final", None) if status is None else ("exit", shown(status))
    if isinstance(error, LLM_HarnessError):
        sentence = str(error).partition(":")[0]
        return next(str(limit) for limit, begin in EXCEEDED.items() if begin == sentence), str(error)
    reason = "warmup" if job.error is None and old == JobStatus.WARMING_UP else "crash"
    return reason, f"{type(error).__name__}: {error}"


class WatchedHandlers:
    """Observes how error handlers are registered and run."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._notifying: Any = None
        """The job whose handlers are running."""

    def install(self) -> None:
        """Wrap the STATEK functions that this class observes."""
        add = Job.add_error_handler

        @wraps(add)
        def added(job: Any, error_handler: Any, context: Any) -> None:
            add(job, error_handler, context)
            # The text as the store returns it.
            kept = job.error_handlers[-1].context
            self._recorder.tell(events.HandlerRegistered, job, error_handler.__name__, shown(kept))

        Job.add_error_handler = added
        notify = Job.notify_handlers

        @wraps(notify)
        def notified(job: Any, *args: Any, **kwargs: Any) -> None:
            before, self._notifying = self._notifying, job
            try:
                notify(job, *args, **kwargs)
            finally:
                self._notifying = before

        Job.notify_handlers = notified
        ErrorHandler.__call__ = self._handling(ErrorHandler.__call__)

    def _handling(self, call: Callable[..., None]) -> Callable[..., None]:
        """Return a replacement for `ErrorHandler.__call__` that reports the call and its failure.

        In the original, a decorator hides the failure. Here, too, the failure does not propagate.
        """

        @wraps(call)
        def handled(handler: Any, error: Exception | None = None) -> None:
            function = getattr(handler.error_handler, "__wrapped__", handler.error_handler)
            # As before the handler changed it.
            name, context = function.__name__, handler.context
            if name == "_notify_bound_critical_error":
                # The agent's adapter and the job's latest input.
                name, context = "critical_error_handler", context[1]
            context, reason, failed = shown(context), None if error is None else str(error), None
            try:
                function(handler.context, error=error)
            except Exception as failure:  # noqa: BLE001  # the application's handler
                failed = f"{type(failure).__name__}: {failure}"
            finally:
                self._recorder.tell(
                    events.HandlerRan,
                    self._notifying or current_job(),
                    name,
                    context,
                    reason,
                    failed,
                )

        return handled


class WatchedMessages:
    """Reports messages that reach jobs.

    `reopened_by` is the newest message's kind: message, subtask or notification.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._completing: Any = None
        self.reopened_by = ""

    def install(self) -> None:
        """Wrap the STATEK functions that this class observes."""
        self._watch_users()
        self._watch_notifications()
        self._watch_subtasks()

    def _watch_users(self) -> None:
        push = Job.push_user_message

        @wraps(push)
        def pushed(job: Any, message: Any) -> bool:
            self._recorder.tell(events.UserMessage, job, _as_stored(job._resolve_user_message(message)))
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
                self._recorder.tell(events.Notified, job, "subtask", handler.get_log_message(), queued)
            self.reopened_by = "subtask"
            notify(job, handler)

        @wraps(flush)
        def flushed(job: Any) -> bool:
            pending = list(job._pending_notifications())
            moved: bool = flush(job)
            for item in pending if moved else ():
                self._recorder.tell(events.Notified, job, *_described(item), False)
            return moved

        Job.push_notification, Job._process_pending_notifications = notified, flushed
        if hasattr(Job, "send_notification"):
            self._watch_plain_notifications()

    def _watch_plain_notifications(self) -> None:
        send = Job.send_notification

        @wraps(send)
        def sent(job: Any, message: str) -> None:
            text = _as_stored(str(message))
            self._recorder.tell(events.Notified, job, "notification", text, job.status != JobStatus.DONE)
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
        """Report a subtask's completion, once, with its result as the store returns it."""
        if self._completing is handler:
            self._completing = None
            failed = handler.error is not None
            result, error = (None, handler.error.err_message) if failed else (str(handler), None)
            self._recorder.tell(events.SubtaskCompleted, handler.job, str(handler.id or ""), result, error)


def _as_stored(text: str) -> str:
    """Return a string as the store returns it: up to the first NUL character."""
    return text.partition("\0")[0]


def _described(item: Any) -> tuple[str, str]:
    handler = getattr(item, "handler", None)
    return ("notification", item.message) if handler is None else ("subtask", handler.get_log_message())
