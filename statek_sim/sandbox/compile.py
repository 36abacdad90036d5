"""Compiles model-written code into statements that can be executed one by one."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, Final, TypeVar, cast

from statek_sim.sandbox.policy import FORMAT_METHODS, NODE_FIELDS, SandboxPolicy, checked

FILENAME: Final = "<string>"

_SCOPES: Final = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef})
_COMPREHENSIONS: Final = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})


@dataclass(frozen=True, slots=True)
class Statement:
    """A compiled top-level statement.

    `code` runs in a namespace with the helpers; an expression statement assigns its value to `_statek_result`.
    `is_print` is True for a bare `print(...)`, after which None is not displayed. `binds` are the names that
    the statement may bind or delete in its own scope. `global_binds` are the names that functions and
    comprehensions in the statement may bind as globals. STATEK does not keep these bindings: after the
    statement, a name that already existed gets its old value back.
    """

    code: CodeType
    is_expression: bool
    is_print: bool
    binds: tuple[str, ...]
    global_binds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledBlock:
    """A code block's statements, in order."""

    source: str
    statements: tuple[Statement, ...]
    binds_globals: bool
    """Whether any statement has `global_binds`."""
    binds: frozenset[str]
    """All names that the statements may bind or delete in their own scope."""
    places_change: bool
    """Whether the order of names may change, because a name is deleted or a function's name is rebound."""


@lru_cache(maxsize=512)
def compile_block(source: str, policy: SandboxPolicy) -> CompiledBlock:
    """Compile `source` into statements; for code that is not allowed, raises the same errors as `policy.checked`.

    Results are cached by source and policy.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree, found = checked(source, policy)
        statements = tuple(_compiled(statement, restricted=policy.restricted) for statement in tree.body)
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


def _compiled(statement: ast.stmt, *, restricted: bool) -> Statement:
    binds, global_binds = bound_names(statement)
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
        # The error is raised when the statement is executed, so that earlier statements still run.
        return _raising(error)


def _raising(error: SyntaxError) -> CodeType:
    # The error's arguments have no location if Python's symbol table found the error, so use the attributes.
    place = (error.filename, error.lineno, error.offset, error.text, error.end_lineno, error.end_offset)
    return compile(
        f"raise _statek_syntax_error({error.msg!r}, {place!r})", FILENAME, "exec", dont_inherit=True
    )


def bound_names(statement: ast.stmt) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that `statement` may bind or delete in its own scope, and those it may bind as globals.

    Globals are names that a function in the statement declares as global, and names that `:=` binds inside a
    comprehension. Both tuples are in order of first appearance.
    """
    found: dict[str, None] = {}
    as_global: dict[str, None] = {}
    # A stack of nodes to visit; the flag is True for nodes in the statement's own scope.
    pending: list[tuple[Any, bool]] = [(statement, True)]
    while pending:
        node, own_scope = pending.pop()
        kind = type(node)
        if kind is ast.Name:
            if own_scope and type(node.ctx) is not ast.Load:
                found[node.id] = None
            continue
        if kind is ast.Global:
            as_global.update(dict.fromkeys(node.names))
        elif own_scope and (name := _bound_as_text(kind, node)):
            found[name] = None
        if kind in _COMPREHENSIONS:
            as_global.update(dict.fromkeys(_outer_bindings(node) if own_scope else ()))
            continue
        for field in reversed(NODE_FIELDS[kind]):
            value = getattr(node, field, None)
            inside = own_scope and not (field == "body" and kind in _SCOPES)
            if isinstance(value, list):
                pending += [(item, inside) for item in reversed(value) if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and value._fields:
                pending.append((value, inside))
    return tuple(found), tuple(as_global)


def _bound_as_text(kind: type[ast.AST], node: Any) -> str | None:
    """Return the name that a node binds with a string field instead of an `ast.Name`, or None."""
    if kind is ast.alias:
        return str(node.asname or node.name.partition(".")[0])
    if kind in _NAMED:
        return cast("str | None", node.name)
    return cast("str | None", node.rest) if kind is ast.MatchMapping else None


_NAMED: Final = frozenset(
    {ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar}
)


def _outer_bindings(comprehension: ast.AST) -> list[str]:
    """Return the names that `:=` binds outside a comprehension. Loop variables are local to the comprehension."""
    return [node.target.id for node in ast.walk(comprehension) if isinstance(node, ast.NamedExpr)]


VALUE: Final = "_statek_value"
CALL: Final = "_statek_call"
TEXT: Final = "_statek_fmt"
RESULT: Final = "_statek_result"
FORMAT: Final = "_statek_format"
FORMAT_METHOD: Final = "_statek_format_method"
TICK: Final = "_statek_tick"
CHECK: Final = "_statek_check"
ENTER: Final = "_statek_enter"
LEAVE: Final = "_statek_leave"
RUN: Final = "_statek_run"
GENERATOR: Final = "_statek_generator"
COROUTINE: Final = "_statek_coroutine"
GENERATED: Final = "_statek_gen"
ITERATE: Final = "_statek_iter"
SPREAD: Final = "_statek_spread"
SPREAD_IN_SET: Final = "_statek_spread_in_set"
SET: Final = "_statek_set"
OPERATOR: Final = "_statek_op_"

OPERATORS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "add", ast.Mult: "mul", ast.Mod: "mod", ast.BitOr: "or", ast.BitAnd: "and", ast.BitXor: "xor",
    ast.Sub: "sub",
}  # fmt: skip
"""Operators with a helper, because they can create large amounts of data, sets, or strings with memory addresses."""

