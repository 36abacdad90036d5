"""From the syntax tree that the model wrote to the one that is executed.

Two things are added. Names and arguments may hold futures, so name loads become `_statek_value(name)` and calls
`_statek_call(function, ...)`, where bare names among the arguments stay as they are, because some functions want the
future itself (behaviour 7.3). And whatever can run for long or make much pays first: loops, function calls,
operators, displays, formatting.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from statek_sim.sandbox.steps import STEPS_PER_ITERATION, Steps, passes
from statek_sim.sandbox.survey import NODE_FIELDS

VALUE: Final = "_statek_value"
CALL: Final = "_statek_call"
TEXT: Final = "_statek_fmt"
RESULT: Final = "_statek_result"
FORMAT: Final = "_statek_format"
TICK: Final = "_statek_tick"
CHECK: Final = "_statek_check"
ENTER: Final = "_statek_enter"
LEAVE: Final = "_statek_leave"
RUN: Final = "_statek_run"
GENERATOR: Final = "_statek_generator"
COROUTINE: Final = "_statek_coroutine"
GENERATED: Final = "_statek_gen"
ITERATE: Final = "_statek_iter"
ROWS: Final = "_statek_rows"
SPREAD: Final = "_statek_spread"
SPREAD_IN_SET: Final = "_statek_spread_in_set"
MESSAGE: Final = "_statek_message"
COPIED: Final = "_statek_copied"
MADE: Final = "_statek_made"
SET: Final = "_statek_set"
KEY: Final = "_statek_key"
ITEM: Final = "_statek_item"
REACHED: Final = "_statek_reached"
OPERAND: Final = "_statek_operand"
MOVED: Final = "_statek_moved"
OPERATOR: Final = "_statek_op_"

OPERATORS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "add", ast.Mult: "mul", ast.Pow: "pow", ast.LShift: "lshift", ast.Mod: "mod", ast.FloorDiv: "floordiv",
    ast.Div: "truediv", ast.BitOr: "or", ast.BitAnd: "and", ast.BitXor: "xor", ast.Sub: "sub",
    ast.RShift: "rshift",
}  # fmt: skip
UNARY_OPERATORS: Final[dict[type[ast.AST], str]] = {ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert"}
FREE_OPERATORS: Final = frozenset({ast.MatMult, ast.Not, ast.And, ast.Or, ast.Is, ast.IsNot})
"""Operators that nothing has to pay for: nothing that model code makes has `@`, the others look at one reference."""

COMPARISONS: Final[dict[type[ast.AST], str]] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.In: "in", ast.NotIn: "not_in",
}  # fmt: skip

_LOAD: Final = ast.Load()
_NOT_FORMATTED: Final = -1
_CAUGHT: Final = 4 * STEPS_PER_ITERATION
"""Steps that an exception counts which is caught: four iterations, as many as the call of a function."""
_SMALL: Final = 100
_NEAR: Final = 1_000
_BIG_DISPLAY: Final = 8
_CHEAP_WITH_NUMBER: Final = (ast.Add, ast.Sub, ast.BitOr, ast.BitAnd, ast.BitXor)
_Node = TypeVar("_Node", bound=ast.AST)
_Comprehension = TypeVar("_Comprehension", ast.ListComp, ast.DictComp, ast.GeneratorExp)


def transformed(statement: ast.stmt) -> ast.stmt:
    """Return the statement to execute for one that the model wrote. An expression assigns `_statek_result`."""
    changed: ast.stmt = _Transformer().visit(statement)
    if not isinstance(changed, ast.Expr):
        return changed
    return _at(ast.Assign([_at(ast.Name(RESULT, ast.Store()), changed)], changed.value), changed)


class _Transformer(ast.NodeTransformer):
    """Rewrites one statement in place; quicker than its base, because it looks up its methods once."""

    def __init__(self) -> None:
        self._repeating = 0
        self._steps = Steps()
        self._passes: dict[int, int] = {}

    def visit(self, node: ast.AST) -> Any:
        """Return what stands for `node`, of the same category."""
        method = _METHODS.get(type(node))
        return self.generic_visit(node) if method is None else method(self, node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit what is inside `node`."""
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
        if name is None or self._is_cheap(node.op, node.left, node.right):
            return _at(ast.BinOp(left, node.op, right), node)
        return _helper(OPERATOR + name, node, left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        operand = self.visit(node.operand)
        name = UNARY_OPERATORS.get(type(node.op))
        if name is None or not self._repeating or isinstance(node.operand, ast.Constant):
            return _at(ast.UnaryOp(node.op, operand), node)
        return _helper(OPERATOR + name, node, operand)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        value = self.visit(node.value)
        name = OPERATORS.get(type(node.op))
        target = node.target
        if name is None or self._is_cheap(node.op, node.value):
            return _at(ast.AugAssign(self.visit(target), node.op, value), node)
        if isinstance(target, ast.Name):
            # The target itself is not waited for: adding to a future is a TypeError, as in STATEK.
            old = _at(ast.Name(target.id, _LOAD), target)
            return _at(ast.Assign([target], _helper(f"{OPERATOR}i{name}", node, old, value)), node)
        return _at(ast.AugAssign(self.visit(target), node.op, _helper(OPERAND, value, value)), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        operands = [node.left, *node.comparators]
        visited = [self.visit(operand) for operand in operands]
        names = [COMPARISONS.get(type(op)) for op in node.ops]
        if len(names) == 1 and names[0] is not None:
            is_search = isinstance(node.ops[0], ast.In | ast.NotIn)
            if not (_is_short(operands[1]) if is_search else any(map(_is_scalar, operands))):
                return _helper(OPERATOR + names[0], node, *visited)
        elif any(names):
            visited = [
                operand if _is_scalar(operand) else _helper(OPERAND, operand, operand) for operand in visited
            ]
        return _at(ast.Compare(visited[0], node.ops, visited[1:]), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        sliced = isinstance(node.slice, ast.Slice)
        if sliced and isinstance(node.ctx, ast.Load):
            return _helper(COPIED, node, node)
        if sliced or isinstance(node.ctx, ast.Del):
            node.value = _helper(MOVED, node, node.value)
        if not sliced and not _is_near(node.slice):
            if isinstance(node.ctx, ast.Load):
                return _helper(ITEM, node, node.value, node.slice)
            if isinstance(node.ctx, ast.Store):
                node.value = _helper(REACHED, node, node.value)
            node.slice = _key(node.slice)
        return node

    def visit_If(self, node: ast.If) -> ast.stmt:
        before = [self._branch_steps(branch) for branch in (node.body, node.orelse)]
        self.generic_visit(node)
        for branch, steps in zip((node.body, node.orelse), before, strict=True):
            if steps:
                branch.insert(0, _tick(steps, node))
        return node

    def _branch_steps(self, branch: list[ast.stmt]) -> int:
        return self._steps.of_branch(branch) if self._repeating and branch else 0

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        return self._spread(node, SPREAD)

    def _spread(self, node: ast.Starred, helper: str) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = _helper(helper, node, node.value)
        return node

    def visit_List(self, node: ast.List) -> ast.expr:
        return self._visit_display(node, len(node.elts))

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return self._visit_display(node, len(node.elts))

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        node.values = [
            value if key is not None else _helper(SPREAD, value, value)
            for key, value in zip(node.keys, map(self.visit, node.values), strict=True)
        ]
        node.keys = [None if key is None else _key(self.visit(key)) for key in node.keys]
        return self._charged(node, 2 * len(node.keys))

    def visit_Set(self, node: ast.Set) -> ast.expr:
        elements = [
            self._spread(element, SPREAD_IN_SET) if isinstance(element, ast.Starred) else self.visit(element)
            for element in node.elts
        ]
        return _helper(SET, node, _at(ast.List(elements, _LOAD), node))

    def visit_SetComp(self, node: ast.SetComp) -> ast.expr:
        return _helper(
            SET, node, self._visit_passes(_at(ast.ListComp(node.elt, node.generators), node), node.elt)
        )

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        return self._visit_passes(node, node.elt)

    def visit_DictComp(self, node: ast.DictComp) -> ast.expr:
        self._visit_passes(node, node.key, node.value)
        node.key = _key(node.key)
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.expr:
        return _helper(GENERATED, node, self._visit_passes(node, node.elt))

    def _visit_passes(self, node: _Comprehension, *made: ast.expr) -> _Comprehension:
        """Count what each pass of each `for` does, then visit; the last `for` makes the items."""
        self._count_passes(node.generators, made)
        return self._visit_repeated(node)

    def _count_passes(self, generators: list[ast.comprehension], made: Sequence[ast.expr]) -> None:
        doing = [*([generator.iter] for generator in generators[1:]), made]
        for generator, then in zip(generators, doing, strict=True):
            self._passes[id(generator)] = self._steps.of([*generator.ifs, *then])

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        node.iter = _rows(node.target, node.iter, self.visit(node.iter))
        node.target = self.visit(node.target)
        tick = _helper(TICK, node.iter, *_count(self._passes.pop(id(node), 0), node.iter))
        node.ifs = [tick, *map(self.visit, node.ifs)]
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        return self._visit_for(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.stmt:
        steps = self._steps.of(node.body)
        self._visit_repeated(node)
        node.body.insert(0, _tick(steps, node))
        return node

    def visit_While(self, node: ast.While) -> ast.stmt:
        steps = self._steps.of([node.test, *node.body])
        self._visit_repeated(node)
        node.body.insert(0, _tick(steps, node))
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        steps = self._branch_steps(node.body)
        self.generic_visit(node)
        if self._repeating:
            node.body.insert(0, _tick(steps + _CAUGHT, node))
        node.body.insert(0, _statement(CHECK, node))
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        self.generic_visit(node)
        if node.msg is not None:
            node.msg = _helper(MESSAGE, node.msg, node.msg)
        return node

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        self.generic_visit(node)
        if node.finalbody:
            # A `return` there would swallow what `check` raises again.
            node.finalbody.insert(0, _statement(CHECK, node))
        return node

    def visit_TryStar(self, node: ast.TryStar) -> ast.stmt:
        self.generic_visit(node)
        if node.finalbody:
            node.finalbody.insert(0, _statement(CHECK, node))
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        if any(_has_star(target) or _is_slice(target) for target in node.targets):
            depth = max(map(_depth_of_star, node.targets))
            node.value = _helper(SPREAD, node, node.value, *_deeper(depth, node))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        steps = self._steps.of(node.body)
        self._visit_repeated(node)
        docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        body = node.body[len(docstring) :] or [_at(ast.Pass(), node)]
        if _is_generator(node):
            node.decorator_list.append(_at(ast.Name(GENERATOR, _LOAD), node))
            node.body = [*docstring, _tick(steps, node), *body]
            return node
        guarded = ast.Try(body=body, handlers=[], orelse=[], finalbody=[_statement(LEAVE, node)])
        node.body = [*docstring, _statement(ENTER, node, *_extra(steps, node)), _at(guarded, node)]
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.stmt:
        steps = self._steps.of(node.body)
        self._visit_repeated(node)
        if not any(isinstance(inside, ast.Yield) for inside in ast.walk(node)):
            node.decorator_list.append(_at(ast.Name(COROUTINE, _LOAD), node))
        node.body.insert(0, _tick(steps, node))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        steps = self._steps.of([node.body])
        self._visit_repeated(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        node.body = _helper(RUN, node, _at(ast.Lambda(nothing, node.body), node), *_extra(steps, node))
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.match_case:
        # Patterns take no calls, so names in them stay.
        node.guard = self.visit(node.guard) if node.guard else None
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def _visit_for(self, node: ast.For) -> ast.stmt:
        steps = self._steps.of(node.body)
        node.iter = _rows(node.target, node.iter, self.visit(node.iter))
        node.target = self.visit(node.target)
        self._repeating += 1
        body = [self.visit(statement) for statement in node.body]
        self._repeating -= 1
        node.body = [_tick(steps, node), *body]
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    def _is_cheap(self, op: ast.operator, *operands: ast.expr) -> bool:
        return _is_cheap(op, *operands, once=not self._repeating)

    def _visit_repeated(self, node: _Node) -> _Node:
        """Visit what may run more often than it is written."""
        self._repeating += 1
        self.generic_visit(node)
        self._repeating -= 1
        return node

    def _visit_display(self, node: ast.List | ast.Tuple, size: int) -> ast.expr:
        self.generic_visit(node)
        return self._charged(node, size) if isinstance(node.ctx, ast.Load) else node

    def _charged(self, node: ast.expr, size: int) -> ast.expr:
        if not self._repeating or size < _BIG_DISPLAY:
            return node
        return _helper(MADE, node, node, _constant(size, node))


_METHODS: Final[dict[type[ast.AST], Callable[[_Transformer, Any], Any]]] = {
    getattr(ast, name.removeprefix("visit_")): method
    for name, method in vars(_Transformer).items()
    if name.startswith("visit_")
}


def _helper(name: str, place: ast.expr | ast.stmt, *args: ast.expr) -> ast.Call:
    """Return a call of the helper `name`, located at `place`."""
    line = place.lineno
    located: Any = ast.Call(_named(name, line), list(args), [])
    located.lineno, located.col_offset = line, place.col_offset
    return located  # type: ignore[no-any-return]  # a call


@lru_cache(maxsize=4096)
def _named(name: str, line: int) -> ast.Name:
    """Return the name of a helper on a line, one node for all its places: what fails there is the call."""
    located: Any = ast.Name(name, _LOAD)
    located.lineno = located.end_lineno = line
    located.col_offset = located.end_col_offset = 0
    return located  # type: ignore[no-any-return]  # a name


def _statement(name: str, place: ast.AST, *args: ast.expr) -> ast.stmt:
    """Return a statement that calls the helper `name`."""
    located: Any = place
    return _at(ast.Expr(_helper(name, located, *args)), place)


def _tick(steps: int, place: ast.AST) -> ast.stmt:
    """Return a statement that pays for one pass through so many steps."""
    return _statement(TICK, place, *_count(steps, place))


def _count(steps: int, place: ast.AST) -> list[ast.expr]:
    """Return the argument of a tick; without one it pays for one iteration."""
    return [_constant(passes(steps), place)] if steps > STEPS_PER_ITERATION else []


def _extra(steps: int, place: ast.AST) -> list[ast.expr]:
    """Return the argument of a call: what its body costs beyond what every call costs."""
    extra = steps // STEPS_PER_ITERATION
    return [_constant(extra, place)] if extra else []


def _is_near(index: ast.expr) -> bool:
    """Return whether an item is at hand: under a name, or not far from the beginning or the end."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        return _is_near(index.operand)
    return isinstance(index, ast.Constant) and not (
        isinstance(index.value, int | float) and index.value > _NEAR
    )


def _key(index: ast.expr) -> ast.expr:
    """Return an index or key that pays for being hashed."""
    return index if isinstance(index, ast.Constant) else _helper(KEY, index, index)


def _constant(value: str | int, place: Any) -> ast.Constant:
    return _at(ast.Constant(value), place)


def _at(node: _Node, place: Any) -> _Node:
    """Return `node` with the location of `place`, so that nothing has to fill locations in later."""
    located: Any = node
    located.lineno, located.col_offset = place.lineno, place.col_offset
    located.end_lineno, located.end_col_offset = place.end_lineno, place.end_col_offset
    return node


def _is_cheap(op: ast.operator, *operands: ast.expr, once: bool) -> bool:
    """With a number written out, some operators cannot make anything big, and small numbers none can.

    That holds for what runs `once`: in a loop, what one number written out adds to a long one can be kept.
    """
    numbers = [operand.value for operand in operands if isinstance(operand, ast.Constant)]
    if len(numbers) == 2 and all(isinstance(number, int) and 0 <= number < _SMALL for number in numbers):
        return True
    if any(isinstance(number, float) for number in numbers):
        # Text has a `%` too.
        return not isinstance(op, ast.Mod)
    return once and isinstance(op, _CHEAP_WITH_NUMBER) and any(isinstance(number, int) for number in numbers)


def _is_scalar(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _is_short(node: ast.expr) -> bool:
    """Return whether searching `node` costs nothing: text or constants written out."""
    elements = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    return all(map(_is_scalar, elements))


def _has_star(target: ast.expr) -> bool:
    # Nearly all targets are names.
    return not isinstance(target, ast.Name) and any(
        isinstance(node, ast.Starred) for node in ast.walk(target)
    )


def _depth_of_star(target: ast.expr) -> int:
    """Return how many levels down the deepest star of a target is: none for `a, *b`, one for `a, (b, *c)`."""
    if not isinstance(target, ast.Tuple | ast.List):
        return 0
    return max(
        (1 + _depth_of_star(part) for part in target.elts if _has_star(part) and not _is_starred(part)),
        default=0,
    )


def _is_starred(target: ast.expr) -> bool:
    return isinstance(target, ast.Starred)


def _rows(target: ast.expr, place: ast.expr, iterable: ast.expr) -> ast.Call:
    """Return what a loop goes through: where its target has a star, each item pays for being unpacked."""
    if not _has_star(target):
        return _helper(ITERATE, place, iterable)
    return _helper(ROWS, place, iterable, *_deeper(_depth_of_star(target), place))


def _deeper(depth: int, place: ast.AST) -> list[ast.expr]:
    return [_constant(depth, place)] if depth else []


def _is_slice(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)


def _is_generator(function: ast.FunctionDef) -> bool:
    """Return whether the function yields; what functions inside it do does not matter."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(node))
    return False
