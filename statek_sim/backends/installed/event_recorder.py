"""Observes STATEK's tools and its store, and reports trace events as the reference runtime does.

`Recorder` collects a run's events. `ToolRecorder` reports tool calls, with the arguments as the caller wrote
them, and how each call ended. `Spelling` records which arguments agent code passed by name, because STATEK
makes all arguments positional. `StoredNames` reports values that STATEK's store changes when variables are
written back after a block.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import wraps
from types import FrameType
from typing import Any, Final

import statek
from statek import system
from statek.executors import utils
from statek.executors.job import Job
from statek.python_sandbox import is_sandbox_transient_value
from statek.task import SubTaskHandler

from statek_sim import trace as events
from statek_sim.backends.installed.stored_jobs import JobRegistry, shown
from statek_sim.runtime.stored.block_end import Remark, refused_because, remark_of, written_after
from statek_sim.runtime.stored.containers import kept
from statek_sim.trace import Event, StoreRemark, as_dict, event_of
from statek_sim.values import JSON


class Recorder:
    """Collects events. `now()` returns the virtual second; `jobs` holds the jobs' names."""

    def __init__(self, now: Callable[[], float], jobs: JobRegistry) -> None:
        self._now = now
        self._jobs = jobs
        self._failed: dict[str, tuple[int, int, str]] = {}
        self.events: list[Event] = []

    def tell(self, kind: Callable[..., Event], job: Any, *facts: object) -> None:
        """Add an event about `job`, which is STATEK's object or a name."""
        self._jobs.introduce()
        name = job if isinstance(job, str) else self._jobs.name_of(job)
        if name in self._failed:
            self.asks_again(name, None)
        self.events.append(kind(self._now(), name, *facts))

    def request_failed(self, name: str, turn: int, attempt: int, error: str) -> None:
        """Record that a request failed. The event is added once it is known whether STATEK retries."""
        self._failed[name] = (turn, attempt, error)

    def asks_again(self, name: str, seconds: float | None) -> None:
        """Add the event for a failed request, if any. STATEK retries after `seconds`, or not at all if None."""
        if name in self._failed:
            self.tell(events.RequestFailed, name, *self._failed.pop(name), seconds)

    def remember(self, events_before: Iterable[Mapping[str, JSON]]) -> None:
        """Prepend the events that the previous process did not report."""
        self.events[:0] = map(event_of, events_before)

    def taken(self) -> list[JSON]:
        """Return the events added since the last call, as JSON."""
        taken, self.events = self.events, []
        return [as_dict(event) for event in taken]  # type: ignore[misc]  # JSON by design


def current_job() -> Any:
    """Return the current job, or None if there is none or a test has replaced it with another object."""
    job = statek.get_current_job()
    return job if isinstance(job, Job) else None


_JOB: Final = "<Object>"
"""The reference runtime's text for a job or a subtask handle."""


