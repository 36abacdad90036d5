"""`statek.task`: starting jobs as applications do, with the variables of the caller that warmup code reads."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, Final

from statek_sim.runtime.agents import Agent, DialogAgent
from statek_sim.runtime.calls import CodeBlock
from statek_sim.runtime.chat_style import ChatStyle
from statek_sim.runtime.current import current_runtime
from statek_sim.runtime.futures import temporal
from statek_sim.runtime.job import Job
from statek_sim.runtime.task import TaskFutureResult, exit_and_job, is_done, said_by
from statek_sim.runtime.tools import tool
from statek_sim.runtime.warmup_code import WarmupSource

_OURS: Final = ("statek_sim.", "pytest_statek.")


def create_new_job(
    agent: Agent,
    shared_vars: Mapping[str, Any] | None = None,
    parent_job: Job | None = None,
    warmup_code: WarmupSource = None,
    locale: Any = None,
    post_processing: Any = None,
    caller_frame: FrameType | None = None,
    **job_params: Any,
) -> Job:
    """Create a READY job. Variables of the caller that `warmup_code` reads become its own; `shared_vars` win.

    Every further keyword is a parameter of the prompt; `chat_style` of a dialog agent is its style.
    """
    return new_job(
        agent,
        shared_vars,
        parent_job,
        warmup_code,
        locale,
        post_processing,
        caller_frame,
        job_params=job_params,
    )


def new_job(
    agent: Agent,
    shared_vars: Mapping[str, Any] | None = None,
    parent_job: Job | None = None,
    warmup_code: WarmupSource = None,
    locale: Any = None,
    post_processing: Any = None,
    caller_frame: FrameType | None = None,
    *,
    job_params: Mapping[str, Any],
    name: str | None = None,
    message: object = None,
) -> Job:
    """Create a job as `create_new_job` does, with a `name` and a first `message` that a test gives it."""
    params = dict(job_params)
    style: ChatStyle | None = params.pop("chat_style", None) if isinstance(agent, DialogAgent) else None
    copied: dict[str, Any] = {}
    if warmup_code:
        names = _callers_variables(sys._getframe(1) if caller_frame is None else caller_frame)
        for code in _codes(warmup_code):
            copy_locals(code, copied, names)
    return current_runtime().create_job(
        agent,
        shared_vars={**copied, **(shared_vars or {})},
        parent_job=parent_job,
        warmup_code=warmup_code,
        chat_style=style,
        locale=locale,
        post_processing=post_processing,
        prompt_params=params,
        name=name,
        message=message,
    )


def named_job(agent: Agent, *, name: str | None = None, message: object = None, **options: Any) -> Job:
    """Create a job as `create_new_job` does, with a `name` and a first `message` that a test gives it."""
    own = {key: options.pop(key) for key in _OWN if key in options}
    return new_job(agent, **own, job_params=options, name=name, message=message)


_OWN: Final = ("shared_vars", "parent_job", "warmup_code", "locale", "post_processing", "caller_frame")


def start_dialog(
    agent: DialogAgent,
    message: Any,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, Any] | None = None,
    locale: Any = None,
    **job_params: Any,
) -> Job:
    """Create a dialog job with its first user message."""
    job = new_job(agent, shared_vars, parent_job, warmup_code, locale, job_params=job_params)
    job.push_user_message(message)
    return job


def submit_new_job(
    agent: Agent, shared_vars: Mapping[str, Any] | None = None, locale: Any = None, **job_params: Any
) -> Job:
    """Create a job from application code."""
    return create_new_job(agent, shared_vars, locale=locale, **job_params)


def submit_new_jobs_batch(
    agent: Agent,
    shared_vars_batch: Sequence[Mapping[str, Any] | None],
    locale: Any = None,
    **job_params: Any,
) -> list[Job]:
    """Create one job per entry of `shared_vars_batch`."""
    return [submit_new_job(agent, shared_vars, locale, **job_params) for shared_vars in shared_vars_batch]


@temporal(complement=exit_and_job, condition=is_done)
@tool
def delegate_task(
    agent: Agent,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, Any] | None = None,
    locale: Any = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a job of `agent` and return a future of `(exit_status, job)`."""
    return _delegated(agent, warmup_code, parent_job, shared_vars, locale, kwargs)


