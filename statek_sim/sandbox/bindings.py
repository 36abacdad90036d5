"""Which names a statement may bind in the scope it stands in."""

from __future__ import annotations

import ast
from typing import Any, Final

_SCOPES: Final = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})
_COMPREHENSIONS: Final = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})


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