_LOAD: Final = ast.Load()
_NOT_FORMATTED: Final = -1
_Node = TypeVar("_Node", bound=ast.AST)
_Repeating = TypeVar("_Repeating", ast.AsyncFor, ast.While, ast.AsyncFunctionDef)


def transformed(statement: ast.stmt, *, restricted: bool = True) -> ast.stmt:
    """Rewrite `statement` in place to call the helpers.

    An expression statement becomes an assignment to `_statek_result`. In `restricted` code, `format` methods
    can only read attributes that the code itself may read.
    """
    changed: ast.stmt = _Transformer(restricted=restricted).visit(statement)
    if not isinstance(changed, ast.Expr):
        return changed
    return _at(ast.Assign([_at(ast.Name(RESULT, ast.Store()), changed)], changed.value), changed)


class _Transformer(ast.NodeTransformer):
    """Rewrites a statement in place; faster than `ast.NodeTransformer`, because methods are looked up only once."""

    def __init__(self, *, restricted: bool) -> None:
        self._restricted = restricted

    def visit(self, node: ast.AST) -> Any:
        """Return the replacement for `node`: an expression for an expression, a statement for a statement."""
        method = _METHODS.get(type(node))
        return self.generic_visit(node) if method is None else method(self, node)

    def generic_visit(self, node: _Node) -> _Node:
        """Replace the children of `node`, and return `node`."""
        for name in NODE_FIELDS[type(node)]:
            value = getattr(node, name, None)
            if isinstance(value, list):
                value[:] = [self.visit(item) if isinstance(item, ast.AST) else item for item in value]
            elif isinstance(value, ast.AST) and value._fields:
                setattr(node, name, self.visit(value))
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        node.value = self.visit(node.value)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        node.value = self.visit(node.value)
        if self._restricted and node.attr in FORMAT_METHODS and isinstance(node.ctx, ast.Load):
            return _helper(FORMAT_METHOD, node, node.value, _constant(node.attr, node))
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _helper(VALUE, node, node) if isinstance(node.ctx, ast.Load) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        args = [arg if isinstance(arg, ast.Name) else self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            if not isinstance(keyword.value, ast.Name):
                keyword.value = self.visit(keyword.value)
        call = _helper(CALL, node, self.visit(node.func), *args)
        call.keywords = node.keywords
        return call

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        value = self.visit(node.value)
        if node.conversion == _NOT_FORMATTED and node.format_spec is None:
            text = _helper(TEXT, node, value)
        else:
            spec = self.visit(node.format_spec) if node.format_spec else _constant("", node)
            text = _helper(FORMAT, node, value, _constant(node.conversion, node), spec)
        return _at(ast.FormattedValue(text, _NOT_FORMATTED, None), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        name = OPERATORS.get(type(node.op))
        if name is None or _is_harmless(node.op, node.left, node.right):
            return _at(ast.BinOp(left, node.op, right), node)
        return _helper(OPERATOR + name, node, left, right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        value = self.visit(node.value)
        name = OPERATORS.get(type(node.op))
        target = node.target
        if name is not None and isinstance(target, ast.Name) and not _is_harmless(node.op, node.value):
            # A future as the target is not awaited: as in STATEK, adding to a future raises TypeError.
            old = _at(ast.Name(target.id, _LOAD), target)
            return _at(ast.Assign([target], _helper(f"{OPERATOR}i{name}", node, old, value)), node)
        return _at(ast.AugAssign(self.visit(target), node.op, value), node)

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        return self._spread(node, SPREAD)

    def _spread(self, node: ast.Starred, helper: str) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _helper(helper, node, node.value)
        return node

    def visit_Set(self, node: ast.Set) -> ast.expr:
        elements = [
            self._spread(element, SPREAD_IN_SET) if isinstance(element, ast.Starred) else self.visit(element)
            for element in node.elts
        ]
        return _helper(SET, node, _at(ast.List(elements, _LOAD), node))

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return _helper(SET, node, self.generic_visit(_at(ast.ListComp(node.elt, node.generators), node)))

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return _helper(GENERATED, node, self.generic_visit(node))

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = _helper(ITERATE, node.iter, self.visit(node.iter))
        node.target = self.visit(node.target)
        node.ifs = [_helper(TICK, node.iter), *map(self.visit, node.ifs)]
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        self.generic_visit(node)
        node.iter = _helper(ITERATE, node.iter, node.iter)
        node.body.insert(0, _statement(TICK, node))
        return node

    def visit_While(self, node: _Repeating) -> _Repeating:
        self.generic_visit(node)
        node.body.insert(0, _statement(TICK, node))
        return node

    visit_AsyncFor = visit_While  # noqa: N815

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        self.generic_visit(node)
        node.body.insert(0, _statement(CHECK, node))
        return node

    def visit_Try(self, node: ast.Try | ast.TryStar) -> ast.stmt:
        self.generic_visit(node)
        if node.finalbody:
            # A `return` in the `finally` block would swallow the error that `check` re-raises.
            node.finalbody.insert(0, _statement(CHECK, node))
        return node

    visit_TryStar = visit_Try  # noqa: N815

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        if any(_has_star(target) or _is_slice(target) for target in node.targets):
            node.value = _helper(SPREAD, node, node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        self.generic_visit(node)
        docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        body = node.body[len(docstring) :] or [_at(ast.Pass(), node)]
        if _is_generator(node):
            node.decorator_list.append(_at(ast.Name(GENERATOR, _LOAD), node))
            node.body = [*docstring, _statement(TICK, node), *body]
            return node
        guarded = ast.Try(body=body, handlers=[], orelse=[], finalbody=[_statement(LEAVE, node)])
        node.body = [*docstring, _statement(ENTER, node), _at(guarded, node)]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        self.visit_While(node)
        if not any(isinstance(inside, ast.Yield) for inside in ast.walk(node)):
            node.decorator_list.append(_at(ast.Name(COROUTINE, _LOAD), node))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        node.body = _helper(RUN, node, _at(ast.Lambda(nothing, node.body), node))
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        # Patterns may not contain calls, so names in patterns are not replaced.
        node.guard = self.visit(node.guard) if node.guard else None
        node.body = [self.visit(statement) for statement in node.body]
        return node


_METHODS: Final[dict[type[ast.AST], Callable[[_Transformer, Any], Any]]] = {
    getattr(ast, name.removeprefix("visit_")): method
    for name, method in vars(_Transformer).items()
    if name.startswith("visit_")
}


def _helper(name: str, place: ast.expr | ast.stmt, *args: ast.expr) -> ast.Call:
    """Return a call to the helper `name`, located at `place`."""
    line = place.lineno
    located: Any = ast.Call(_named(name, line), list(args), [])
    located.lineno, located.col_offset = line, place.col_offset
    return located  # type: ignore[no-any-return]  # a call


@lru_cache(maxsize=4096)
def _named(name: str, line: int) -> ast.Name:
    """Return a name node for a helper on a line. The node is shared; errors show the call's location."""
    located: Any = ast.Name(name, _LOAD)
    located.lineno = located.end_lineno = line
    located.col_offset = located.end_col_offset = 0
    return located  # type: ignore[no-any-return]  # a name


def _statement(name: str, place: ast.AST, *args: ast.expr) -> ast.stmt:
    """Return a statement that calls the helper `name`, located at `place`."""
    located: Any = place
    return _at(ast.Expr(_helper(name, located, *args)), place)


def _constant(value: str | int, place: Any) -> ast.Constant:
    return _at(ast.Constant(value), place)


def _at(node: _Node, place: Any) -> _Node:
    """Return `node` after giving it the location of `place`."""
    located: Any = node
    located.lineno, located.col_offset = place.lineno, place.col_offset
    located.end_lineno, located.end_col_offset = place.end_lineno, place.end_col_offset
    return node


def _is_harmless(op: ast.operator, *operands: ast.expr) -> bool:
    """Return whether an operation needs no helper: one operand is a number, and the operator is neither `*` nor `%`."""
    if isinstance(op, ast.Mult | ast.Mod):
        return False
    return any(
        isinstance(operand, ast.Constant) and isinstance(operand.value, int | float) for operand in operands
    )


def _has_star(target: ast.expr) -> bool:
    # Nearly all targets are names.
    return not isinstance(target, ast.Name) and any(
        isinstance(node, ast.Starred) for node in ast.walk(target)
    )


def _is_slice(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)


def _is_generator(function: ast.FunctionDef) -> bool:
    """Return whether a function is a generator; a `yield` in a nested function does not count."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))
    return False