class ToolRecorder:
    """Observes `@tool` and `@subtask` functions; `returned(job, name)` is called when a call has ended."""

    def __init__(self, recorder: Recorder, returned: Callable[[Any, str], object]) -> None:
        self._recorder = recorder
        self._returned = returned
        self._open: list[tuple[Any, str]] = []
        self._via = "code"
        self._spelling = Spelling()
        self._subtask = False
        self._told = 0

    def install(self) -> None:
        """Replace the STATEK functions that call tools with wrappers that report calls."""
        utils._smart_call = self._spelling.watched(utils._smart_call)
        self._step_aside()
        self._watch_begin()
        self._watch_end()
        self._watch_failures()
        self._watch_requested_calls()

    def _step_aside(self) -> None:
        """Make STATEK search more calling frames for names, to make up for the frames that the wrappers add."""
        collect = statek.utils._collect_aggregated_locals

        @wraps(collect)
        def collected(start_frame: FrameType, max_frames: int = 40) -> Any:
            return collect(start_frame, _reach(start_frame, max_frames))

        statek.utils._collect_aggregated_locals = collected

    def _watch_begin(self) -> None:
        prepare = system._prepare_decorated_call

        @wraps(prepare)
        def prepared(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            job = current_job()
            if job is not None and (self._via == "call" or not self._subtask or _fits(func, args, kwargs)):
                self._called(job, func.__name__, *self._spelling.restored(func, args, kwargs))
            return prepare(func, args, kwargs)

        system._prepare_decorated_call = prepared

    def _watch_end(self) -> None:
        bind, wrap_subtask = system._bind_error_handler_result, system._wrap_subtask_result

        @wraps(bind)
        def bound(result: Any, handler: Any) -> None:
            # A tool's result is reported before its handler is registered.
            if current_job() is not None and self._open:
                self._ended(shown(result), None)
            bind(result, handler)

        @wraps(wrap_subtask)
        def wrapped(result: Any, task_id: Any) -> Any:
            # Anything else is rejected, which ends the call.
            if current_job() is not None and self._open and isinstance(result, Job | SubTaskHandler):
                self._ended(_JOB, None)
            return wrap_subtask(result, task_id)

        system._bind_error_handler_result, system._wrap_subtask_result = bound, wrapped

    def _watch_failures(self) -> None:
        inject = utils.inject_context

        @wraps(inject)
        def injected(func: Any, local_context: Any) -> Any:
            call = inject(func, local_context)

            @wraps(call)
            def watched(*args: Any, **kwargs: Any) -> Any:
                depth = len(self._open)
                # A subtask's `id` also becomes a positional argument, which the factory does not accept.
                # STATEK then makes a second call with the original keywords.
                self._subtask = hasattr(call, "__is_subtask__")
                self._spelling.reaches(watched)
                before, last_try = self._told, self._subtask and not self._spelling.keywords
                try:
                    return call(*args, **kwargs)
                except Exception as error:
                    job = current_job()
                    if last_try and self._told == before and job is not None:
                        # No form of the call matched, so the factory was never reached.
                        self._called(job, call.__name__, args, kwargs)
                    while len(self._open) > depth:
                        self._ended(None, f"{type(error).__name__}: {error}")
                    raise

            return watched

        utils.inject_context = injected

    def _watch_requested_calls(self) -> None:
        execute = utils.exec_tool

        @wraps(execute)
        async def executed(call_spec: Any, job: Any, *args: Any, **kwargs: Any) -> Any:
            self._via = "call"
            try:
                result, error = await execute(call_spec, job, *args, **kwargs)
            finally:
                never_ran, self._via = self._via == "call", "code"
            if never_ran and error is not None and error.startswith("NameError: tool "):
                self._refused(job, call_spec, error)
            return result, error

        utils.exec_tool = executed

    def _refused(self, job: Any, call: Any, error: str) -> None:
        self._via = "call"
        self._called(job, call.func_name, tuple(call.args or ()), dict(call.kwargs or {}))
        self._ended(None, error)

    def _called(self, job: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._told += 1
        shown = [_argument(value) for value in args]
        shown += [f"{key}={_argument(value)}" for key, value in kwargs.items() if key != "_local_context"]
        via, self._via, self._subtask = self._via, "code", False
        self._spelling.forget()
        self._open.append((job, name))
        self._recorder.tell(events.ToolCalled, job, name, ", ".join(shown), via)

    def _ended(self, result: str | None, error: str | None) -> None:
        job, name = self._open.pop()
        self._recorder.tell(events.ToolReturned, job, name, result, error)
        self._returned(job, name)


def _reach(start: FrameType, frames: int) -> int:
    """Return how many frames from `start` on contain `frames` frames that are not wrappers."""
    frame: FrameType | None = start
    reach = 0
    while frames and frame is not None:
        reach += 1
        frames -= frame.f_globals.get("__package__") != __package__
        frame = frame.f_back
    return reach


def _fits(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a function accepts these arguments."""
    try:
        inspect.signature(func).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _argument(value: Any) -> str:
    return repr(value) if isinstance(value, str) else shown(value)


class Spelling:
    """The argument names that agent code used in its current call."""

    def __init__(self) -> None:
        self._written: tuple[Any, tuple[str, ...]] | None = None
        self.keywords: tuple[str, ...] = ()

    def watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a wrapper for STATEK's `_smart_call` that records the arguments."""

        @wraps(call)
        def called(func: Any, *args: Any, **kwargs: Any) -> Any:
            self._written = (func, tuple(kwargs))
            return call(func, *args, **kwargs)

        return called

    def reaches(self, function: Any) -> None:
        """Record that a call reached `function`; the recorded names apply if agent code called it directly."""
        written, self._written = self._written, None
        self.keywords = written[1] if written is not None and written[0] is function else ()

    def forget(self) -> None:
        """Discard the names, because the call was reported."""
        self.keywords = ()

    def restored(
        self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a call's arguments as agent code wrote them, with the original argument names and order."""
        names = list(inspect.signature(func).parameters)[: len(args)]
        named = {name: value for name, value in zip(names, args, strict=False) if name in self.keywords}
        left = tuple(value for name, value in zip(names, args, strict=False) if name not in self.keywords)
        given = {**named, **kwargs}
        ordered = {name: given[name] for name in self.keywords if name in given}
        return (*left, *args[len(names) :]), {**ordered, **given}


_CHANGING: Final = (str, Decimal, datetime)
"""Types whose values the store may change silently."""


class StoredNames:
    """Collects remarks about all jobs' variables. `now` returns the virtual second, `name_of` a job's name."""

    def __init__(self, now: Callable[[], float], name_of: Callable[[Any], str]) -> None:
        self._now = now
        self._name_of = name_of
        self.remarks: list[StoreRemark] = []

    def install(self) -> None:
        """Replace the STATEK function that writes variables back with a wrapper that collects remarks."""
        write = utils._copy_modified_locals

        @wraps(write)
        def written(current: Mapping[str, Any], stored: Any) -> None:
            names = _Names(stored)
            try:
                write(current, names)
            finally:
                self._tell(names.remarks_on(current))

        utils._copy_modified_locals = written

    def _tell(self, remarks: list[Remark]) -> None:
        job = self._name_of(statek.get_current_job())
        for found in remarks:
            self.remarks.append(StoreRemark(self._now(), job, found.name, found.change, found.reason, None))


class _Names:
    """Wraps a job's stored variables, and records what the store rejects or changes."""

    def __init__(self, stored: Any) -> None:
        self._stored = stored
        self._before = set(stored)
        self._refused: tuple[str, Exception] | None = None
        self._changed: list[Remark] = []

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    def __getitem__(self, name: str) -> Any:
        return self._stored[name]

    def __setitem__(self, name: str, value: Any) -> None:
        try:
            self._stored[name] = value
        except Exception as error:
            self._refused = name, error
            raise
        remark = remark_of(name, kept(value)) if type(value) in _CHANGING else None
        if remark is not None:
            self._changed.append(remark)

    def remarks_on(self, current: Mapping[str, Any]) -> list[Remark]:
        """Return the remarks after STATEK has written the storable `current` variables."""
        if self._refused is None:
            return self._changed
        culprit, error = self._refused
        there = culprit in self._stored and culprit not in self._before
        remark = Remark(culprit, "changed" if there else "lost", refused_because(error))
        later = list(current)[list(current).index(culprit) + 1 :]
        missed = [name for name in later if name not in self._stored and not _never_written(current[name])]
        return [*self._changed, remark, *(written_after(name, culprit) for name in missed)]


def _never_written(value: Any) -> bool:
    """Return whether STATEK never writes a value back: a callable, a module, or one of STATEK's own helpers."""
    return callable(value) or bool(is_sandbox_transient_value(value))
