"""Which names code reads: what warmup code needs from outside."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from statek_sim.runtime.state.calls import CodeBlock


def codes_of(warmup: Any) -> Iterable[str]:
    """Yield the code of each block of warmup code that is not read yet."""
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

    def visit_Name(self, node: ast.Name) -> None:
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
        for default in (
            *node.args.defaults,
            *(default_ for default_ in node.args.kw_defaults if default_ is not None),
        ):
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
