"""Runs the tool calls in a reply or warmup block (behaviour 2 step 6, 6.6).

A test may schedule external actions, or the worker's death, for a specific tool call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import GeneratorType
from typing import Any

from statek_sim.call_hooks import CallHooks
from statek_sim.errors import FAILS_THE_RUN
from statek_sim.runtime.execution.toolbox import Toolbox
from statek_sim.runtime.execution.workspace import Output, contained_reason, run_block, set_exit
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.access import ended_in
from statek_sim.runtime.state.chat_log import (
    PYTHON_CLI,
    CallSpec,
    CodeBlock,
    ExecutionItem,
    ToolError,
    stored_call,
)
from statek_sim.runtime.state.chat_style import is_empty_code
from statek_sim.runtime.state.context import Execution, reset_execution, set_execution
from statek_sim.runtime.state.futures import FutureError, FutureResult
from statek_sim.runtime.state.status import PASSING, Contained, Unlogged, WorkerKilled
from statek_sim.runtime.stored.block_end import Remark
from statek_sim.runtime.stored.containers import StoreKills, stored_text, unstorable
from statek_sim.runtime.stored.storable_types import with_full_names
from statek_sim.runtime.tools.declaration import record_call, record_failure
from statek_sim.sandbox.budget import ExecutionBudget
from statek_sim.sandbox.llm_repr import format_print_arg
from statek_sim.sandbox.ordered_set import without_addresses


class AfterCalls:
    """Counts tool calls, and runs the actions registered for a specific call.

    Calls are counted across all jobs, or only for the job with the id `job`. `act` schedules an action.
    """

    def __init__(self, budget: ExecutionBudget, act: Callable[[Callable[[], object]], None]) -> None:
        self._budget = budget
        self._act = act
        self._actions: CallHooks[Callable[[], object]] = CallHooks()
        self._kills: CallHooks[str] = CallHooks()
        self.watchers: list[Callable[[str, str], object]] = []

    def kill(self, tool: str, call: int, job: str | None) -> None:
        """Kill the worker when the `call`-th call to `tool` has done its work but not returned."""
        self._kills.add(f"killed in call {call} of {tool}", tool=tool, call=call, job=job)

    def do(self, action: Callable[[], object], tool: str, call: int, job: str | None) -> None:
        """Call `action` after the `call`-th call to `tool`, following any actions registered earlier."""
        self._actions.add(action, tool=tool, call=call, job=job)

    def returned(self, tool: str, job: str) -> None:
        """Schedule the actions for a call that has done its work. A kill comes last, inside the call."""
        kills = self._kills.returned(tool, job)
        for action in self._actions.returned(tool, job):
            self._act(action)
        try:
            for watcher in self.watchers:
                watcher(job, tool)
        except WorkerKilled as death:
            self._budget.end(death)
        if kills:
            self._budget.end(WorkerKilled(kills[0]))


def run_regular_calls(
    job: Job, toolbox: Toolbox, calls: Sequence[CallSpec], log_item: ExecutionItem | None
) -> None:
    """Run all calls except `python_cli` in order, and write each result or error into its slot in the tool log."""
    if log_item is not None:
        log_item.tool_log = ["" for _ in calls]
    for position, call in enumerate(calls):
        if call.func_name == PYTHON_CLI:
            continue
        lines: list[str] = []
        error = _run_call(job, toolbox, call, lines)
        if log_item is not None and log_item.tool_log is not None:
            _log(
                job,
                log_item.tool_log,
                position,
                lines if error is None else [error],
                failed=error is not None,
            )


def _log(job: Job, tool_log: list[str | ToolError], position: int, lines: list[str], *, failed: bool) -> None:
    """Write a call's output into its slot, in stored form; raises `Unlogged` for output that cannot be stored."""
    try:
        text = without_addresses("\n".join(lines))
    except TypeError as no_text:
        # The `repr` of the value is not a string.
        raise Unlogged(no_text) from None
    lost = unstorable(text) if job.py_env.stores else None
    if lost is not None and failed:
        error = ended_in("ToolError.__init__")
        error.__cause__ = lost
        raise Unlogged(error)
    if lost is not None:
        tool_log[position] = ""
        raise Unlogged(lost)
    kept = stored_text(text) if job.py_env.stores else text
    tool_log[position] = ToolError(kept) if failed else kept


