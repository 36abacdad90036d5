"""What tools, error handlers and the store do on STATEK, written down as the reference runtime tells it.

The store changes a job's variables where STATEK writes them back at the end of a block.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import wraps
from typing import Any, Final

import statek
from statek import system
from statek.executors import utils
from statek.executors.job import ErrorHandler, Job
from statek.future import FutureResult
from statek.python_sandbox import is_sandbox_transient_value

from statek_sim.backends.application import FUTURE, ToolUse
from statek_sim.backends.installed.event_recorder import Spelling
from statek_sim.backends.installed.stored_objects import shown
from statek_sim.backends.record import HandlerCall
from statek_sim.runtime.stored.block_end import Remark, refused_because, remark_of, written_after
from statek_sim.runtime.stored.containers import kept
from statek_sim.trace import StoreRemark

OBJECT: Final = "<Object>"
"""What the reference runtime shows of a job that a subtask returned."""


class Watch:
    """Tool and handler calls per job. `name_of` returns the name of one of STATEK's jobs."""

    def __init__(self, name_of: Callable[[Any], str]) -> None:
        self._name_of = name_of
        self._open: list[tuple[str, int, bool]] = []
        self._spelling = Spelling()
        self.tools: dict[str, list[ToolUse]] = {}
        self.handlers: list[HandlerCall] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watch inside the block: STATEK's functions are replaced by ones that call them and write down."""
        prepare, bind, inject = (
            system._prepare_decorated_call,
            system._bind_error_handler_result,
            utils.inject_context,
        )
        notify, call, smart_call = Job.notify_handlers, utils.exec_tool, utils._smart_call
        utils._smart_call = self._spelling.watched(smart_call)
        system._prepare_decorated_call = self._preparing(prepare)
        system._bind_error_handler_result = self._returning(bind)
        utils.inject_context = self._failing(inject)
        Job.notify_handlers = self._notifying()
        utils.exec_tool = self._refusing(call)
        try:
            yield
        finally:
            system._prepare_decorated_call, system._bind_error_handler_result = prepare, bind
            utils.inject_context = inject
            Job.notify_handlers, utils.exec_tool, utils._smart_call = notify, call, smart_call

    def _preparing(self, prepare: Callable[..., Any]) -> Callable[..., Any]:
        """Every call of a `@tool` or `@subtask` starts here, with the arguments as the caller wrote them."""

        @wraps(prepare)
        def prepared(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            job = _current()
            if job is not None:
                self._begin(self._name_of(job), function, args, kwargs)
            return prepare(function, args, kwargs)

        return prepared

    def _begin(self, job: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given, named = self._spelling.restored(function, args, kwargs)
        self._spelling.forget()
        shown = [_argument(value) for value in given]
        shown += [f"{key}={_argument(value)}" for key, value in named.items() if key != "_local_context"]
        uses = self.tools.setdefault(job, [])
        self._open.append((job, len(uses), _binds(function, args, kwargs)))
        uses.append(ToolUse(name=function.__name__, arguments=", ".join(shown), result=None, error=None))

    def _returning(self, bind: Callable[..., Any]) -> Callable[..., Any]:
        """Every call that comes back ends here, with what the tool returned."""

        @wraps(bind)
        def bound(result: Any, handler: Any) -> Any:
            if _current() is not None and self._open:
                self._end(result=FUTURE if isinstance(result, FutureResult) else shown(result))
            return bind(result, handler)

        return bound

    def _failing(self, inject: Callable[..., Any]) -> Callable[..., Any]:
        """What an agent calls: an exception that comes out of it ended every call inside that did not come back."""

        @wraps(inject)
        def injected(function: Any, *args: Any, **kwargs: Any) -> Any:
            call = inject(function, *args, **kwargs)
            if call is function:
                return call
            subtask = getattr(function, "__is_subtask__", False)

            @wraps(call)
            def watched(*args: Any, **kwargs: Any) -> Any:
                depth = len(self._open)
                self._spelling.reaches(watched)
                try:
                    result = call(*args, **kwargs)
                except Exception as error:
                    while len(self._open) > depth:
                        if subtask and not self._open[-1][-1]:
                            self._forget()
                        else:
                            self._end(error=f"{type(error).__name__}: {error}")
                    raise
                while len(self._open) > depth:
                    # A subtask: what it made is a job, and that is more than a text.
                    self._end(result=OBJECT)
                return result

            return watched

        return injected

    def _refusing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that a model asks for and STATEK refuses never reaches a tool."""

        @wraps(call)
        async def called(call_spec: Any, job: Any, *args: Any, **options: Any) -> Any:
            result, error = await call(call_spec, job, *args, **options)
            name = call_spec.func_name
            if error in (
                f"NameError: tool {name!r} not found",
                f"NameError: tool {name!r} is not exposed to this job",
            ):
                shown = [_argument(value) for value in call_spec.args or ()]
                shown += [f"{key}={_argument(value)}" for key, value in dict(call_spec.kwargs or {}).items()]
                use = ToolUse(name=name, arguments=", ".join(shown), result=None, error=error)
                self.tools.setdefault(self._name_of(job), []).append(use)
            return result, error

        return called

    def _forget(self) -> None:
        """Drop a call that never was: STATEK first passes a subtask's `id` by position, which fits no function."""
        job, index, _ = self._open.pop()
        del self.tools[job][index]

    def _end(self, **how: str) -> None:
        job, index, _ = self._open.pop()
        self.tools[job][index] = replace(self.tools[job][index], **how)

    def _notifying(self) -> Callable[..., None]:
        def notify_handlers(job: Any, error: Exception | None = None) -> None:
            handlers, job.error_handlers = job.error_handlers, []
            for handler in handlers:
                self._handle(self._name_of(job), handler, error)

        return notify_handlers

    def _handle(self, job: str, handler: Any, error: Exception | None) -> None:
        """Run one handler behind the decorator that hides its failure; that goes no further here either."""
        if not isinstance(handler, ErrorHandler):
            handler(error=error)
            return
        function = getattr(handler.error_handler, "__wrapped__", handler.error_handler)
        context, failed = shown(handler.context), None
        try:
            function(handler.context, error=error)
        except Exception as failure:  # noqa: BLE001  # the application's handler
            failed = f"{type(failure).__name__}: {failure}"
        self.handlers.append(
            HandlerCall(
                job=job,
                name=function.__name__,
                context=context,
                error=None if error is None else str(error),
                failed=failed,
            )
        )


def _current() -> Any:
    """Return the current job, None also where a test has put something else in its place."""
    job = statek.get_current_job()
    return job if isinstance(job, Job) else None


def _binds(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _argument(value: object) -> str:
    return repr(value) if isinstance(value, str) else shown(value)


_CHANGING: Final = (str, Decimal, datetime)
"""Classes of which some values come back otherwise without an error."""


class StoredNames:
    """Remarks on the variables of all jobs. `now` returns the virtual second, `name_of` a job's name."""

    def __init__(self, now: Callable[[], float], name_of: Callable[[Any], str]) -> None:
        self._now = now
        self._name_of = name_of
        self.remarks: list[StoreRemark] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watch inside the block."""
        write = utils._copy_modified_locals

        @wraps(write)
        def written(current: Mapping[str, Any], stored: Any) -> None:
            names = _Names(stored)
            try:
                write(current, names)
            finally:
                self._tell(names.remarks_on(current))

        utils._copy_modified_locals = written
        try:
            yield
        finally:
            utils._copy_modified_locals = write

    def _tell(self, remarks: list[Remark]) -> None:
        job = self._name_of(statek.get_current_job())
        for found in remarks:
            self.remarks.append(StoreRemark(self._now(), job, found.name, found.change, found.reason, None))


class _Names:
    """The names of a job in the store, as far as writing them back asks."""

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
        """Return what there is to say once STATEK has written what it could of the `current` names."""
        if self._refused is None:
            return self._changed
        culprit, error = self._refused
        there = culprit in self._stored and culprit not in self._before
        remark = Remark(culprit, "changed" if there else "lost", refused_because(error))
        later = list(current)[list(current).index(culprit) + 1 :]
        missed = [name for name in later if name not in self._stored and not _never_written(current[name])]
        return [*self._changed, remark, *(written_after(name, culprit) for name in missed)]


def _never_written(value: Any) -> bool:
    """Return whether a value is STATEK's own helper or a module, which it never writes back."""
    return callable(value) or bool(is_sandbox_transient_value(value))
