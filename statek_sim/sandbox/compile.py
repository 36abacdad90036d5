"""Compiling a reply into statements to execute one by one."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Final

from statek_sim.sandbox.bindings import bound_names
from statek_sim.sandbox.policy import SandboxPolicy, check
from statek_sim.sandbox.transform import transformed

_FILENAME: Final = "<string>"


@dataclass(frozen=True, slots=True)
class Statement:
    """One top-level statement.

    Executing `code` in a namespace with the helpers runs it; an expression leaves its value under `_statek_result`.
    `is_print` marks a bare `print(...)`, whose None is not shown. `binds` are the names that it may bind or delete
    as its own. `global_binds` are those it may bind as globals, from inside functions and comprehensions: STATEK does
    not keep them, and a name that was its own before gets its old value back after the statement.
    """

    code: CodeType
    is_expression: bool
    is_print: bool
    binds: tuple[str, ...]
    global_binds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledBlock:
    """The statements of one block of code, in order."""

    source: str
    statements: tuple[Statement, ...]


@lru_cache(maxsize=512)
def compile_block(source: str, policy: SandboxPolicy) -> CompiledBlock:
    """Return `source` ready to execute, if `policy` allows it; otherwise raises what `check` raises.

    The same source under an equal policy is compiled once.
    """
    tree = check(source, policy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CompiledBlock(source, tuple(map(_compiled, tree.body)))


def _compiled(statement: ast.stmt) -> Statement:
    binds, global_binds = bound_names(statement)
    is_print = (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Name)
        and statement.value.func.id == "print"
    )
    return Statement(_code_of(statement), isinstance(statement, ast.Expr), is_print, binds, global_binds)


def _code_of(statement: ast.stmt) -> CodeType:
    module = ast.Module([transformed(statement)], [])
    try:
        return compile(module, _FILENAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        # Statements before this one still run; it fails when its turn comes.
        return _raising(error)


def _raising(error: SyntaxError) -> CodeType:
    constants = ", ".join(map(repr, error.args))
    return compile(f"raise _statek_syntax_error({constants})", _FILENAME, "exec", dont_inherit=True)
