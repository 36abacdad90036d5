"""Executing code in a job's workspace, one top-level statement at a time (001, What Happens in a Step).

Results of statements are echoed as in a REPL; names bound by a finished statement persist, functions only until
the end of the block; a future that is not ready stops the block at its statement (behaviour 3, 7.3).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from statek_sim import trace as events
from statek_sim.errors import FAILS_THE_RUN
from statek_sim.runtime.async_tools import run_virtual
from statek_sim.runtime.containment import Contained, WorkerKilled
from statek_sim.runtime.context import Execution, reset_execution, set_execution, write_line
from statek_sim.runtime.futures import FutureError, FutureResult
from statek_sim.runtime.pyenv import ErrorKind
from statek_sim.runtime.shown import shown
from statek_sim.runtime.stored.block_end import FORESEEN_RELEASE, Remark, cross, foresee, refused_because
from statek_sim.runtime.stored.containers import NOTHING, StoreKills, kept
from statek_sim.sandbox.budget import BudgetExceeded, ExecutionBudget
from statek_sim.sandbox.compile import CompiledBlock, Statement, compile_block
from statek_sim.sandbox.llm_repr import format_print_arg
from statek_sim.sandbox.modules import is_transient

if TYPE_CHECKING:
    from statek_sim.runtime.job import Job
    from statek_sim.runtime.toolbox import Toolbox

RESULT: Final = "_statek_result"
"""Where a compiled expression statement leaves its value."""


class Output:
    """Where a block's prints, echoes and errors go."""

    __slots__ = ("error", "line")

    def __init__(self, line: Callable[[str], None], error: Callable[[str], None]) -> None:
        self.line = line
        self.error = error


def run_block(
    job: Job,
    toolbox: Toolbox,
    source: str,
    output: Output,
    *,
    start: object = None,
    hidden_allowed: bool = False,
) -> None:
    """Run `source` from statement `start` (None: the first) in the job's workspace.

    Raises what the code raised, after showing it, or `FutureError` with the statement to continue at in
    `instr_num`, or `Contained` for code that STATEK could not stop.
    """
    execution = Execution(job, output.line, lambda status: set_exit(job, status), {})
    toolbox.budget.reset()
    token = set_execution(execution)
    before = dict(job.py_env.local_state)
    outcome: str | None = "contained"
    try:
        namespace = execution.namespace = toolbox.namespace(job, execution)
        block = _compiled(source, toolbox, output, hidden_allowed=hidden_allowed)
        _run_statements(job, toolbox, block, namespace, output, start, before)
        outcome = "exited" if job.py_env.exit_status is not None else "done"
    except FutureError:
        outcome = "waiting"
        raise
    except Exception:
        outcome = "raised"
        raise
    except WorkerKilled:
        # STATEK writes locals back when a block ends; a dead process never gets there.
        job.py_env.local_state, outcome = before, None
        raise
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise Contained(_contained_reason(error)) from error
    finally:
        reset_execution(token)
        if outcome is not None:
            job.host.trace.add(events.CodeExecuted(job.host.clock.now(), job.id, "code", source, outcome))
            if outcome != "contained":
                _store_locals(job, before)


def _store_locals(job: Job, before: dict[str, object]) -> None:
    """Write to the store what a block left. What the store raises takes the place of the block's own outcome."""
    env = job.py_env
    if not env.stores:
        job.remark(foresee(before, env.local_state), FORESEEN_RELEASE)
        return
    try:
        crossing = cross(before, env.local_state)
    except StoreKills as end:
        env.local_state = before
        raise Contained(_contained_reason(end)) from end
    env.local_state = crossing.names
    job.remark(crossing.remarks)
    if crossing.error is not None:
        raise crossing.error


def _compiled(source: str, toolbox: Toolbox, output: Output, *, hidden_allowed: bool) -> CompiledBlock:
    policy = toolbox.policy(hidden_allowed=hidden_allowed)
    try:
        return compile_block(source, policy)
    except Exception as error:
        # Without the restricted policy STATEK parses outside of what it reports, and the model sees nothing.
        if policy.restricted:
            output.error(f"{type(error).__name__}: {error}")
        raise


