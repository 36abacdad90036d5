"""The tool and subtask decorators, argument resolution, and the trace events for calls.

Source: "Jobs"; "Error Handling", Tool Errors; behaviour 8, 9.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from types import FunctionType, UnionType
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, overload

from statek_sim import trace as events
from statek_sim.errors import BadTool
from statek_sim.runtime.state.access import FULL, reset_access, set_access
from statek_sim.runtime.state.context import CurrentJob, current, current_execution, require_alive, traced_job
from statek_sim.runtime.state.error_handlers import handler_problem
from statek_sim.runtime.state.futures import FutureResult
from statek_sim.runtime.stored.storable_types import INJECTED, with_full_names
from statek_sim.runtime.tools.future_calls import once_per_function
from statek_sim.runtime.tools.spec import real_type
from statek_sim.sandbox.llm_repr import shown
from statek_sim.sandbox.ordered_set import without_addresses
from statek_sim.virtual_loop import VirtualLoop, run_in

F = TypeVar("F", bound=Callable[..., Any])

_ISO_TYPES: Final = (datetime, date, time)
_VARIADIC: Final = frozenset({inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL})


@overload
def tool(f: F) -> F: ...


@overload
def tool(
    f: None = None,
    *,
    system: bool = False,
    target: object = None,
    error_handler: Callable[..., object] | None = None,
    hidden: bool = False,
) -> Callable[[F], F]: ...


def tool(
    f: F | None = None,
    *,
    system: bool = False,
    target: object = None,
    error_handler: Callable[..., object] | None = None,
    hidden: bool = False,
) -> F | Callable[[F], F]:
    """Mark a function as a tool.

    `error_handler` is registered on the current job with each result as its context; for a `FutureResult`,
    this happens when its value is first fetched. `hidden` tools are not shown to the model, `system` tools
    belong to the framework, and `target` restricts a tool to certain chat styles. Raises `BadTool` (a
    TypeError, as in STATEK) for a function without `**kwargs`, and for an invalid handler.

    Source: "Error Handling".
    """

    def decorate(function: F) -> F:
        if error_handler is not None and (problem := handler_problem(error_handler)) is not None:
            name = getattr(error_handler, "__name__", repr(error_handler))
            raise BadTool(f"error_handler {name!r} of tool {function.__name__!r} {problem}")
        _require_kwargs(function, "tool")

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return _run_tool(function, args, kwargs, error_handler)

        # functools.wraps keeps the signature, which mypy cannot see.
        return cast("F", _mark(wrapper, system=system, target=target, hidden=hidden))

    return decorate if f is None else decorate(f)


def _mark(wrapper: Any, *, system: bool, target: object, hidden: bool) -> Any:
    wrapper.tool_system = system
    wrapper.tool_target = target
    wrapper.tool_hidden = hidden
    return wrapper


def _require_kwargs(function: Callable[..., object], kind: str) -> None:
    if not _takes_any_keyword(function):
        raise BadTool(
            f"Function '{function.__name__}' must accept **kwargs to be used as a {kind}. "
            f"Current signature: {inspect.signature(function)}"
        )


def _takes_any_keyword(function: Callable[..., object]) -> bool:
    """Return whether a function (for a wrapper, the wrapped function) accepts `**kwargs`."""
    code = getattr(function, "__code__", None)
    if code is not None and not hasattr(function, "__wrapped__"):
        # Reading a signature would take 30 times as long.
        return bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return any(
        p.kind == inspect.Parameter.VAR_KEYWORD for p in inspect.signature(function).parameters.values()
    )


def _run_tool(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    handler: Callable[..., object] | None,
    finish: Callable[[Any], Callable[[], Any]] | None = None,
) -> Any:
    """Call a tool for the current job: record trace events, register the handler, and return the result.

    If `finish` is given, `finish(result)` returns a function that creates the result for the caller. Tools
    may read all attributes of stored objects.
    """
    token = set_access(FULL)
    try:
        job = traced_job()
        if job is None:
            args, kwargs = resolve_names(function, args, kwargs)
            result = function(*args, **kwargs)
            if inspect.iscoroutine(result):
                result = run_in(VirtualLoop(), result)
            _bind_handler(handler, result)
            return result if finish is None else finish(result)()
        require_alive(current_execution())
        by_code = job.tool_via == "code"
        # The trace shows the arguments as the caller wrote them, before names are resolved.
        record_call(job, function.__name__, args, kwargs)
        try:
            # A name may refer to a future that is not ready; a call requested by the model cannot wait for it.
            args, kwargs = resolve_names(function, args, kwargs, by_code=by_code)
            result = function(*args, **kwargs)
            if inspect.iscoroutine(result):
                result = job.host.finish(job, result)
            make = None if finish is None else finish(result)
        except Exception as error:
            with_full_names(error)
            record_failure(job, function.__name__, f"{type(error).__name__}: {error}")
            raise
        # For a subtask, the trace shows the job, because the handler cannot be displayed before completion.
        # If the worker dies now, the job has no handler.
        record_result(job, function.__name__, result if make is None else getattr(result, "job", result))
        _bind_handler(handler, result)
        return result if make is None else make()
    finally:
        reset_access(token)


def _bind_handler(handler: Callable[..., object] | None, result: Any) -> None:
    """Register a tool's handler on the current job; for a future, when its value is first fetched."""
    job = current("job")
    if handler is None or job is None:
        return
    if isinstance(result, FutureResult):
        result.bind_error_handler(handler, job)
    else:
        job.add_error_handler(handler, result)


