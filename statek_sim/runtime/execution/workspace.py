"""Executes code in a job's workspace, one top-level statement at a time ("Jobs", What Happens in a Step).

Results of expression statements are displayed as in a REPL. Names bound by a finished statement are kept,
except for functions, which last only until the end of the block. A future that is not ready stops the block
at its statement (behaviour 3, 7.3).
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, Final

from statek_sim import trace as events
from statek_sim.errors import FAILS_THE_RUN
from statek_sim.runtime.execution.toolbox import Toolbox
from statek_sim.runtime.jobs.job import Job
from statek_sim.runtime.state.access import FULL, RESTRICTED, reset_access, set_access
from statek_sim.runtime.state.context import (
    Execution,
    current_execution,
    require_alive,
    reset_execution,
    set_execution,
)
from statek_sim.runtime.state.futures import FutureError, FutureResult
from statek_sim.runtime.state.pyenv import ErrorKind, Fallback, check_kept
from statek_sim.runtime.state.status import PASSING, Contained, WorkerKilled
from statek_sim.runtime.stored.block_end import PREDICTED_RELEASE, Remark, predict_refusals, store_variables
from statek_sim.runtime.stored.containers import NotReproduced, StoreKills
from statek_sim.runtime.stored.storable_types import with_full_names
from statek_sim.sandbox.budget import (
    MOST_UNFOLDED,
    BudgetExceeded,
    is_container,
    unfolded_size,
)
from statek_sim.sandbox.compile import FILENAME, CompiledBlock, Statement, compile_block
from statek_sim.sandbox.llm_repr import format_print_arg, shown
from statek_sim.sandbox.modules import is_transient
from statek_sim.sandbox.time_limit import limited

RESULT: Final = "_statek_result"
"""The name to which a compiled expression statement assigns its value."""

_UNKEPT: Final = object()
"""Placeholder for the value of a new name that cannot be stored; it keeps the name's position."""

_TAKEN_BACK: Final = frozenset(
    {"print", "exit", "_smart_call", "_wrap_param", "_fmt_fstring_arg", "statek_ctx_get", "perm_ctx_set"}
)
"""Names that STATEK sets before a block and removes after it, even if the block bound them."""


_REWRITTEN_TO: Final = frozenset({"_smart_call", "_wrap_param", "_fmt_fstring_arg"})
"""Names of the functions that rewritten code calls in STATEK."""

_FRAMES_SHOWN: Final = ("traceback", "globals(", "_getframe")
"""Source code fragments which indicate that unrestricted code inspects its callers."""


