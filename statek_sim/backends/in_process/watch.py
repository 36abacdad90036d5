"""What tools and error handlers do on STATEK, written down as the reference runtime tells it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, Final

import statek
from statek import system
from statek.executors import utils
from statek.executors.job import ErrorHandler, Job
from statek.future import FutureResult

from statek_sim.backends.application import FUTURE, ToolUse
from statek_sim.backends.installed.stored_value import shown
from statek_sim.backends.record import HandlerCall
from statek_sim.backends.spelling import Spelling

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
