"""Compiling a reply into statements to execute one by one."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, Final

from statek_sim.sandbox.policy import SandboxPolicy, checked
from statek_sim.sandbox.transform import transformed

FILENAME: Final = "<string>"

_SCOPES: Final = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})
_COMPREHENSIONS: Final = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})


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
        statements = tuple(
            _compiled(statement, *names(statement), restricted=policy.restricted) for statement in tree.body
        )
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


def _compiled(
    statement: ast.stmt, binds: tuple[str, ...], global_binds: tuple[str, ...], *, restricted: bool
) -> Statement:
    is_print = (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Name)
        and statement.value.func.id == "print"
    )
    code = _code_of(statement, restricted=restricted)
    return Statement(code, isinstance(statement, ast.Expr), is_print, binds, global_binds)


def _code_of(statement: ast.stmt, *, restricted: bool) -> CodeType:
    module = ast.Module([transformed(statement, restricted=restricted)], [])
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


def bound_names(statement: ast.stmt) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that `statement` may bind or delete in its own scope, and those it binds as globals.

    Global are names that functions in it declare so, and those that `:=` binds inside a comprehension. Both tuples
    are in order of first appearance; no name is left out, some may stay unbound.
    """
    found: dict[str, None] = {}
    as_global: dict[str, None] = {}
    # What is still to be visited, last first, and whether it stands in the statement's own scope.
    pending: list[tuple[Any, bool]] = [(statement, True)]
    while pending:
        node, own_scope = pending.pop()
        kind = type(node)
        if kind is ast.Global:
            as_global.update(dict.fromkeys(node.names))
        elif own_scope:
            found.update(dict.fromkeys(_bound_by(kind, node)))
        if kind in _COMPREHENSIONS:
            as_global.update(dict.fromkeys(_outer_bindings(node) if own_scope else ()))
            continue
        for field in reversed(node._fields):
            value = getattr(node, field, None)
            inside = own_scope and not (field == "body" and kind in _SCOPES)
            if isinstance(value, list):
                pending.extend((item, inside) for item in reversed(value) if isinstance(item, ast.AST))
            elif isinstance(value, ast.AST) and value._fields:
                pending.append((value, inside))
    return tuple(found), tuple(as_global)


def bound_by_plain(statement: ast.stmt) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what `bound_names` does for a statement of plain code: there only statements bind, and nothing global."""
    found: dict[str, None] = {}
    pending: list[Any] = [statement]
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind is ast.Name:
            found[node.id] = None
        elif kind is ast.Assign:
            pending.extend(reversed(node.targets))
        elif kind is ast.AugAssign:
            pending.append(node.target)
        elif kind is ast.Tuple or kind is ast.List:
            pending.extend(reversed(node.elts))
        elif kind is ast.For:
            pending += [*reversed(node.orelse), *reversed(node.body), node.target]
        elif kind is ast.If or kind is ast.While:
            pending += [*reversed(node.orelse), *reversed(node.body)]
        elif kind is ast.Import or kind is ast.ImportFrom:
            found.update(dict.fromkeys(name for alias in node.names for name in _bound_by(ast.alias, alias)))
    return tuple(found), ()


def _bound_by(kind: type[ast.AST], node: Any) -> list[str]:
    if kind is ast.Name:
        return [] if type(node.ctx) is ast.Load else [node.id]
    if kind is ast.alias:
        return [node.asname or node.name.partition(".")[0]]
    if kind in _NAMED:
        return [node.name] if node.name else []
    if kind is ast.MatchMapping:
        return [node.rest] if node.rest else []
    return []


_NAMED: Final = frozenset(
    {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar}
)


def _outer_bindings(comprehension: ast.AST) -> list[str]:
    """Loop variables stay inside a comprehension; `:=` binds outside."""
    return [node.target.id for node in ast.walk(comprehension) if isinstance(node, ast.NamedExpr)]