class _Own(dict[str, object]):
    """A block's local scope, separate from the globals that functions and comprehensions use.

    Bindings and deletions in the local scope also change the globals, as in STATEK. Names that a function
    declares `global` are not visible in the local scope.
    """

    __slots__ = ("_globals", "_others", "deleted")

    def __init__(self, own: dict[str, object], shared: dict[str, object], others: Fallback | None) -> None:
        super().__init__(own)
        self.deleted: set[str] = set()
        self._globals = shared
        self._others = others

    def __missing__(self, name: str) -> object:
        found = None if self._others is None else self._others.find(name)
        if found is None:
            raise KeyError(name)
        return found.value

    def __setitem__(self, name: str, value: object) -> None:
        if self._others is not None and name not in self:
            self._others.check_writable(name)
        super().__setitem__(name, value)
        self._globals[name] = value

    def __delitem__(self, name: str) -> None:
        if self._others is not None and name not in self:
            self._others.check_writable(name)
        super().__delitem__(name)
        self.deleted.add(name)
        self._globals.pop(name, None)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a block's output and errors go; `is_console` is True if that is the job's console."""

    line: Callable[[str], None]
    error: Callable[[str], None]
    is_console: bool = False


def run_block(
    job: Job,
    toolbox: Toolbox,
    source: str,
    output: Output,
    *,
    start: object,
    hidden_allowed: bool = False,
) -> None:
    """Run `source` in a job's workspace, starting at statement number `start`, or at the first statement if None.

    Raises the code's error after writing it to `output`. Raises `FutureError` if the code waits for a future;
    its `instr_num` is the statement at which to continue. Raises `Contained` for code that STATEK could not
    stop.
    """
    _BlockRun(job, toolbox, source, output, start, hidden_allowed=hidden_allowed).run()


class _BlockRun:
    """One run of a block. The names that the block binds are collected and stored at the end."""

    def __init__(
        self, job: Job, toolbox: Toolbox, source: str, output: Output, start: object, *, hidden_allowed: bool
    ) -> None:
        self._job = job
        self._toolbox = toolbox
        self._source = source
        self._output = output
        self._start = start
        self._policy = toolbox.policy(hidden_allowed=hidden_allowed)
        self._before = dict(job.py_env.local_state)
        self._bound = dict(self._before)

    def run(self) -> None:
        """Run the block and store its names; raises the errors that `run_block` documents."""
        job, env, budget = self._job, self._job.py_env, self._toolbox.budget
        execution = Execution(job, self._output.line, lambda status: set_exit(job, status), {}, budget)
        budget.reset()
        token = set_execution(execution)
        env.in_block = True
        outcome: str | None = "contained"
        try:
            limited(budget, self._source, partial(self._compile_and_run, execution))
            require_alive(execution)
            outcome = "exited" if env.exit_status is not None else "done"
        except BaseException as error:
            outcome = _outcome(execution, error)
            if execution.killed is not None:
                # STATEK writes variables back when a block ends, which a dead process never does.
                env.local_state = self._before
                raise WorkerKilled(execution.killed) from None
            if outcome != "contained":
                raise
            if isinstance(error, StoreKills):
                job.keeping.remark([Remark("code", error.change, str(error))])
            if env.stores and not isinstance(error, StoreKills | BudgetExceeded):
                # An error of the store replaces even a BaseException, and STATEK's worker catches the store's error.
                self._store_in_time()
            else:
                env.local_state.update(self._keepable())
            raise Contained(contained_reason(error)) from error
        finally:
            reset_execution(token)
            budget.close_coroutines()
            # Break a reference cycle: the namespace contains `print`, which refers to the execution.
            execution.namespace = execution.passed = {}
            env.in_block = False
            if outcome is not None:
                at = job.host.clock.now()
                job.host.trace.add(events.CodeExecuted(at, job.id, "code", self._source, outcome))
                if outcome != "contained":
                    self._store_in_time()

    def _compile_and_run(self, execution: Execution) -> None:
        """Compile and run the block without CPU time or memory limits."""
        job, toolbox = self._job, self._toolbox
        check_kept(job.py_env, toolbox.budget)
        namespace = execution.namespace = toolbox.namespace(job, execution)
        block = self._compiled()
        if not job.py_env.stores:
            job.keeping.remark(predict_refusals(self._before, self._source), PREDICTED_RELEASE)
        job.keeping.remark(_unlike_there(block, self._source, restricted=toolbox.restricted))
        self._run_statements(block, namespace)

    def _compiled(self) -> CompiledBlock:
        try:
            return compile_block(self._source, self._policy)
        except MemoryError:
            raise
        except Exception as error:
            # For unrestricted code, STATEK does not report syntax errors to the model.
            if self._policy.restricted:
                self._output.error(f"{type(error).__name__}: {error}")
            raise

    def _run_statements(self, block: CompiledBlock, namespace: dict[str, object]) -> None:
        job, output, bound = self._job, self._output, self._bound
        level = RESTRICTED if self._toolbox.restricted else FULL
        first = self._start if isinstance(self._start, int) else 0
        if job.py_env.future_result is not None:
            first = _finish_waiting(job, output, self._start, first)
        if isinstance(self._start, str):
            # A failed unpacking left text in place of the statement number; STATEK's comparison with it
            # fails, and STATEK silently runs nothing (behaviour 7.3).
            raise TypeError("'<' not supported between instances of 'int' and 'str'")
        others = _others(job, output)
        apart = others is not None or _needs_two_scopes(block, namespace, bound)
        own: dict[str, object] = dict(bound) if apart else namespace
        for index in range(first, len(block.statements)):
            statement = block.statements[index]
            try:
                token = set_access(level)
                try:
                    if apart:
                        own = _Own(own, namespace, others)
                        exec(statement.code, namespace, own)
                        own.pop(RESULT, None)
                        namespace.update(own)
                    else:
                        exec(statement.code, namespace)
                finally:
                    reset_access(token)
                self._toolbox.budget.check()
                if statement.is_expression:
                    self._echo(namespace.pop(RESULT, None), bare_print=statement.is_print)
            except FutureError as waiting:
                _forget_deleted(bound, own, statement)
                if waiting.instr_num is None:
                    waiting.instr_num = index
                raise
            except (*FAILS_THE_RUN, MemoryError):
                raise
            except Exception as error:
                require_alive(current_execution())
                _forget_deleted(bound, own, statement)
                with_full_names(error)
                output.error(f"{type(error).__name__}: {error}")
                raise
            self._persist(own, statement)
            job.host.trace.passed("statement", job.id)
            if apart:
                for name in [name for name, value in own.items() if _made_here(name, value, self._before)]:
                    own.pop(name)
            if job.py_env.exit_status is not None:
                return

    def _persist(self, own: Mapping[str, object], statement: Statement) -> None:
        """Keep a finished statement's bindings, except for values equal to those before the block, as in STATEK.

        With a store, the values are compared when the block is stored, and losses are reported as remarks.
        """
        before, bound = self._before, self._bound
        _forget_deleted(bound, own, statement)
        for name in _in_order(statement.binds, bound, own):
            if name not in own or name in _TAKEN_BACK:
                continue
            value = own[name]
            if _made_here(name, value, before):
                # The name's value from an earlier statement of the block is gone as well.
                bound.pop(name, None)
            elif is_transient(value):
                bound[name] = before.get(name, _UNKEPT)
            else:
                # Two futures are never equal here, although the store treats some as equal.
                stores = self._job.py_env.stores
                written = stores or isinstance(value, FutureResult) or _differs(before, name, value)
                bound[name] = value if written else before[name]

    def _echo(self, result: object, *, bare_print: bool) -> None:
        if isinstance(result, FutureResult):
            try:
                shown_value = _settled(self._job, result.value)
            except FutureError:
                self._job.py_env.future_result = result
                raise
            self._show(shown_value)
        elif result is not None or not bare_print:
            self._show(result)

    def _show(self, value: object) -> None:
        budget = self._toolbox.budget
        text: Any = format_print_arg(value, budget)
        # The `__llm_repr__` of an object may return another type than a string.
        budget.allocate(len(text) if isinstance(text, str) else 0)
        self._output.line(text)

    def _keepable(self) -> dict[str, object]:
        return {name: value for name, value in self._bound.items() if value is not _UNKEPT}

    def _store_in_time(self) -> None:
        """Store the block's names, within the block's time and memory limits."""
        try:
            limited(self._toolbox.budget, self._source, self._store)
        except BudgetExceeded as error:
            raise Contained(str(error)) from error

    def _store(self) -> None:
        """Write the block's names to the store; they replace values that tools stored during the block.

        An error from the store replaces the block's own error.
        """
        job, env, bound = self._job, self._job.py_env, self._keepable()
        if not env.stores:
            env.local_state.update(bound)
            job.keeping.predict_losses(self._before, env.local_state)
            job.keeping.drop()
            return
        try:
            stored = store_variables(env.local_state, bound)
        except StoreKills as end:
            env.local_state = self._before
            job.keeping.remark([Remark("code", end.change, str(end))])
            raise Contained(contained_reason(end)) from end
        env.local_state = stored.names
        job.keeping.remark(stored.remarks)
        job.keeping.drop()
        if stored.error is not None:
            raise stored.error


def _outcome(execution: Execution, error: BaseException) -> str | None:
    """Return the outcome to record for a block that raised `error`, or None if no event should be recorded."""
    if isinstance(error, WorkerKilled):
        execution.killed = execution.killed or str(error)
    if execution.killed is not None or (isinstance(error, PASSING) and not _is_raised_by_code(error)):
        return None
    if isinstance(error, FutureError):
        return "waiting"
    return "raised" if isinstance(error, Exception) else "contained"


def _unlike_there(block: CompiledBlock, source: str, *, restricted: bool) -> Iterator[Remark]:
    """Yield a remark for each part of the code that has a different result in STATEK."""
    for name in sorted(block.binds & _REWRITTEN_TO):
        why = (
            "STATEK's own calls use this name: in STATEK, later code fails, or calls whatever was bound to it"
        )
        yield Remark(name, "refused", why)
    for name in () if restricted else _FRAMES_SHOWN:
        if name in source:
            yield Remark(
                name.rstrip("("),
                "changed",
                "in STATEK, it shows STATEK's frames and names; here, it shows this project's",
            )


def _is_raised_by_code(error: BaseException) -> bool:
    """Return whether `error` is a KeyboardInterrupt from a `raise` statement of agent code."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or not isinstance(error, KeyboardInterrupt):
        return False
    code = place.tb_frame.f_code
    return code.co_filename == FILENAME and dis.opname[code.co_code[place.tb_lasti]] == "RAISE_VARARGS"