def resolve_names(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, by_code: bool = False
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a tool's arguments, with strings replaced by the variables that they name.

    A string is only replaced if the parameter's type hint is a type other than str. For dates and times, an
    ISO string is converted first (behaviour 6.6). For a stored enum, the string is a member name; an unknown
    name raises the enum's error. All other arguments are unchanged. With `by_code`, for calls by agent code,
    all arguments become positional, as in STATEK.
    """
    if not _has_text(args) and not _has_text(kwargs.values()) and _is_plain(function):
        # This is the most common case; reading a signature takes as long as running a tool.
        return args, kwargs
    signature, wanted, enumerations = _object_parameters(function)
    # A function without another decorator cannot tell positional from keyword arguments.
    by_code = by_code and bool(function.__dict__)
    if not wanted and not enumerations and not by_code:
        return args, kwargs
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        # The call raises the error that the agent should see.
        return args, kwargs
    if by_code:
        # STATEK's `_smart_call` passes agent code's arguments by position.
        args, kwargs = bound.args, bound.kwargs
    changed = enumerated = False
    bound.apply_defaults()
    for name, members in enumerations.items():
        value = bound.arguments[name]
        if isinstance(value, str):
            bound.arguments[name], enumerated = members[value], True
    for name, kinds in wanted.items():
        value = bound.arguments[name]
        if isinstance(value, str):
            found = _resolve(
                value,
                kinds,
                # STATEK searches the callers' variables, starting with these variables of its own function.
                {
                    "f": function,
                    "args": args,
                    "kwargs": kwargs,
                    "hints": function.__annotations__,
                    "sig": signature,
                    "bound": bound,
                    "changed": changed,
                    "name": name,
                    "value": value,
                    "param": signature.parameters[name],
                    "annotation": function.__annotations__[name],
                    "parsed": None,
                },
            )
            changed |= found is not value
            bound.arguments[name] = found
    # STATEK leaves a call unchanged if no argument is replaced.
    return (bound.args, bound.kwargs) if changed or enumerated else (args, kwargs)


def _has_text(values: Iterable[object]) -> bool:
    for value in values:  # noqa: SIM110  # a generator takes longer to make than most calls to look at
        if isinstance(value, str):
            return True
    return False


def _is_plain(function: Callable[..., Any]) -> bool:
    """Return whether `function` is a Python function without attributes or defaults that could be variable names."""
    if type(function) is not FunctionType or function.__dict__:
        return False
    signature, wanted, enumerations = _object_parameters(function)
    return not any(isinstance(signature.parameters[name].default, str) for name in (*wanted, *enumerations))


@once_per_function
def _object_parameters(
    function: Callable[..., Any],
) -> tuple[inspect.Signature, dict[str, tuple[type, ...]], dict[str, Any]]:
    """Return the signature, the types of parameters that expect a type other than str, and their enums."""
    signature = inspect.signature(function)
    hints = function.__annotations__
    wanted: dict[str, tuple[type, ...]] = {}
    enumerations: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if name.startswith("_") or parameter.kind in _VARIADIC:
            continue
        if getattr(type(hints.get(name)), "names_its_members", False):
            enumerations[name] = hints[name]
        kinds = _plain_types(hints.get(name))
        if any(not issubclass(str, kind) for kind in kinds):
            wanted[name] = kinds
    return signature, wanted, enumerations


def _resolve(value: str, kinds: tuple[type, ...], first: Mapping[str, object]) -> object:
    for kind in kinds:
        if kind in _ISO_TYPES:
            try:
                return kind.fromisoformat(value)
            except ValueError:
                continue
    if value in first:
        return first[value]
    execution = current_execution()
    found = value if execution is None else execution.namespace.get(value, value)
    return found.value if isinstance(found, FutureResult) else found


def _plain_types(hint: object) -> tuple[type, ...]:
    members = get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)
    return tuple(real_type(member) for member in members if isinstance(member, type))


def accepts_local_context(function: Callable[..., object]) -> bool:
    """Return whether a callable accepts the keyword `_local_context` that STATEK injects."""
    if hasattr(function, "tool_hidden") and not hasattr(function, "__is_subtask__"):
        # The function is a tool, and `@tool` requires `**kwargs`. A subtask's signature has `id` instead.
        return True
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind == inspect.Parameter.VAR_KEYWORD or p.name == "_local_context" for p in parameters)


def _subtasks_get_context() -> bool:
    job: CurrentJob | None = current("job")
    return job is not None and job.host.profile.subtasks_get_context


def injected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper through which agent code calls `function`: it passes the workspace as `_local_context`."""
    if isinstance(function, FunctionType) and function in INJECTED:
        return function
    wanted, is_subtask = accepts_local_context(function), hasattr(function, "__is_subtask__")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "_local_context" in kwargs:
            raise RuntimeError("_local_context is already set")
        if not wanted and not (is_subtask and _subtasks_get_context()):
            return function(*args, **kwargs)
        execution = current_execution()
        kwargs["_local_context"] = {} if execution is None else dict(execution.passed)
        return function(*args, **kwargs)

    if isinstance(call, FunctionType):
        INJECTED.add(call)
    return call


def subtask_wrapper(
    function: F,
    finish: Callable[[Any, object], Callable[[], Any]],
    *,
    system: bool,
    target: object,
    return_type: type,
) -> F:
    """Return a wrapper for a subtask function; `finish(result, id)()` converts its result to a handler (behaviour 9).

    Raises `BadTool` for a function without `**kwargs` or with a parameter `id`.
    """
    _require_kwargs(function, "subtask")
    signature = inspect.signature(function)
    if "id" in signature.parameters:
        raise BadTool(
            f"Function '{function.__name__}' cannot define parameter 'id'; "
            "subtask id is reserved for framework-managed kwargs."
        )

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        task_id = kwargs.pop("id", None)
        return _run_tool(function, args, kwargs, None, lambda result: finish(result, task_id))

    shown: Any = wrapper
    shown.__annotations__ = {**function.__annotations__, "id": str, "return": return_type}
    shown.__signature__ = _with_id(signature, return_type)
    shown.__is_subtask__ = True
    return cast(
        "F", _mark(shown, system=system, target=target, hidden=False)
    )  # functools.wraps keeps the signature


def _with_id(signature: inspect.Signature, return_type: type) -> inspect.Signature:
    """Return the signature shown to the model, in which the parameter `id` replaces `**kwargs`."""
    shown: list[inspect.Parameter] = []
    keyword_only = False
    for parameter in signature.parameters.values():
        if parameter.kind == inspect.Parameter.VAR_KEYWORD:
            continue
        shown.append(parameter)
        keyword_only |= parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
    kind = inspect.Parameter.KEYWORD_ONLY if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    first_keyword = next(
        (i for i, p in enumerate(shown) if p.kind == inspect.Parameter.KEYWORD_ONLY), len(shown)
    )
    shown.insert(first_keyword, inspect.Parameter("id", kind, default=None, annotation=str))
    return signature.replace(parameters=shown, return_annotation=return_type)


def record_call(job: CurrentJob, name: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
    """Record a tool call in the trace, and charge the calling code's budget for it."""
    execution = current_execution()
    if execution is not None and execution.budget is not None:
        execution.budget.call_tool()
    arguments = [_argument(value) for value in args]
    arguments += [f"{key}={_argument(value)}" for key, value in kwargs.items() if key != "_local_context"]
    via, job.tool_via = job.tool_via, "code"
    job.host.trace.add(events.ToolCalled(job.host.clock.now(), job.id, name, ", ".join(arguments), via))


def record_result(job: CurrentJob, name: str, result: object) -> None:
    """Record a tool's result in the trace."""
    _record_end(job, name, shown(result), None)


def record_failure(job: CurrentJob, name: str, error: str) -> None:
    """Record a tool's error in the trace; `error` has the form `Type: message`."""
    _record_end(job, name, None, without_addresses(error))


def _record_end(job: CurrentJob, name: str, result: str | None, error: str | None) -> None:
    job.host.trace.add(events.ToolReturned(job.host.clock.now(), job.id, name, result, error))
    job.host.tool_returned(job, name)


def record_delivery(job: CurrentJob, body: object, media: object) -> None:
    """Record a dialog agent's message to its user in the trace."""
    attachment = None if media is None else shown(media)
    job.host.trace.add(events.Delivered(job.host.clock.now(), job.id, shown(body), attachment))


def _argument(value: object) -> str:
    return repr(value) if isinstance(value, str) else shown(value)
