"""One quick look at a syntax tree: how large it is, and whether the slow checks can be skipped.

Most replies are plain: no private names, no functions, nothing that STATEK or RestrictedPython could object to. For
those this single walk replaces theirs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from RestrictedPython.transformer import FORBIDDEN_FUNC_NAMES, INSPECT_ATTRIBUTES

_NAME: Final = ast.Name
_CONSTANT: Final = ast.Constant
_WITHOUT_NODES: Final = frozenset(
    {"id", "attr", "arg", "kind", "type_comment", "conversion", "level", "module", "simple", "is_async"}
)
"""Fields that hold a text or a number in every kind of node that has them."""
_DEPTH_IN_DOUBT: Final = 18
_ROLES: Final = "__roles__"
_FORBIDDEN_CALLS: Final = frozenset({"eval", "exec"})


@dataclass(frozen=True, slots=True)
class Survey:
    """`nodes` counts as `ast.walk` does, `depth` is in levels, `names` are all names read or written as such.

    `bound` are those that something else binds: arguments, functions, imports, handlers, patterns.
    `plain` means that RestrictedPython has no objection; False only means that it must be asked.
    """

    nodes: int
    depth: int
    names: frozenset[str]
    bound: frozenset[str]
    has_import: bool
    plain: bool


def survey(tree: ast.Module) -> Survey:
    """Look at every node once, level by level."""
    nodes, depth, plain, has_import = 1, 0, True, False
    names: set[str] = set()
    bound: set[str] = set()
    level: list[Any] = [tree]
    while level:
        depth += 1
        below: list[Any] = []
        for node in level:
            kind = type(node)
            if kind is _NAME:
                # Names and constants are most of all nodes: nothing is below them but a name's context.
                nodes += 1
                names.add(node.id)
                plain = plain and (node.id not in FORBIDDEN_FUNC_NAMES or _is_read_print(node))
                continue
            if kind is _CONSTANT:
                continue
            if kind in _IMPORTS:
                has_import = True
            elif kind in _BINDING:
                bound.update(_names_bound(node))
            if plain and kind not in _PLAIN:
                check = _PLAIN_IF.get(kind)
                plain = check is not None and check(node)
            for name in NODE_FIELDS[kind]:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    inside = [item for item in value if isinstance(item, ast.AST)]
                    nodes += len(inside)
                    below += inside
                elif isinstance(value, ast.AST):
                    nodes += 1
                    if value._fields:
                        below.append(value)
        level = below
    plain = plain and depth <= _DEPTH_IN_DOUBT and not names & _FORBIDDEN_CALLS and all(map(_is_plain, names))
    return Survey(nodes, depth, frozenset(names), frozenset(bound), has_import, plain)


class _Fields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of each kind of node that may hold nodes."""

    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        found = self[kind] = tuple(name for name in kind._fields if name not in _WITHOUT_NODES)
        return found


NODE_FIELDS: Final = _Fields()


def _names_bound(node: ast.AST) -> list[str]:
    """Return the names that a node binds as text and not as `ast.Name`."""
    found = [getattr(node, field, None) for field in ("arg", "name", "asname", "rest")]
    return [name for name in (*found, *getattr(node, "names", ())) if isinstance(name, str)]


def _is_read_print(node: ast.Name) -> bool:
    return node.id == "print" and isinstance(node.ctx, ast.Load)


def _is_plain_attribute(node: ast.Attribute) -> bool:
    return _is_plain(node.attr) and node.attr not in INSPECT_ATTRIBUTES


def _is_plain_call(node: ast.Call) -> bool:
    keywords = [keyword.arg for keyword in node.keywords]
    return len(set(keywords)) == len(keywords)


def _is_plain_keyword(node: ast.keyword) -> bool:
    return node.arg is None or _is_plain(node.arg)


def _is_plain_alias(node: ast.alias) -> bool:
    return all(
        _is_plain(name) and "*" not in name and name not in FORBIDDEN_FUNC_NAMES
        for name in (node.name, node.asname or node.name)
    )


def _is_plain(name: str) -> bool:
    return not name.startswith("_") and not name.endswith(_ROLES)


_BINDING: Final = frozenset(
    {
        ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias, ast.ExceptHandler, ast.MatchAs,
        ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal,
    }
)  # fmt: skip
_IMPORTS: Final = frozenset({ast.Import, ast.ImportFrom})
_PLAIN: Final[frozenset[type[ast.AST]]] = frozenset(
    {
        ast.Module, ast.Expr, ast.Assign, ast.If, ast.For, ast.While, ast.Pass, ast.Assert, ast.Import, ast.ImportFrom,
        ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr, ast.FormattedValue,
        ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Subscript, ast.Slice, ast.ListComp, ast.SetComp, ast.DictComp,
        ast.GeneratorExp, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn,
    }
)  # fmt: skip
"""Nodes that RestrictedPython takes in any form and that always compile."""

_PLAIN_IF: Final[dict[type[ast.AST], Callable[..., bool]]] = {
    ast.Attribute: _is_plain_attribute,
    ast.Call: _is_plain_call,
    ast.keyword: _is_plain_keyword,
    ast.alias: _is_plain_alias,
    ast.comprehension: lambda node: not node.is_async,
    ast.AugAssign: lambda node: isinstance(node.target, ast.Name) and not isinstance(node.op, ast.MatMult),
}