def _run_call(job: Job, toolbox: Toolbox, call: CallSpec, lines: list[str]) -> str | None:
    """Run one call and append its output to `lines`; return the error message if the call failed, else None."""
    if toolbox.is_blocked(call.func_name):
        return _refused(job, call, f"NameError: tool '{call.func_name}' is not exposed to this job")
    execution = Execution(job, lines.append, lambda status: set_exit(job, status), {})
    execution.namespace = toolbox.namespace(job, execution)
    # STATEK finds every name of a code block, including `print` and `exit`.
    function: Any = toolbox.find(job, call.func_name) or execution.namespace.get(call.func_name)
    if not callable(function):
        return _refused(job, call, f"NameError: tool '{call.func_name}' not found")
    token = set_execution(execution)
    job.tool_via = "call"
    try:
        args, kwargs = _arguments(call, execution)
        result = _settled(job, function(*args, **kwargs))
        if isinstance(result, FutureResult):
            result = _settled(job, result.value)
        _bind(job, call, result)
        if result is not None:
            lines.append(format_print_arg(result))
    except FAILS_THE_RUN:
        raise
    except Exception as error:  # noqa: BLE001  # the user's tool
        with_full_names(error)
        return f"{type(error).__name__}: {error}"
    except (WorkerKilled, *PASSING):
        raise
    except StoreKills as end:
        job.keeping.remark([Remark("code", end.change, str(end))])
        raise Contained(contained_reason(end)) from end
    except BaseException as error:
        raise Contained(f"tool {call.func_name!r} raised {type(error).__name__}: {error}") from error
    finally:
        job.tool_via = "code"
        reset_execution(token)
    return None


def _refused(job: Job, call: CallSpec, error: str) -> str:
    job.tool_via = "call"
    record_call(job, call.func_name, tuple(call.args), call.kwargs)
    record_failure(job, call.func_name, error)
    return error


def _arguments(call: CallSpec, execution: Execution) -> tuple[list[Any], dict[str, Any]]:
    """Return a call's arguments. In a warmup line with an assignment, a bare name refers to a variable.

    Source: "Error Handling".
    """
    if call.bind is None:
        stored = stored_call(call) if execution.job.py_env.stores else call
        return list(stored.args), dict(stored.kwargs)
    names = execution.namespace

    def value(argument: object) -> object:
        return names.get(argument, argument) if isinstance(argument, str) else argument

    return [value(item) for item in call.args], {key: value(item) for key, item in call.kwargs.items()}


def _bind(job: Job, call: CallSpec, result: object) -> None:
    """Bind the result to the variables in a warmup assignment ("Error Handling")."""
    if isinstance(call.bind, str):
        job.add_locals(**{call.bind: result})
    elif call.bind is not None:
        values = list(result)  # type: ignore[call-overload]  # unpacking something else fails as in Python
        if len(values) != len(call.bind):
            raise ValueError(f"expected {len(call.bind)} values to unpack, got {len(values)}")
        job.add_locals(**dict(zip(call.bind, values, strict=True)))


def _settled(job: Job, result: Any) -> Any:
    if sys.version_info < (3, 12) and isinstance(result, GeneratorType) and job.py_env.stores:
        # Older versions of asyncio accept generators as coroutines, and STATEK uses asyncio's check.
        raise TypeError("object generator can't be used in 'await' expression")
    if not hasattr(result, "cr_frame"):
        return result
    return job.host.finish(job, result)


class CliLog:
    """Collects the output and errors of a block's `python_cli` calls for the tool log."""

    def __init__(self, job: Job, block: CodeBlock, log_item: ExecutionItem | None) -> None:
        self._job = job
        self.calls = block.cli_calls
        self._positions = [
            index for index, call in enumerate(block.tool_calls) if call.func_name == PYTHON_CLI
        ]
        self._log_item = log_item
        self.lines: list[str] = []
        self.errors: list[str] = []

    def store(self) -> None:
        """Write the first call's output into its slot; an error replaces earlier output (behaviour 6.6).

        Other calls get empty output.
        """
        if self._log_item is None or self._log_item.tool_log is None:
            return
        for number, position in enumerate(self._positions):
            if position >= len(self._log_item.tool_log):
                continue
            errors, lines = (self.errors, self.lines) if number == 0 else ([], [])
            _log(self._job, self._log_item.tool_log, position, errors or lines, failed=bool(errors))


def run_cli_call(job: Job, toolbox: Toolbox, cli: CliLog, start: object) -> None:
    """Run a block's `python_cli` call, if any; raises ValueError for more than one call."""
    if len(cli.calls) > 1:
        raise ValueError(f"Only 1 python_cli call is allowed per step, got {len(cli.calls)}")
    if not cli.calls:
        return
    if isinstance(start, str):
        raise TypeError("'<' not supported between instances of 'int' and 'str'")
    code = cli.calls[0].kwargs.get("code")
    if not isinstance(code, str) or is_empty_code(code):
        return
    output = Output(cli.lines.append, cli.errors.append)
    try:
        run_block(job, toolbox, code, output, start=start[1] if isinstance(start, tuple) else None)
    except FutureError as waiting:
        waiting.instr_num = (0, waiting.instr_num)
        raise
