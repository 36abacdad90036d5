"""Subtasks: handles for delegated work. A child job completes its handle to notify the parent job (behaviour 9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar, overload

from statek_sim import trace as events
from statek_sim.runtime.jobs.job import Job, get_current_job
from statek_sim.runtime.state.access import StoredObject, readable, recorded
from statek_sim.runtime.state.status import JobStatus
from statek_sim.runtime.stored.storable_types import NamedAsInC
from statek_sim.runtime.tools.declaration import subtask_wrapper

F = TypeVar("F", bound=Callable[..., Any])


class SubTaskState(StrEnum):
    """A subtask's state. A child that ends without reporting leaves it STARTED."""

    WAITING = "WAITING"
    STARTED = "STARTED"
    COMPLETED = "COMPLETED"
    ERROR = "ERROR"


@recorded("err_message")
@dataclass(frozen=True, slots=True)
class TaskError(metaclass=NamedAsInC):
    """Why a subtask failed, as reported by the child job."""

    err_message: str


class SubTaskHandler(StoredObject):
    """The handle for a child job; once completed, `str()` returns its result."""

    def __init__(self, job: Job, id: str | None = None) -> None:  # noqa: A002  # STATEK's own name
        self.job = job
        self.id = job.keeping.constructor_argument("sub-task id", id, "SubTaskHandler")
        self.is_completed = False
        self._error: TaskError | None = None
        self._result: object = None

    @property
    def error(self) -> TaskError | None:
        """The subtask's error, or None if it did not fail. As in STATEK, agent code gets an error instead of None."""
        return readable("error", self._error)

    @property
    def result(self) -> object:
        """The subtask's result, or None if there is none. As in STATEK, agent code gets an error instead of None."""
        return readable("result", self._result)

    @property
    def failed(self) -> bool:
        """Whether the subtask ended with an error."""
        return self._error is not None

    @property
    def state(self) -> SubTaskState:
        """The recorded outcome if there is one, otherwise the state derived from the child job's status."""
        if self.is_completed:
            return self.job.member(SubTaskState.COMPLETED if self._error is None else SubTaskState.ERROR)
        return self.job.member(
            SubTaskState.WAITING if self.job.life.status is JobStatus.READY else SubTaskState.STARTED
        )

    def __repr__(self) -> str:
        return "<statek.task.SubTaskHandler object at 0x...>"

    def __str__(self) -> str:
        """Return the result as text; raises RuntimeError for an unfinished or failed subtask."""
        if self._error is not None:
            raise RuntimeError(self._error.err_message)
        if not self.is_completed:
            raise RuntimeError(f"Sub-task{self._label()} is not completed: {self.state}")
        return "" if self._result is None else str(self._result)

    def get_log_message(self) -> str:
        """Return the notice shown to the parent's model."""
        if self._error is not None:
            return f"[Error] sub-task{self._label()} failed with {self._error.err_message}"
        return f"[Notification] sub-task{self._label()} completed successfully."

    def complete(self, result: object = None, error: str | None = None) -> None:
        """Record the outcome and notify the parent job, if any.

        Raises RuntimeError if already completed, and ValueError if given both a result and an error.
        """
        if self.is_completed:
            raise RuntimeError("Sub-task handler is already completed")
        if result is not None and error is not None:
            raise ValueError("Sub-task completion cannot mix result and error")
        stored = self.job.keeping.keeps("sub-task result", result)
        self._result = stored.value
        self._error = None if error is None else self._failure(error)
        self.is_completed = True
        if stored.error is not None:
            # The next store access raises the error, and the parent is never notified.
            raise stored.error
        self._trace()
        if self.job.parent_job is not None:
            self.job.parent_job.push_notification(self)

    def _failure(self, error: str) -> TaskError:
        return TaskError(self.job.keeping.constructor_argument("sub-task error", error, "TaskError"))

    def _trace(self) -> None:
        host, job = self.job.host, self.job.id
        result, error = (str(self), None) if self._error is None else (None, self._error.err_message)
        host.trace.add(events.SubtaskCompleted(host.clock.now(), job, self.id or "", result, error))

    def _label(self) -> str:
        return "" if self.id is None else f" id={self.id}"


for _kind in (TaskError, SubTaskHandler):
    # Python's own errors name stored classes with their module.
    _kind.__name__ = f"statek.task.{_kind.__qualname__}"


def create_sub_task(
    job: Job, handler_type: type[SubTaskHandler] = SubTaskHandler, **options: Any
) -> SubTaskHandler:
    """Return a handler for `job`, and store it in the job's locals as `sub_task_handler`."""
    handler = handler_type(job, **options)
    job.add_locals(sub_task_handler=handler)
    return handler


def complete_sub_task(result: object = None, error: str | None = None) -> None:
    """Complete the current job's subtask; raises RuntimeError if there is none."""
    job = get_current_job()
    if job is None:
        raise RuntimeError("complete_sub_task requires a current job")
    handler = job.py_env.local_state.get("sub_task_handler")
    if handler is None:
        raise RuntimeError("complete_sub_task requires sub_task_handler in current job locals")
    if not isinstance(handler, SubTaskHandler):
        raise TypeError("sub_task_handler must be a SubTaskHandler")
    handler.complete(result=result, error=error)


def find_handler(job: Job, id: str | None = None) -> SubTaskHandler | None:  # noqa: A002  # STATEK's own name
    """Return the newest completed subtask of `job`, or the one with `id`; raises RuntimeError for an unknown id."""
    for item in [*reversed(job.inbox.pending), *reversed(job.chat_log)]:
        handler = getattr(item, "handler", None)
        if isinstance(handler, SubTaskHandler) and id in (None, handler.id):
            return handler
    if id is not None:
        raise RuntimeError(f"Sub-task id={id} has not completed; wait for the callback notification.")
    return None


def _finish(result: Any, task_id: Any) -> Callable[[], SubTaskHandler]:
    """Return a function that converts a subtask function's result to a handler; raises TypeError for other results."""
    if isinstance(result, SubTaskHandler):
        return lambda: _adopted(result, task_id)
    if isinstance(result, Job):
        return lambda: create_sub_task(result, id=task_id)
    raise TypeError(f"@subtask functions must return Job or SubTaskHandler, got {type(result).__name__}")


def _adopted(handler: SubTaskHandler, task_id: Any) -> SubTaskHandler:
    if handler.id is None and task_id is not None:
        handler.id = task_id
    if handler.job.py_env.local_state.get("sub_task_handler") is not handler:
        handler.job.add_locals(sub_task_handler=handler)
    return handler


@overload
def subtask(f: F) -> F: ...


@overload
def subtask(f: None = None, *, system: bool = False, target: object = None) -> Callable[[F], F]: ...


def subtask(f: F | None = None, *, system: bool = False, target: object = None) -> F | Callable[[F], F]:
    """Mark a function that starts delegated work.

    The function returns a Job or a handler; its caller gets the handler.

    Callers may pass `id`. Raises `BadTool` if the function does not take `**kwargs` or takes `id` itself.
    """

    def decorate(function: F) -> F:
        return subtask_wrapper(function, _finish, system=system, target=target, return_type=SubTaskHandler)

    return decorate if f is None else decorate(f)