def _needs_two_scopes(block: CompiledBlock, namespace: dict[str, object], bound: dict[str, object]) -> bool:
    """Return whether a block needs a local scope apart from its globals, which costs a copy per statement.

    This is necessary if functions bind globals, or if a binding would take a tool's or deleted name's
    position in the order of names.
    """
    return (
        block.binds_globals
        or block.places_change
        or any(name in namespace and name not in bound for name in block.binds)
    )


def _others(job: Job, output: Output) -> Fallback | None:
    """Return the job's shared names for code that writes to the job's console, or None if there are none."""
    if job.shared_names is None or not output.is_console:
        return None
    return Fallback(job.shared_names, job.host.categories())


def _in_order(
    names: Sequence[str], local_state: Mapping[str, object], own: Mapping[str, object]
) -> Sequence[str]:
    """Return `names` with new names last, in the order they were bound: `b`, `a` for `a = (b := 1)`.

    Names are stored in this order, so it determines which names are lost after an unstorable value.
    """
    if len(names) < 2:
        return names
    new = {name for name in names if name not in local_state}
    if len(new) < 2:
        return names
    return [name for name in names if name not in new] + [name for name in own if name in new]


def _forget_deleted(local_state: dict[str, object], own: Mapping[str, object], statement: Statement) -> None:
    """Remove the names that a statement deleted, even if the statement failed later.

    A name that is deleted and bound again moves to the end of the order.
    """
    deleted = own.deleted if isinstance(own, _Own) else ()
    for name in statement.binds:
        if (name not in own and name not in statement.global_binds) or name in deleted:
            local_state.pop(name, None)


