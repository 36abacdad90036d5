"""What STATEK's tools do, as trace events: calls with the caller's arguments, and how each ended."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import FrameType
from typing import Any, Final

import statek
from statek import system
from statek.executors import utils

from statek_sim import trace as events
from statek_sim.backends.installed.stored_value import shown
from statek_sim.backends.installed.witness import Witness
from statek_sim.backends.spelling import Spelling

_WATCHING: Final = (__package__, Spelling.__module__.rpartition(".")[0])
"""Whose functions stand between those of STATEK."""


class ToolWitness:
    """Watches `@tool` and `@subtask` functions. `returned(job, name)` hears of every call that ended."""

    def __init__(self, witness: Witness, returned: Callable[[Any, str], None]) -> None:
        self._witness = witness
        self._returned = returned
        self._open: list[tuple[Any, str]] = []
        self._via = "code"
        self._spelling = Spelling()
        self._subtask = False
        self._told = 0

    def install(self) -> None:
        """Watch tools from now on."""
        utils._smart_call = self._spelling.watched(utils._smart_call)
        self._step_aside()
        self._watch_begin()
        self._watch_end()
        self._watch_failures()
        self._watch_requested_calls()

    def _step_aside(self) -> None:
        """Have STATEK's search for names go as many frames of its own far as without those of whoever watches it."""
        collect = statek.utils._collect_aggregated_locals

        @wraps(collect)
        def collected(start_frame: FrameType, max_frames: int = 40) -> Any:
            return collect(start_frame, _reach(start_frame, max_frames))

        statek.utils._collect_aggregated_locals = collected

    def _watch_begin(self) -> None:
        prepare = system._prepare_decorated_call

        @wraps(prepare)
        def prepared(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            job = statek.get_current_job()
            if job is not None and (self._via == "call" or not self._subtask or _fits(func, args, kwargs)):
                self._called(job, func.__name__, *self._spelling.restored(func, args, kwargs))
            return prepare(func, args, kwargs)

        system._prepare_decorated_call = prepared

    def _watch_end(self) -> None:
        bind, wrap_subtask = system._bind_error_handler_result, system._wrap_subtask_result

        @wraps(bind)
        def bound(result: Any, handler: Any) -> None:
            # What a tool returned is told before its handler is registered.
            if statek.get_current_job() is not None:
                self._ended(shown(result), None)
            bind(result, handler)

        @wraps(wrap_subtask)
        def wrapped(result: Any, task_id: Any) -> Any:
            if statek.get_current_job() is not None:
                self._ended(shown(result), None)
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
                # A subtask's `id` becomes a positional argument too, which the factory does not take; STATEK then calls
                # once more with the keywords as they were.
                self._subtask = hasattr(call, "__is_subtask__")
                self._spelling.reaches(watched)
                before, last_try = self._told, self._subtask and not self._spelling.keywords
                try:
                    return call(*args, **kwargs)
                except Exception as error:
                    job = statek.get_current_job()
                    if last_try and self._told == before and job is not None:
                        # No way to call it fitted, so the factory was never reached.
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
        self._witness.tell(events.ToolCalled, job, name, ", ".join(shown), via)

    def _ended(self, result: str | None, error: str | None) -> None:
        job, name = self._open.pop()
        self._witness.tell(events.ToolReturned, job, name, result, error)
        self._returned(job, name)


def _reach(start: FrameType, frames: int) -> int:
    """Return how many frames hold so many that do not watch."""
    frame: FrameType | None = start
    reach = 0
    while frames and frame is not None:
        reach += 1
        frames -= frame.f_globals.get("__package__") not in _WATCHING
        frame = frame.f_back
    return reach


def _fits(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a function can be called like this."""
    try:
        inspect.signature(func).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _argument(value: Any) -> str:
    return repr(value) if isinstance(value, str) else shown(value)
