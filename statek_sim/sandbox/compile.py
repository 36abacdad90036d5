"""Compiling a reply into statements to execute one by one."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Final

from statek_sim.sandbox.bindings import bound_by_plain, bound_names
from statek_sim.sandbox.policy import SandboxPolicy, checked
from statek_sim.sandbox.transform import transformed

FILENAME: Final = "<string>"


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
    binds_globals: bool
    """Whether some statement may bind globals."""
    binds: frozenset[str]
    """All names that its statements may bind or delete as their own."""
    places_change: bool
    """Whether a name may leave its place among the others: it is deleted, or a function's and bound again."""


@lru_cache(maxsize=512)
def compile_block(source: str, policy: SandboxPolicy) -> CompiledBlock:
    """Return `source` ready to execute, if `policy` allows it; otherwise raises what `check` raises.

    The same source under an equal policy is compiled once.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree, found = checked(source, policy)
        names = bound_by_plain if found.plain else bound_names
        statements = tuple(_compiled(statement, *names(statement)) for statement in tree.body)
        bound = Counter(name for statement in statements for name in statement.binds)
        functions = [
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        return CompiledBlock(
            source,
            statements,
            binds_globals=any(statement.global_binds for statement in statements),
            binds=frozenset(bound),
            places_change=any(bound[name] > 1 for name in functions) or (not found.plain and _deletes(tree)),
        )


def _deletes(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Del) for node in ast.walk(tree))


def _compiled(statement: ast.stmt, binds: tuple[str, ...], global_binds: tuple[str, ...]) -> Statement:
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
        return compile(module, FILENAME, "exec", dont_inherit=True)
    except SyntaxError as error:
        # Statements before this one still run; it fails when its turn comes.
        return _raising(error)


def _raising(error: SyntaxError) -> CodeType:
    # Of what Python finds by its table of symbols, the place is not among the arguments.
    place = (error.filename, error.lineno, error.offset, error.text, error.end_lineno, error.end_offset)
    return compile(
        f"raise _statek_syntax_error({error.msg!r}, {place!r})", FILENAME, "exec", dont_inherit=True
    )