def _run_statements(
    job: Job,
    toolbox: Toolbox,
    block: CompiledBlock,
    namespace: dict[str, object],
    output: Output,
    start: object,
    before: dict[str, object],
) -> None:
    env = job.py_env
    first = start if isinstance(start, int) else 0
    if env.future_result is not None:
        first = _finish_waiting(job, output, start, first)
    if isinstance(start, str):
        # A failed unpacking left text where the statement number belongs; STATEK trips over comparing it and
        # nothing runs, without a word (behaviour 7.3).
        raise TypeError("'<' not supported between instances of 'int' and 'str'")
    for index in range(first, len(block.statements)):
        statement = block.statements[index]
        try:
            exec(statement.code, namespace)
            toolbox.budget.check()
            if statement.is_expression:
                result = namespace.pop(RESULT, None)
                _echo(job, toolbox.budget, result, output, bare_print=statement.is_print)
        except FutureError as waiting:
            if waiting.instr_num is None:
                waiting.instr_num = index
            raise
        except FAILS_THE_RUN:
            raise
        except Exception as error:
            output.error(f"{type(error).__name__}: {error}")
            raise
        if statement.binds:
            _persist(env.local_state, namespace, statement, before)
        for name in statement.global_binds:
            # Bound as a global from inside a function: the job's own name of that kind wins again.
            if name in env.local_state:
                namespace[name] = env.local_state[name]
        if env.exit_status is not None:
            return


def _persist(
    local_state: dict[str, object],
    namespace: dict[str, object],
    statement: Statement,
    before: dict[str, object],
) -> None:
    """Keep what a statement bound. A deleted name goes back to what it was `before` the block, as in STATEK."""
    for name in statement.binds:
        if name in statement.global_binds:
            continue
        if name not in namespace:
            local_state.pop(name, None)
            if name in before:
                local_state[name] = before[name]
            continue
        value = namespace[name]
        made_here = isinstance(value, FunctionType) and not isinstance(before.get(name), FunctionType)
        if not made_here and not is_transient(value):
            local_state[name] = value


def _echo(job: Job, budget: ExecutionBudget, result: object, output: Output, *, bare_print: bool) -> None:
    if isinstance(result, FutureResult):
        try:
            value = _settled(job, result.value)
        except FutureError:
            job.py_env.future_result = result
            raise
        output.line(format_print_arg(value, budget))
    elif result is not None or not bare_print:
        output.line(format_print_arg(result, budget))


def _finish_waiting(job: Job, output: Output, start: object, first: int) -> int:
    """Show the value that an expression statement waited for; continue after that statement."""
    awaited = job.py_env.future_result
    if awaited is None:
        return first
    try:
        output.line(format_print_arg(_settled(job, awaited.value)))
    except FutureError as waiting:
        if waiting.instr_num is None:
            waiting.instr_num = start
        raise
    job.py_env.future_result = None
    return first + 1 if isinstance(start, int) else first


def _settled(job: Job, value: Any) -> object:
    if not inspect.iscoroutine(value):
        return value
    result, slept = run_virtual(value)
    job.spend(slept)
    return result


def set_exit(job: Job, status: object) -> None:
    """Set the exit status, as far as the store takes it: the error with which it refuses is the code's."""
    found = kept(status)
    refused = found.value is NOTHING
    if found.error is not None:
        remark = Remark("exit status", "lost" if refused else "changed", refused_because(found.error))
        job.remark([remark], None if job.py_env.stores else FORESEEN_RELEASE)
    if job.py_env.stores:
        if refused and found.error is not None:
            in_collection = isinstance(status, list | tuple | dict | set)
            raise found.error if in_collection else AttributeError("Unsupported attribute type")
        status = found.value
    job.py_env.exit_status = status
    if job.py_env.stores and found.error is not None:
        raise found.error
    if status is not None:
        job.host.trace.add(events.ExitCalled(job.host.clock.now(), job.id, shown(status)))


def _contained_reason(error: BaseException) -> str:
    if isinstance(error, BudgetExceeded):
        return str(error)
    if isinstance(error, StoreKills):
        return f"dbzero ends STATEK's process here, with every job in it: {error}"
    return (
        f"model-written code raised {type(error).__name__}: {error}. STATEK's worker does not catch it "
        "and would run the same reply again for ever"
    )


def job_output(job: Job) -> Output:
    """Return an output that writes to the job's console."""
    from_code = job.console_append
    return Output(from_code, lambda text: from_code(text, ErrorKind.EXECUTION))


def print_function(execution: Execution, budget: ExecutionBudget) -> Callable[..., None]:
    """Return the `print` that agent code sees; what it prints is charged to `budget`."""

    def formatted(value: object) -> str:
        return format_print_arg(value, budget)

    def job_print(*args: object, sep: str | None = " ", end: str | None = "\n", **_: object) -> None:
        write_line(execution, args, sep, end, formatted)

    return job_print