@temporal(complement=said_by, condition=is_done)
@tool
def delegate_mute_task(
    agent: Agent,
    warmup_code: WarmupSource = None,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, Any] | None = None,
    locale: Any = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a job of `agent` and return a future of what it said, joined by newlines."""
    return _delegated(agent, warmup_code, parent_job, shared_vars, locale, kwargs)


@temporal(complement=said_by, condition=is_done)
@tool
def delegate_mute_dialog(
    agent: DialogAgent,
    message: Any,
    parent_job: Job | None = None,
    shared_vars: Mapping[str, Any] | None = None,
    locale: Any = None,
    **kwargs: Any,
) -> TaskFutureResult:
    """Start a dialog job with `message` and return a future of what it said."""
    kwargs.pop("_local_context", None)
    return TaskFutureResult(start_dialog(agent, message, None, parent_job, shared_vars, locale, **kwargs))


def _delegated(
    agent: Agent,
    warmup_code: WarmupSource,
    parent_job: Job | None,
    shared_vars: Mapping[str, Any] | None,
    locale: Any,
    params: dict[str, Any],
) -> TaskFutureResult:
    params.pop("_local_context", None)
    return TaskFutureResult(new_job(agent, shared_vars, parent_job, warmup_code, locale, job_params=params))


# -- the caller's variables ---------------------------------------------------------------------------------------


def _callers_variables(frame: FrameType | None) -> Mapping[str, Any]:
    """Return the variables of the application's function that asked for a job; agent code has none to give."""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if not isinstance(module, str):
            return {}
        if not module.startswith(_OURS):
            return frame.f_locals
        frame = frame.f_back
    return {}


def _codes(warmup: Any) -> Iterable[str]:
    for block in [warmup] if isinstance(warmup, str | CodeBlock) else warmup:
        code = block.code if isinstance(block, CodeBlock) else block
        if code:
            yield code


def copy_locals(code: str, dest: dict[str, Any], local_vars: Mapping[str, Any] | None = None) -> None:
    """Copy into `dest` the variables that `code` reads, the caller's unless others are given."""
    names = sys._getframe(1).f_locals if local_vars is None else local_vars
    for node in ast.walk(ast.parse(code)):
        read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        if isinstance(node, ast.Name) and read and node.id in names:
            dest.setdefault(node.id, names[node.id])


def get_referenced_locals(code: str) -> list[str]:
    """Return the names that `code` reads and does not make, in order; called functions and builtins are left out."""
    return _Reading().names_of(ast.parse(code))


class _Reading(ast.NodeVisitor):
    """Collects names in the order in which code reads them; what it has bound by then is its own."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}
        self._bound: set[str] = set(dir(builtins))

    def names_of(self, tree: ast.AST) -> list[str]:
        """Return the names."""
        self.visit(tree)
        return list(self._found)

    def _bind(self, target: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self._bound.add(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._bind(element)
        elif isinstance(target, ast.Starred):
            self._bind(target.value)

    def _read_in(self, target: ast.AST) -> None:
        """Visit what storing into a target reads: the object and the key, not a plain name."""
        if isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
            self.visit(target.value)
        if isinstance(target, ast.Subscript):
            self.visit(target.slice)
        if isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._read_in(element)

    def visit_Name(self, node: ast.Name) -> None:  # ast's own names, here and below
        if isinstance(node.ctx, ast.Load) and node.id not in self._bound:
            self._found.setdefault(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self.visit(keyword.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._read_in(target)
            self._bind(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.visit_Name(ast.Name(node.target.id, ast.Load()))
        else:
            self.visit(node.target)
        self.visit(node.value)
        self._bind(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._bind(node.target)

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self._bind(node.target)
        for child in (*node.body, *node.orelse):
            self.visit(child)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._bind(item.optional_vars)
        for child in node.body:
            self.visit(child)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self._bound |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self.visit(part)
        self._bound.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in (*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
            self.visit(default)

    def _comprehension(self, generators: list[ast.comprehension], *results: ast.expr) -> None:
        before = set(self._bound)
        for generator in generators:
            self.visit(generator.iter)
            self._bind(generator.target)
            for condition in generator.ifs:
                self.visit(condition)
        for result in results:
            self.visit(result)
        self._bound = before

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._comprehension(node.generators, node.elt)

    visit_SetComp = visit_ListComp  # noqa: N815
    visit_GeneratorExp = visit_ListComp  # noqa: N815

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node.generators, node.key, node.value)


__all__ = [
    "copy_locals",
    "create_new_job",
    "delegate_mute_dialog",
    "delegate_mute_task",
    "delegate_task",
    "get_referenced_locals",
    "new_job",
    "start_dialog",
    "submit_new_job",
    "submit_new_jobs_batch",
]