def _made_here(name: str, value: object, before: Mapping[str, object]) -> bool:
    """Return whether `value` is a function created by the block; it is discarded when the block ends."""
    return isinstance(value, FunctionType) and not isinstance(before.get(name), FunctionType)


def _differs(before: Mapping[str, object], name: str, value: object) -> bool:
    """Return whether `value` differs from the value before the block; a comparison that raises counts as different."""
    if name not in before:
        return True
    if before[name] is value:
        return False
    if is_container(value) and unfolded_size(value) > MOST_UNFOLDED:
        # The comparison would take too long.
        return True
    try:
        return bool(before[name] != value)
    except Exception:  # noqa: BLE001  # the value's own comparison
        return True


def _finish_waiting(job: Job, output: Output, start: object, first: int) -> int:
    """Display the value that an expression statement was waiting for; return the number of the next statement."""
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
    return job.host.finish(job, value) if inspect.iscoroutine(value) else value


def set_exit(job: Job, status: object) -> None:
    """Set a job's exit status to the stored form of `status`; raises the store's error, if any.

    On Python 3.11, dbzero raises this error only after several calls to `exit` in one process; on newer
    versions, it always does.
    """
    execution = current_execution()
    require_alive(execution)
    stored = job.keeping.keeps("exit status", status)
    job.py_env.exit_status = stored.value
    if stored.error is not None:
        raise stored.error
    if stored.value is not None:
        text = shown(stored.value)
        if execution is not None and execution.budget is not None:
            execution.budget.allocate(len(text))
        job.host.trace.add(events.ExitCalled(job.host.clock.now(), job.id, text))


def contained_reason(error: BaseException) -> str:
    """Describe why this runtime stopped a job that STATEK could not have stopped."""
    if isinstance(error, BudgetExceeded):
        return str(error)
    if isinstance(error, NotReproduced):
        return f"the reference runtime does not reproduce what dbzero does here: {error}"
    if isinstance(error, StoreKills):
        return f"dbzero ends STATEK's process here, with every job in it: {error}"
    if isinstance(error, SystemExit | KeyboardInterrupt):
        return (
            f"model-written code raised {type(error).__name__}: {error}. That ends STATEK's worker "
            "process, with every job in it, and the next process runs the same reply again"
        )
    return (
        f"model-written code raised {type(error).__name__}: {error}. STATEK's worker does not catch it "
        "and would run the same reply again forever"
    )


def job_output(job: Job) -> Output:
    """Return an output that writes to the job's console."""
    from_code = job.console_append
    return Output(from_code, lambda text: from_code(text, ErrorKind.EXECUTION), is_console=True)
